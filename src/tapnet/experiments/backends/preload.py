"""What the processes of a run need, imported once by the server that forks them: it uses no thread, so that is safe."""

from __future__ import annotations

from tapnet.experiments.backends.processes import importing

with importing():
    from numba import njit

    import tapnet.experiments.backends.pool  # noqa: F401

    njit(lambda: None)()  # has Numba load what every loop needs
