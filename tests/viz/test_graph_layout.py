"""Positions of nodes in a picture."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tapnet.viz.graph_layout import graph_layout


@given(st.integers(1, 40), st.data())
def test_places_are_in_the_unit_square_apart_and_the_same_every_time(n, data):
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1])
    edges = data.draw(st.sets(pairs, max_size=60)) if n > 1 else set()
    edges = np.asarray(sorted(edges), dtype=np.int64).reshape(-1, 2).T
    at = graph_layout(edges, n)
    assert at.shape == (n, 2)
    assert at.min() >= 0
    assert at.max() <= 1 + 1e-9
    assert len({(x, y) for x, y in at.round(5).tolist()}) == n
    np.testing.assert_array_equal(at, graph_layout(edges, n))


def test_neighbours_in_a_large_graph_are_near_each_other():
    n = 2500
    edges = np.asarray([(i, i + 1) for i in range(n - 1)]).T
    at = graph_layout(edges, n)
    assert np.linalg.norm(at[edges[0]] - at[edges[1]], axis=1).max() < 0.05


def test_the_leaves_of_a_hub_do_not_cover_each_other():
    n = 200
    edges = np.asarray([(0, i) for i in range(1, n)]).T
    at = graph_layout(edges, n)
    nearest = (np.linalg.norm(at[:, None] - at, axis=-1) + 9 * np.eye(n)).min(axis=1)
    assert np.quantile(nearest, 0.1) > 0.3 / np.sqrt(n)
