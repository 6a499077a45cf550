"""What graphs are: data sets and batches as flat arrays, splits, the paper's data sets, conversions."""
