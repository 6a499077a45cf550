"""Graph convolutions: the paper's, and those that a TAPNet can have in its place."""

from tapnet.nn.conv.gcn import GraphConv as GraphConv
