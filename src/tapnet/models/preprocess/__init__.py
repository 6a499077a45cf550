"""What a model computes once for a data set."""
