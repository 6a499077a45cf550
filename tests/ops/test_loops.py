"""Each compiled loop against the plain version that stands beside it, and both against a third where there is one."""

import os
import subprocess
import sys
from inspect import unwrap
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tapnet._loops import clusters, csr, refinement, rows, segments
from tapnet._loops.ranges import offsets
from tapnet.data.batch import GraphBatch
from tapnet.ops import csr as ops_csr

seeds = st.integers(0, 10**6)
sizes_of_segments = st.lists(st.integers(0, 12), min_size=1, max_size=8)
floats = st.sampled_from([torch.float32, torch.float64])


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@st.composite
def edges(draw, directed: bool | None = None):
    """[2, E] with self-loops and repeated columns in any order, and the number of nodes."""
    n, random = draw(st.integers(1, 20)), generator(draw(seeds))
    columns = torch.randint(0, n, (2, draw(st.integers(0, 60))), generator=random)
    if not (draw(st.booleans()) if directed is None else directed):
        columns = torch.cat([columns, columns.flip(0)], dim=1)
    if draw(st.booleans()):  # in order, for which there is a shorter way
        columns = columns[:, torch.argsort(columns[0] * n + columns[1])]
    return columns, n


def dense_of(edge_index: torch.Tensor, n: int) -> torch.Tensor:
    matrix = torch.zeros(n, n)
    matrix[edge_index[0], edge_index[1]] = 1
    return matrix.fill_diagonal_(0)


def dense_of_csr(rowptr: torch.Tensor, col: torch.Tensor, n: int) -> torch.Tensor:
    return torch.from_numpy(csr_array((np.ones(len(col)), col.numpy(), rowptr.numpy()), shape=(n, n)).toarray()).float()


def assert_identical(ours, plain) -> None:
    for a, b in zip(ours, plain, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


# ---- csr ----


@given(edges())
def test_edges_to_csr(graph):
    edge_index, n = graph
    ours, ours_transposed = csr.to_csr_loops(edge_index, n)
    plain, plain_transposed = csr.to_csr_torch(edge_index, n)
    assert_identical(ours, plain)
    assert_identical(ours if ours_transposed is None else ours_transposed, plain_transposed)
    assert torch.equal(dense_of_csr(*ours, n), dense_of(edge_index, n))


def test_more_edges_than_32_bits_can_number_are_refused():
    none = torch.zeros(2, 1, dtype=torch.int64)
    with pytest.raises(ValueError, match="2,147,483,648 edges"):
        csr.to_csr(none.expand(2, 2**31), 3)
    with pytest.raises(ValueError, match="2,147,483,648 nodes"):
        csr.to_csr(none, 2**31)
    graphs, node_ptr = torch.tensor([0, 0, 0]), torch.tensor([0, 1])
    rowptr = torch.tensor([0, 2**30])
    with pytest.raises(ValueError, match="edges in one batch"):
        csr.cut_graphs(graphs, node_ptr, rowptr, torch.zeros(0, dtype=torch.int32))


@given(edges())
def test_symmetry(graph):
    matrix = csr.to_csr_torch(*graph)[0]
    expected = dense_of(*graph)
    for check in (csr.is_symmetric, csr.is_symmetric_loop):
        assert check(*(t.numpy() for t in matrix)) == torch.equal(expected, expected.T)


@given(edges(), seeds, st.integers(1, 6))
def test_the_graph_between_clusters(graph, seed, count):
    edge_index, n = graph
    rowptr, col = csr.to_csr_torch(edge_index, n)[0]
    cluster = torch.randint(0, count, (n,), generator=generator(seed))
    weight = torch.randint(1, 9, (len(col),), generator=generator(seed)).float()
    ours = clusters.merged_csr(rowptr, col, weight, cluster, count)
    assert_identical(ours, unwrap(clusters.merged_csr)(rowptr, col, weight, cluster, count))
    matrix, one_hot = torch.zeros(n, n), torch.nn.functional.one_hot(cluster, count).float()
    matrix[torch.repeat_interleave(torch.arange(n), rowptr.diff()), col.long()] = weight
    merged = csr_array((ours[2].numpy(), ours[1].numpy(), ours[0].numpy()), shape=(count, count)).toarray()
    assert torch.equal(torch.from_numpy(merged), (one_hot.T @ matrix @ one_hot).fill_diagonal_(0))


@given(edges(), seeds)
def test_the_subgraph_of_some_nodes(graph, seed):
    edge_index, n = graph
    rowptr, col = csr.to_csr_torch(edge_index, n)[0]
    perm = (torch.rand(n, generator=generator(seed)) < 0.5).nonzero()[:, 0]
    ours, plain = csr.induced_csr(rowptr, col, perm), unwrap(csr.induced_csr)(rowptr, col, perm)
    assert_identical(ours, plain)
    assert torch.equal(dense_of_csr(*ours, len(perm)), dense_of(edge_index, n)[perm][:, perm])
    attributes = torch.arange(edge_index.size(1))
    kept, kept_attributes = csr.induced_edges(perm, edge_index, attributes, n)
    assert_identical((kept, kept_attributes), unwrap(csr.induced_columns)(perm, edge_index, n))
    assert torch.equal(perm[kept], edge_index[:, kept_attributes])


@given(edges(), floats)
def test_inverse_degrees(graph, dtype):
    rowptr, _ = csr.to_csr_torch(*graph)[0]
    ours = csr.inverse_degree(rowptr, dtype)
    plain = 1 / (dense_of(*graph).sum(1).to(dtype) + 1)
    assert torch.equal(ours[:, 0], plain)
    torch.testing.assert_close(csr.inverse_degree(rowptr, torch.float16)[:, 0], plain.half())


@given(edges(), st.integers(1, 20), seeds, floats, st.booleans())
def test_few_neighbors_are_summed_to_the_bits_of_many(graph, channels, seed, dtype, transpose):
    edge_index, n = graph
    h = torch.randn(n, channels, generator=generator(seed), dtype=dtype)
    batch = GraphBatch.from_edge_index(h, edge_index)
    few = ops_csr.neighbor_sum(h, batch, transpose=transpose)
    with mock.patch.object(ops_csr, "FEW", -1):
        many = ops_csr.neighbor_sum(h, batch, transpose=transpose)
    assert_identical([few], [many])


# ---- segments ----


@given(sizes_of_segments, st.integers(1, 20), st.integers(1, 20))
def test_how_many_are_kept(sizes, a, b):
    ptr, (least, most) = offsets(torch.tensor(sizes)), sorted((a, b))
    ours = segments.kept_ptr(ptr, least, most)
    assert_identical([ours], [unwrap(segments.kept_ptr)(ptr, least, most)])
    assert ours.diff().tolist() == [-(-n * least // most) for n in sizes]


@given(sizes_of_segments, seeds)
def test_where_segments_begin(sizes, seed):
    segment = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    ptr = segments.ascending_ptr(segment)
    assert ptr.diff().tolist() == torch.bincount(segment).tolist()
    assert torch.equal(segments.ascending_ptr(segment.int()), ptr)
    shuffled = segment[torch.randperm(len(segment), generator=generator(seed))]
    assert (segments.ascending_ptr(shuffled) is None) != torch.equal(shuffled, segment)


@given(st.lists(st.integers(0, 12) | st.integers(60, 80), min_size=1, max_size=6), seeds, floats, st.booleans())
def test_top_k_with_ties(sizes, seed, dtype, negative):
    random, sizes = generator(seed), torch.tensor(sizes)
    score = torch.randint(-2 if negative else 0, 3, (int(sizes.sum()),), generator=random).to(dtype) / 7
    k = (torch.rand(len(sizes), generator=random) * (sizes + 1)).long().clamp(max=sizes)
    ptr, new_ptr = offsets(sizes), offsets(k)
    expected = []
    for g, first in enumerate(ptr[:-1].tolist()):
        best = sorted(range(first, first + int(sizes[g])), key=lambda i: (-score[i].item(), i))
        expected += sorted(best[: int(k[g])])
    for find in (segments.top_k, unwrap(segments.top_k)):
        assert find(score, new_ptr, ptr).tolist() == expected


@given(st.lists(st.integers(0, 12) | st.integers(60, 80), min_size=1, max_size=6), seeds, floats)
def test_top_k_of_zeros_nans_and_infinities_of_both_signs(sizes, seed, dtype):
    random, sizes = generator(seed), torch.tensor(sizes)
    values = torch.tensor([0.0, 1.0, float("nan"), float("inf")], dtype=dtype)
    values = torch.cat([values, values.neg()])  # the sign of a NaN, too
    score = values[torch.randint(0, len(values), (int(sizes.sum()),), generator=random)]
    k = (torch.rand(len(sizes), generator=random) * (sizes + 1)).long().clamp(max=sizes)
    ptr, new_ptr = offsets(sizes), offsets(k)
    assert torch.equal(segments.top_k(score, new_ptr, ptr), unwrap(segments.top_k)(score, new_ptr, ptr))


@given(sizes_of_segments, seeds, floats)
def test_softmax_and_its_gradient(sizes, seed, dtype):
    random, ptr = generator(seed), offsets(torch.tensor(sizes))
    values, grad = torch.randn(2, int(ptr[-1]), generator=random, dtype=dtype)
    ours = segments.softmax(values, ptr)
    torch.testing.assert_close(ours, unwrap(segments.softmax)(values, ptr))
    torch.testing.assert_close(
        segments.softmax_backward(grad, ours, ptr), unwrap(segments.softmax_backward)(grad, ours, ptr)
    )
    leaf = values.clone().requires_grad_()
    expected = torch.cat([part.softmax(0) for part in leaf.split(sizes)])
    torch.testing.assert_close(ours, expected.detach())
    expected.backward(grad)
    torch.testing.assert_close(segments.softmax_backward(grad, ours, ptr), leaf.grad)


@given(sizes_of_segments, seeds, floats)
def test_readout_and_its_gradient(sizes, seed, dtype):
    random, ptr = generator(seed), offsets(torch.tensor(sizes))
    h = torch.randint(-3, 4, (int(ptr[-1]), 5), generator=random).to(dtype)  # whole numbers: many equal maxima
    ours = segments.readout_loop(h, ptr)
    plain, where = segments.readout_torch(h, ptr)
    torch.testing.assert_close(ours, plain)
    for g, part in enumerate(h.split(sizes)):
        expected = torch.cat([part.amax(0), part.mean(0), part.sum(0)]) if len(part) else torch.zeros(15, dtype=dtype)
        torch.testing.assert_close(ours[g], expected)
    grad = torch.randn(len(sizes), 15, generator=random, dtype=dtype)
    torch.testing.assert_close(
        segments.readout_backward_loop(grad, h, ours, ptr), segments.readout_backward_torch(grad, where, ptr)
    )


# ---- rows ----


@given(st.integers(1, 12), seeds, floats, st.booleans())
def test_the_gradient_of_the_gate(n, seed, dtype, with_zero):
    random = generator(seed)
    x, score = torch.randn(n, 3, generator=random, dtype=dtype), torch.rand(n, generator=random, dtype=dtype) + 0.1
    if with_zero:
        score[0] = 0
    perm = torch.arange(0, n, 2)
    rows_kept, grad = x[perm], torch.randn(len(perm), 3, generator=random, dtype=dtype)
    ours = rows.gate_backward(perm, grad, x, score)
    torch.testing.assert_close(ours, unwrap(rows.gate_backward)(perm, grad, x, score))
    divisor = torch.where(score[perm] == 0, 1, score[perm])
    torch.testing.assert_close(ours[perm], (grad * rows_kept).sum(1) / divisor)


@pytest.mark.parametrize("draw", [rows.dropout, unwrap(rows.dropout)], ids=["loop", "plain"])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_mean_and_repeats_itself(draw, p):
    h = torch.ones(400, 500)
    dropped = draw(h, p, 3)
    assert torch.equal(dropped, draw(h, p, 3))
    assert not torch.equal(dropped, draw(h, p, 4))
    assert abs(float((dropped == 0).float().mean()) - p) < 0.01
    torch.testing.assert_close(dropped[dropped != 0], torch.full((int((dropped != 0).sum()),), 1 / (1 - p)))


# ---- refinement ----


@given(edges(), seeds)
def test_refined_labels_are_equal_where_labels_and_neighbours_are(graph, seed):
    edge_index, n = graph
    label = torch.randint(0, 3, (n,), generator=generator(seed)).numpy()
    (rowptr, col), _ = csr.to_csr_torch(edge_index, n)
    combinations = []
    for i in range(n):
        combinations.append((label[i], *sorted(label[col[rowptr[i] : rowptr[i + 1]].numpy()])))
    number = {combination: k for k, combination in enumerate(dict.fromkeys(combinations))}
    found = refinement.refined_labels(label, rowptr.numpy(), col.numpy())
    assert found.tolist() == [number[combination] for combination in combinations]


COMPILE = """
import resource, sys, torch
import tapnet.progress
from tapnet._loops.segments import top_k
if "watched" in sys.argv:
    tapnet.progress.on_terminal = lambda: True
if "full" in sys.argv:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
print(top_k(torch.tensor([3.0, 1.0, 2.0, 0.0]), torch.tensor([0, 2]), torch.tensor([0, 4])).tolist())
"""


def test_the_first_compilation_is_said_to_whoever_watches_and_survives_a_full_disk(tmp_path):
    """In processes of their own, which takes seconds: Numba looks for its cache once."""

    def run(*words):
        env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", COMPILE, *words], env=env, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "[0, 2]\n"), done.stderr
        return done.stderr

    assert run("watched", "full").count("compiling its loops") == 1
    assert run() == ""
    assert run("watched") == ""  # found in the cache
