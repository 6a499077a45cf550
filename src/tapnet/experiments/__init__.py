"""Trials, their store, cross-validation, statistics, and the backends that run them."""
