"""tapnet beside PyG: the same work on the same data in one run, reported as the ratio of the times.

`tapnet bench` runs the short comparison; `run.py`, `limits.py` and `scaling.py` are programs of their own.
"""
