"""Trained models in files: what a model file says, prediction, and what pooling kept of a graph."""
