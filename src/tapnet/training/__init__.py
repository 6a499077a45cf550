"""Trials: one model on one fold of one data set under one protocol; how they run, and where results are kept."""
