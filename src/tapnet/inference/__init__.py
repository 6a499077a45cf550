"""Trained models in files: prediction and explanation."""
