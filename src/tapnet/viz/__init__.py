"""Pictures: graphs, learning curves and comparisons, all with one look."""
