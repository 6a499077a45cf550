"""Pooling layers, one file each, with one base class and one registry."""
