"""The paper's own numbers, and each of its tables and figures as a set of trials."""
