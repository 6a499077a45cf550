"""Loops compiled by Numba, each beside the plain version that explains it; private."""
