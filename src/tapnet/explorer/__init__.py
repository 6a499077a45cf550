"""The local page of `tapnet explore`: a model's graphs, its predictions, and the nodes that pooling kept."""
