"""Layers: the graph convolution, TAP pooling, dropout, and the auxiliary link prediction objective."""
