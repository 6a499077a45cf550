"""From files to batches: reading and checking graphs, the paper's data sets, flat arrays."""
