"""The systems that the paper compares, one file each, and a registry by name."""
