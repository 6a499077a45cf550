"""tapnet beside PyG: the same work on the same data in one run, reported as the ratio of the times.

`tapnet bench` runs the short comparison, `tapnet bench --growth` the short version of `scaling.py`; that, `run.py`,
`limits.py`, `mapped.py` and `ray_shards.py` are programs of their own.
"""
