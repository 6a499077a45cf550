"""The local page of `tapnet explore`: a model's graphs, what it keeps of them and why."""
