"""What is computed on flat arrays: sparse products, segments, top-k, dropout."""
