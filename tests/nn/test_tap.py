"""TAPooling equals the paper's dense formulas, behaves as PyG's poolings do, and survives odd input."""

import copy
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import TopKPooling
from torch_geometric.utils import to_undirected

from tapnet import TAPNet, TAPooling, link_prediction_loss, unpool
from tapnet.data.batch import GraphBatch
from tapnet.errors import SettingError
from tapnet.nn import tap
from tapnet.nn.pool.select import kept_nodes
from tapnet.nn.similarity import SIMILARITIES
from tapnet.nn.tap import GATES, VOTE_SCALES
from tapnet.ops.gate import straight_through
from tapnet.ops.readout import readout
from tests.helpers import dense
from tests.helpers.batches import CHANNELS, batches, graphs_of, random_batch

settings_of_pool = st.fixed_dictionaries(
    {
        "similarity": st.sampled_from(SIMILARITIES),
        "local_voting": st.booleans(),
        "global_voting": st.booleans(),
        "connectivity": st.sampled_from([0.0, 0.1, 10.0, -1.0]),
        "ratio": st.sampled_from([0.3, 0.5, 0.8, 1.0, 1, 3]),
        "gate": st.sampled_from(GATES),
    }
)


def make(**chosen):
    torch.manual_seed(0)
    return TAPooling(CHANNELS, **chosen).double()


@given(batches, settings_of_pool)
def test_votes_equal_the_dense_formulas(graphs, chosen):
    x, edge_index, batch = graphs
    pool = make(**chosen)
    votes = pool.votes(x, edge_index, batch)
    for nodes, h, a in graphs_of(x, edge_index, batch):
        for ours, theirs in zip(votes, dense.votes(pool, h, a), strict=True):
            torch.testing.assert_close(ours[nodes], theirs)


@given(
    batches,
    st.fixed_dictionaries(
        {
            "local_voting": st.booleans(),
            "global_voting": st.booleans(),
            "heads": st.sampled_from([1, 3]),
            "vote_scale": st.sampled_from(VOTE_SCALES),
            "learn_connectivity": st.booleans(),
            "gate": st.sampled_from(GATES),
        }
    ),
    st.booleans(),
    st.integers(0, 1000),
)
def test_what_is_not_in_the_paper_equals_its_dense_formulas(graphs, chosen, reads_edges, seed):
    x, edge_index, batch = graphs
    edge_index = edge_index.unique(dim=1)[:, torch.randperm(edge_index.unique(dim=1).size(1))]
    carried = torch.randn(edge_index.size(1), 2, dtype=torch.float64)
    reads_edges &= chosen["local_voting"]
    pool = make(**chosen, edge_channels=2 if reads_edges else 0)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    number = torch.argsort(order)
    *_, perm, score = pool(x[order], number[edge_index], carried, batch[order])
    votes = pool.votes(x[order], number[edge_index], batch[order], carried)
    assert votes.score[perm].tolist() == pytest.approx(score.tolist())
    of_edges = torch.zeros(len(x), len(x), 2, dtype=torch.float64).index_put(tuple(edge_index), carried)
    of_edges[range(len(x)), range(len(x))] = 0  # self-loops count as none
    for nodes, h, a in graphs_of(x, edge_index, batch):
        local, global_, connectivity, total = dense.votes(
            pool, h, a, of_edges[nodes][:, nodes] if reads_edges else None
        )
        k = int(kept_nodes(pool.ratio, torch.tensor([len(nodes)]))[0])
        assert sorted(score[batch[order][perm] == batch[nodes[0]]].tolist()) == pytest.approx(
            sorted(total.tolist())[-k:]
        )
        assert total.tolist() == pytest.approx((local + global_ + connectivity).tolist())


@given(
    batches,
    st.fixed_dictionaries(
        {
            "similarity": st.sampled_from(["bilinear", "gaussian"]),
            "heads": st.just(1),
            "global_voting": st.booleans(),
            "connectivity": st.sampled_from([0.0, 0.1, 2.0]),
            "connectivity_end": st.sampled_from([0.0, 1.0, -0.5]),
        }
    ),
    st.sampled_from([0.0, 0.25, 1.0]),
)
def test_a_scheduled_connectivity_is_that_of_the_progress(graphs, chosen, progress):
    x, edge_index, batch = graphs
    begin, end = chosen["connectivity"], chosen["connectivity_end"]
    pool = make(**chosen)
    assert pool.scheduled_connectivity.item() == pytest.approx(begin)
    pool.set_progress(progress)
    same = make(**{**chosen, "connectivity": begin + progress * (end - begin), "connectivity_end": None})
    same.load_state_dict(pool.state_dict(), strict=False)
    votes, constant = pool.votes(x, edge_index, batch), same.votes(x, edge_index, batch)
    for nodes, h, a in graphs_of(x, edge_index, batch):
        for ours, theirs, without in zip(votes, dense.votes(pool, h, a), constant, strict=True):
            torch.testing.assert_close(ours[nodes], theirs)
            torch.testing.assert_close(ours[nodes], without[nodes])
    assert "scheduled_connectivity" not in same.state_dict()
    stored = make(**chosen)
    stored.load_state_dict(pool.state_dict())
    torch.testing.assert_close(stored.votes(x, edge_index, batch).score, votes.score, rtol=0, atol=0)


def test_whatever_is_learned_has_a_gradient():
    x, edge_index, batch = random_batch((6, 7), 3.0, seed=0)
    pool = make(heads=3, learn_connectivity=True, vote_scale="channels", edge_channels=2)
    rows = pool(x, edge_index, torch.randn(edge_index.size(1), 2, dtype=torch.float64), batch)[0]
    (rows * torch.randn_like(rows)).sum().backward()
    for name, parameter in pool.named_parameters():
        assert (
            (parameter.grad.view(len(parameter), -1) if parameter.dim() else parameter.grad).abs().amax(-1).gt(0).all()
        ), name


def test_what_is_not_in_the_paper_is_shown_where_it_is_used():
    assert "heads" not in repr(TAPooling(4))
    assert "heads=2" in (shown := repr(TAPooling(4, heads=2, learn_connectivity=True)))
    assert "learn_connectivity=True" in shown
    assert "vote_scale" not in shown
    assert "connectivity_end" not in shown
    assert "connectivity_end=0.5" in repr(TAPooling(4, connectivity_end=0.5))


def test_settings_that_cannot_be_together_are_refused():
    for chosen in (
        {"heads": 0},
        {"heads": True},
        {"heads": 2, "similarity": "dot"},
        {"vote_scale": "size"},
        {"edge_channels": 2, "local_voting": False},
        {"connectivity_end": float("nan")},
        {"connectivity_end": 0.5, "learn_connectivity": True},
    ):
        with pytest.raises(SettingError):
            TAPooling(4, **chosen)
    x, edge_index, _ = random_batch((4,), 2.0, seed=0)
    with pytest.raises(ValueError, match="edge_attr"):
        make(edge_channels=2)(x, edge_index)


@given(batches, settings_of_pool)
def test_the_coarsened_graph_is_the_papers(graphs, chosen):
    x, edge_index, batch = graphs
    pool = make(**chosen)
    edge_attr = torch.arange(edge_index.size(1))
    new_x, new_edges, new_attr, new_batch, perm, score = pool(x, edge_index, edge_attr, batch)
    votes = pool.votes(x, edge_index, batch)
    expected = []
    for nodes, _, _ in graphs_of(x, edge_index, batch):
        n = len(nodes)
        ratio = chosen["ratio"]
        k = min(ratio, n) if isinstance(ratio, int) else -(-Fraction(str(ratio)) * n // 1)
        expected += nodes[dense.top(votes.score[nodes], int(k))].tolist()
    assert perm.tolist() == expected
    torch.testing.assert_close(score, votes.score[perm], rtol=1e-12, atol=0)  # computed twice
    assert torch.equal(new_batch, batch[perm])
    kept = torch.isin(edge_index, perm).all(0)
    assert torch.equal(perm[new_edges], edge_index[:, kept])
    assert torch.equal(new_attr, edge_attr[kept])
    factor = {"sigmoid": torch.sigmoid(score), "tanh": torch.tanh(score)}.get(pool.gate, torch.ones_like(score))
    torch.testing.assert_close(new_x, x[perm] * factor.unsqueeze(1), rtol=0 if factor.eq(1).all() else 1e-12, atol=0)


@given(batches, settings_of_pool, st.sampled_from(["straight-through", "sigmoid", "tanh"]))
@settings(max_examples=40)
def test_gradients_equal_those_of_the_dense_formulas(graphs, chosen, gate):
    x, edge_index, batch = graphs
    pool = make(**{**chosen, "gate": gate})
    oracle = copy.deepcopy(pool)
    x1, x2 = x.clone().requires_grad_(), x.clone().requires_grad_()
    out, _, _, _, perm, score = pool(x1, edge_index, None, batch)
    weights = torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    ((out * weights).sum() + score.square().sum()).backward()

    all_scores = torch.zeros(len(x), dtype=torch.float64)
    for nodes, h, a in graphs_of(x2, edge_index, batch):
        all_scores = all_scores.index_put((nodes,), dense.votes(oracle, h, a)[3])
    s = all_scores[perm]
    divisor = torch.where(s == 0, 1, s).detach()
    factor = {"sigmoid": torch.sigmoid(s), "tanh": torch.tanh(s)}.get(gate, 1 + (s - s.detach()) / divisor)
    ((x2[perm] * factor.unsqueeze(1) * weights).sum() + s.square().sum()).backward()
    torch.testing.assert_close(x1.grad, x2.grad)
    for ours, theirs in zip(pool.parameters(), oracle.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


@given(batches, settings_of_pool)
@settings(max_examples=30)
def test_the_fast_path_is_the_same_layer(graphs, chosen):
    x, edge_index, batch = graphs
    pool = make(**chosen)
    pooled = pool(x, GraphBatch.from_edge_index(x, edge_index, batch))
    new_x, new_edges, _, new_batch, perm, score = pool(x, edge_index, None, batch)
    assert torch.equal(pooled.perm, perm)
    torch.testing.assert_close(pooled.x, new_x, rtol=1e-12, atol=0)  # MKL's last digit depends on where memory begins
    torch.testing.assert_close(pooled.scores[perm], score, rtol=1e-12, atol=0)
    assert torch.equal(pooled.batch.graph, new_batch)
    proper = new_edges[:, new_edges[0] != new_edges[1]]
    assert torch.equal(pooled.batch.edge_index, torch.unique(proper, dim=1))
    back = pooled.batch.transposed or (pooled.batch.rowptr, pooled.batch.col)
    flipped = GraphBatch.from_edge_index(new_x, new_edges.flip(0), new_batch)
    assert torch.equal(back[0], flipped.rowptr)
    assert torch.equal(back[1], flipped.col)


@given(batches, settings_of_pool, st.integers(0, 1000))
@settings(max_examples=30)
def test_renumbering_the_nodes_renumbers_the_scores(graphs, chosen, seed):
    x, edge_index, batch = graphs
    pool = make(**chosen)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))  # also mixes the graphs
    number = torch.argsort(order)
    before = pool.votes(x, edge_index, batch)
    after = pool.votes(x[order], number[edge_index], batch[order])
    for a, b in zip(before, after, strict=True):
        torch.testing.assert_close(a[order], b)
    perm = pool(x[order], number[edge_index], None, batch[order])[4]
    assert perm.tolist() == sorted(perm.tolist())
    assert batch[order][perm].bincount().tolist() == batch[pool(x, edge_index, None, batch)[4]].bincount().tolist()


@given(batches, settings_of_pool)
@settings(max_examples=30)
def test_float32_selects_as_float64_does_where_scores_are_apart(graphs, chosen):
    x, edge_index, batch = graphs
    pool = make(**chosen)
    score64 = pool.votes(x, edge_index, batch).score
    score32 = copy.deepcopy(pool).float().votes(x.float(), edge_index, batch).score
    torch.testing.assert_close(score32.double(), score64, rtol=1e-3, atol=1e-4)


@given(batches, settings_of_pool)
@settings(max_examples=40)
def test_the_compiled_loops_give_what_torch_gives_forward_and_back(graphs, chosen):
    x, edge_index, batch = graphs
    results = []
    for by_torch in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if by_torch:
                for module in ("nn.tap", "_loops.jit", "_loops.segments"):
                    patch.setattr(f"tapnet.{module}.is_compiled", lambda *_: False)
            pool = make(**chosen)
            h = x.clone().requires_grad_()
            structure = GraphBatch.from_edge_index(h, edge_index, batch)
            out, coarse, perm, *_ = pool(h, structure)
            levels = readout(out, coarse)
            (levels * torch.linspace(-1, 1, levels.numel()).view_as(levels)).sum().backward()
            gradients = [h.grad, *(p.grad for p in pool.parameters())]
            results.append([perm, levels, *pool.votes(h, structure), *gradients])
    for ours, plain in zip(*results, strict=True):
        torch.testing.assert_close(ours, plain)


@given(st.integers(0, 10**6), st.sampled_from([10.0, 30.0, 100.0, 300.0]), st.sampled_from([0.0, 0.1]), st.booleans())
def test_gradients_are_finite_where_a_score_is_next_to_nothing(seed, scale, connectivity, loops):
    """Large features make softmaxes with votes of 1e-40, which isolated nodes add nothing to."""
    torch.manual_seed(seed)
    pool = TAPooling(8, 0.8, connectivity=connectivity)
    x, edge_index = (scale * torch.randn(60, 8)).requires_grad_(), to_undirected(torch.randint(0, 30, (2, 60)))
    with pytest.MonkeyPatch.context() as patch:
        if not loops:
            for module in ("nn.tap", "_loops.jit"):
                patch.setattr(f"tapnet.{module}.is_compiled", lambda *_: False)
        pool(x, edge_index)[0].sum().backward()
    for grad in (x.grad, pool.weight.grad, pool.projection.grad):
        assert grad.isfinite().all()


@pytest.mark.parametrize("chosen", [{"local_voting": False}, {"similarity": "dot"}, {}])
@pytest.mark.parametrize("width", [4, 64, 4096])
def test_features_of_another_width_are_refused(chosen, width):
    with pytest.raises((ValueError, RuntimeError), match="8|shapes"):
        TAPooling(8, **chosen)(torch.randn(40, width), torch.randint(0, 40, (2, 80)))


def test_attributes_that_are_not_one_an_edge_are_refused():
    x, edge_index = torch.randn(40, 8), torch.randint(0, 40, (2, 80))
    for length in (79, 100):
        with pytest.raises(ValueError, match="edge_index has 80 columns"):
            TAPooling(8)(x, edge_index, torch.randn(length, 3))


def test_graph_numbers_may_be_bytes():
    batch, edge_index = torch.tensor([0, 1] * 10 + [0] * 20), torch.randint(0, 40, (2, 80))
    x, pool = torch.randn(40, 8), TAPooling(8)
    assert torch.equal(pool(x, edge_index, None, batch)[4], pool(x, edge_index, None, batch.byte())[4])


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_graphs_that_were_looked_at_can_be_trained_on(similarity, monkeypatch):
    """What a batch keeps of itself under inference_mode is no inference tensor."""
    monkeypatch.setattr(tap, "is_compiled", lambda _: False)
    x, edge_index = torch.randn(40, 8), torch.randint(0, 40, (2, 80))
    graphs, model = GraphBatch.from_edge_index(x, edge_index), TAPNet(8, 2, similarity=similarity)
    with torch.inference_mode():
        model(graphs)
    model(graphs).sum().backward()


def test_rows_that_are_not_there_are_refused():
    x, edge_index = torch.randn(5, CHANNELS), torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match=r"x has 5 rows, so batch is \[5\]: not \[7\]"):
        TAPooling(CHANNELS)(x, edge_index, None, torch.zeros(7, dtype=torch.long))
    structure = GraphBatch.from_edge_index(x, edge_index)
    for use in (lambda h: readout(h, structure), lambda h: TAPooling(CHANNELS)(h, structure)):
        with pytest.raises(ValueError, match="the graphs have 5 nodes"):
            use(torch.randn(4, CHANNELS))


def test_edges_that_cannot_be_are_refused_however_the_batch_is_ordered():
    x, pool = torch.randn(3, CHANNELS), TAPooling(CHANNELS)
    for batch in (torch.tensor([0, 0, 1]), torch.tensor([1, 0, 0])):
        for wrong in (torch.tensor([[-1], [0]]), torch.tensor([[0], [3]])):
            with pytest.raises(IndexError, match="edge_index names node"):
                pool(x, wrong, None, batch)
            with pytest.raises(IndexError, match="edge_index names node"):
                pool.votes(x, wrong, batch)
    for shape in ((3, 4), (1, 4), (0,)):
        with pytest.raises(ValueError, match=r"edge_index is \[2, E\], not"):
            pool.votes(x, torch.zeros(shape, dtype=torch.long))


def test_half_precision_rows_are_read_out_forward_and_back():
    h = torch.randn(5, 4).bfloat16().requires_grad_()
    batch = GraphBatch.from_edge_index(h, torch.tensor([[0], [1]]), torch.tensor([0, 0, 0, 1, 1]))
    readout(h, batch).sum().backward()
    assert torch.isfinite(h.grad).all()


def test_the_link_loss_takes_features_of_another_precision():
    pool, x = TAPooling(CHANNELS, link_weight=1.0), torch.randn(3, CHANNELS, dtype=torch.float64)
    batch = GraphBatch.from_edge_index(x, torch.tensor([[0, 1], [1, 0]]))
    assert pool(x, batch).loss.dtype == torch.float64


def test_a_ratio_of_single_precision_is_the_number_that_was_meant():
    sizes = torch.arange(1, 1000)
    for ratio in (0.8, 0.6, 0.4, 0.1):
        for single in (np.float32(ratio), torch.tensor(ratio), torch.tensor(ratio).item()):
            assert torch.equal(kept_nodes(TAPooling(8, single).ratio, sizes), kept_nodes(ratio, sizes))


def test_the_number_kept_is_exact():
    sizes = torch.arange(1, 4000)
    for ratio in (0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 0.123456789):
        exact = [max(1, -(-Fraction(str(ratio)) * n // 1)) for n in range(1, 4000)]
        assert kept_nodes(ratio, sizes).tolist() == exact
    assert kept_nodes(0.6, torch.tensor([25])).item() == 15
    assert kept_nodes(1, sizes).tolist() == [1] * len(sizes)
    assert kept_nodes(1.0, sizes).tolist() == sizes.tolist()
    assert kept_nodes(7, torch.tensor([3, 7, 9])).tolist() == [3, 7, 7]


@pytest.mark.parametrize("ratio", [0, 0.0, -0.5, 1.5, -3, True, 2**63, 10**400, float("nan")])
def test_a_wrong_ratio_is_refused(ratio):
    with pytest.raises(SettingError, match="ratio is"):
        TAPooling(4, ratio)


def test_wrong_words_are_refused():
    with pytest.raises(SettingError, match="similarity is one of bilinear"):
        TAPooling(4, similarity="cosine")
    with pytest.raises(SettingError, match="gate is one of straight-through"):
        TAPooling(4, gate="relu")


@pytest.mark.parametrize("name", ["connectivity", "link_weight"])
@pytest.mark.parametrize("value", [float("nan"), float("-inf"), "0.1", None])
def test_a_weight_that_is_no_finite_number_is_refused(name, value):
    with pytest.raises(SettingError, match=f"{name} is a finite number"):
        TAPooling(4, **{name: value})


# ---- as PyG tests its own poolings ----


def test_tap_pooling_as_pyg_tests_sag_pooling():
    num_nodes = 4
    edge_index = torch.tensor([[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], [1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2]])
    x = torch.randn(num_nodes, 16)
    pool = TAPooling(16)
    assert str(pool).startswith("TAPooling(16, ratio=0.5, connectivity=0.1")
    out = pool(x, edge_index)
    assert len(out) == 6
    assert out[0].size() == (num_nodes // 2, 16)
    assert out[1].size() == (2, 2)
    assert out[2] is None
    assert out[3].tolist() == [0, 0]
    assert pool.weight.shape == (16, 16)
    assert pool.projection.shape == (16,)
    same = TopKPooling(16)(x, edge_index)
    assert [type(a) for a in same] == [type(a) for a in out]


def test_parameters_are_there_only_where_they_are_used():
    assert sum(p.numel() for p in TAPooling(48).parameters()) == 48**2 + 48
    assert list(TAPooling(48, local_voting=False, global_voting=False).parameters()) == []
    assert TAPooling(48, similarity="dot").weight is None
    assert TAPooling(48, similarity="concat").weight.shape == (96,)


def test_degree_alone_ranks_without_the_votes():
    edge_index = to_undirected(torch.tensor([[0, 0, 0, 1], [1, 2, 3, 2]]))
    pool = TAPooling(3, 2, local_voting=False, global_voting=False)
    assert pool(torch.randn(4, 3), edge_index)[4].tolist() == [0, 1]


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_edges_one_node_and_a_score_of_zero(gate, dtype):
    nothing = torch.zeros(2, 0, dtype=torch.long)
    pool = TAPooling(3, 0.5, local_voting=False, global_voting=False, gate=gate).to(dtype)
    x = torch.randn(5, 3, dtype=dtype, requires_grad=True)
    out, edges, _, _, perm, score = pool(x, nothing, None, torch.tensor([0, 1, 1, 1, 1]))
    assert perm.tolist() == [0, 1, 2]
    assert score.tolist() == [0, 0, 0]
    assert edges.shape == (2, 0)
    out.sum().backward()
    assert x.grad.isfinite().all()
    out = TAPooling(3).to(dtype)(torch.randn(1, 3, dtype=dtype), nothing)[0]
    assert out.shape == (1, 3)


def test_graph_numbers_may_have_gaps():
    x = torch.randn(4, 3)
    pool = TAPooling(3, 0.5)
    out = pool(x, torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]), None, torch.tensor([1, 1, 4, 4]))
    assert out[3].tolist() == [1, 4]


def test_the_straight_through_gate_reaches_weight_and_projection():
    x, edge_index, batch = random_batch([6, 8], 2.0, 0)
    for gate, reached in (("straight-through", True), ("none", False)):
        pool = make(gate=gate)
        out = pool(x, edge_index, None, batch)[0]
        if out.requires_grad:
            out.square().sum().backward()
        assert all((p.grad is not None and bool(p.grad.abs().sum() > 0)) is reached for p in pool.parameters())


def test_dropout_acts_on_what_the_votes_see_and_not_on_what_is_passed_on():
    x, edge_index, batch = random_batch([6, 8], 2.0, 0)
    pool = make(dropout=0.5, gate="none")
    torch.manual_seed(1)
    out, _, _, _, perm, score = pool(x, edge_index, None, batch)
    assert torch.equal(out, x[perm])
    assert not torch.equal(score, pool.eval().votes(x, edge_index, batch).score[perm])


@given(batches, st.sampled_from(["bilinear", "dot"]), st.sampled_from([0.0, 0.4]))
@settings(max_examples=20)
def test_votes_and_gate_in_one_step_have_the_gradient_of_both_apart(graphs, similarity, dropout):
    x, edge_index, batch = graphs
    pool, grads, perm = make(similarity=similarity, dropout=dropout), [], None
    for apart in (False, True):
        h = x.clone().requires_grad_()
        pool.zero_grad()
        torch.manual_seed(1)  # the same dropout
        if apart:
            score = pool.votes(h, edge_index, batch).score
            rows, kept_score = straight_through(h, perm, score), score[perm]
        else:
            rows, _, _, _, perm, kept_score = pool(h, edge_index, None, batch)
        (rows.square().sum() + kept_score.pow(3).sum()).backward()
        grads.append([h.grad, *(p.grad.clone() for p in pool.parameters())])
    for one_step, two_steps in zip(*grads, strict=True):
        torch.testing.assert_close(one_step, two_steps)


@pytest.mark.parametrize("similarity", ["bilinear", "dot"])
def test_features_that_need_no_gradient_leave_the_parameters_theirs(similarity):
    x, edge_index, batch = random_batch([9, 5, 7], 4.0, 3)
    grads = []
    for needed in (True, False):
        pool = make(similarity=similarity)
        h = x.clone().requires_grad_(needed)
        pool(h, edge_index, None, batch)[0].square().sum().backward()
        assert (h.grad is not None) == needed
        grads.append([p.grad for p in pool.parameters()])
    assert all(map(torch.equal, *grads))


@pytest.mark.parametrize("chosen", [{}, {"similarity": "dot"}, {"local_voting": False}, {"dropout": 0.5}])
def test_a_second_backward_pass_gives_the_same_gradients(chosen):
    x, edge_index, batch = random_batch([1, 5, 700], 2.0, 0)
    pool, x = make(**chosen), x.requires_grad_()
    torch.manual_seed(1)
    total = pool(x, edge_index, None, batch)[0].square().sum()
    wanted = [x, *pool.parameters()]
    first = torch.autograd.grad(total, wanted, retain_graph=True)
    second = torch.autograd.grad(total, wanted)
    for once, again in zip(first, second, strict=True):
        torch.testing.assert_close(again, once)


def test_the_gaussian_stays_finite():
    pool = TAPooling(3, similarity="gaussian")
    x = (torch.randn(6, 3) * 1e3).requires_grad_()
    out, *_, score = pool(x, torch.tensor([[0, 1, 2, 3, 4, 5], [1, 0, 3, 2, 5, 4]]))
    out.sum().backward()
    assert score.isfinite().all()
    assert x.grad.isfinite().all()


def test_chunks_of_edges_change_nothing(monkeypatch):
    from tapnet.nn import similarity

    x, edge_index, batch = random_batch([9, 9, 9], 4.0, 3)
    for kind in ("gaussian", "concat"):
        pool = make(similarity=kind)
        whole = pool.votes(x, edge_index, batch).local
        monkeypatch.setattr(similarity, "EDGES_AT_ONCE", 7)
        torch.testing.assert_close(pool.votes(x, edge_index, batch).local, whole)
        monkeypatch.undo()


def test_autocast_scores_in_full_precision():
    x, edge_index, batch = random_batch([6, 8], 2.0, 0)
    x = x.float()
    pool = make().float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, *_, score = pool(x.bfloat16(), edge_index, None, batch)
        out.float().sum().backward()
    assert out.dtype == torch.bfloat16
    assert score.dtype == torch.float32
    assert torch.equal(pool(x.bfloat16().float(), edge_index, None, batch)[5], score)


def test_torch_compile_gives_the_same_result():
    x, edge_index, batch = random_batch([6, 8], 2.0, 0)
    pool = make()
    optimized = torch.compile(pool, backend="aot_eager")
    for ours, theirs in zip(pool(x, edge_index, None, batch), optimized(x, edge_index, None, batch), strict=True):
        assert ours is theirs is None or torch.equal(ours, theirs)
    optimized(x, edge_index, None, batch)[0].sum().backward()
    assert pool.weight.grad is not None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_gives_the_same_result():
    x, edge_index, batch = random_batch([6, 8, 5], 2.0, 0)
    pool = make()
    on_cpu = pool(x, edge_index, None, batch)
    on_gpu = copy.deepcopy(pool).cuda()(x.cuda(), edge_index.cuda(), None, batch.cuda())
    assert torch.equal(on_cpu[4], on_gpu[4].cpu())
    torch.testing.assert_close(on_cpu[0], on_gpu[0].cpu())


def test_a_node_that_is_not_there_is_an_error_and_not_a_crash():
    x = torch.randn(4, 5)
    for wrong in ([[0], [7]], [[0, 1], [1, 100_000_000]], [[-1], [0]]):
        with pytest.raises(IndexError, match="edge_index names node"):
            TAPooling(5)(x, torch.tensor(wrong))
        with pytest.raises(IndexError, match="edge_index names node"):
            link_prediction_loss(x, torch.tensor(wrong))


def test_what_pyg_users_are_used_to():
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]], dtype=torch.int32)
    assert TAPooling(1)(torch.randn(4), edge_index)[0].shape == (2, 1)
    assert TAPooling(3, np.int64(3))(torch.randn(4, 3), edge_index)[0].shape == (3, 3)
    with pytest.raises(SettingError, match="dropout is at least 0"):
        TAPooling(3, dropout=-0.5)


def test_link_loss_in_half_precision_and_with_graphs_in_any_order():
    x, edge_index, batch = random_batch([300, 5], 2.0, 0)
    full = link_prediction_loss(x.float(), edge_index, batch, weight=torch.eye(CHANNELS))
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast("cpu", dtype=dtype):
            torch.testing.assert_close(
                link_prediction_loss(x.float(), edge_index, batch, weight=torch.eye(CHANNELS)), full
            )
    order = torch.randperm(305)
    mixed = link_prediction_loss(x[order].float(), torch.argsort(order)[edge_index], 3 * batch[order])
    torch.testing.assert_close(mixed, link_prediction_loss(x.float(), edge_index, batch))
    with pytest.raises(SettingError, match="similarity is one of"):
        link_prediction_loss(x, edge_index, batch, similarity="cosine")
    with pytest.raises(SettingError, match="needs its weight"):
        link_prediction_loss(x, edge_index, batch, similarity="concat")


def test_compiled_votes_and_losses_are_the_same():
    x, edge_index, batch = random_batch([6, 8], 2.0, 0)
    pool = make()
    optimized = torch.compile(lambda *a: (pool.votes(*a).score, link_prediction_loss(*a)), backend="aot_eager")
    score, loss = optimized(x, edge_index, batch)
    assert torch.equal(score, pool.votes(x, edge_index, batch).score)
    assert torch.equal(loss, link_prediction_loss(x, edge_index, batch))


def test_thousands_of_graphs_at_once():
    x, edge_index, batch = random_batch([3] * 4000, 2.0, 0)
    assert make(ratio=2)(x, edge_index, None, batch)[3].bincount().tolist() == [2] * 4000


def test_unpool_puts_rows_back():
    x = torch.randn(2, 3, requires_grad=True)
    back = unpool(x, torch.tensor([1, 3]), 5)
    assert torch.equal(back[[1, 3]], x)
    assert back[[0, 2, 4]].abs().sum() == 0
    back.sum().backward()
    assert torch.equal(x.grad, torch.ones(2, 3))


@given(batches, st.sampled_from(SIMILARITIES), st.sampled_from(["sigmoid", "softmax"]), st.sampled_from([1, 20, 10**6]))
@settings(max_examples=50)
def test_the_link_loss_equals_the_dense_formula(graphs, similarity, reading, pairs):
    from tapnet.nn import link

    x, edge_index, batch = graphs
    pool = make(similarity=similarity)
    before, link.PAIRS_AT_ONCE = link.PAIRS_AT_ONCE, pairs
    try:
        x1, x2 = (x / 3).requires_grad_(), (x / 3).requires_grad_()  # where no probability is 0 or 1 to rounding
        ours = link_prediction_loss(x1, edge_index, batch, weight=pool.weight, similarity=similarity, reading=reading)
        ours.backward()
    finally:
        link.PAIRS_AT_ONCE = before
    gradient = None if pool.weight is None else pool.weight.grad.clone()
    pool.zero_grad()
    theirs = torch.stack([dense.link_loss(pool, h, a, reading) for _, h, a in graphs_of(x2, edge_index, batch)]).mean()
    theirs.backward()
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(x1.grad, x2.grad, rtol=1e-5, atol=1e-8)
    if gradient is not None:
        torch.testing.assert_close(gradient, pool.weight.grad, rtol=1e-5, atol=1e-8)


def test_link_loss_of_two_nodes_by_hand():
    x = torch.tensor([[0.0], [0.0]])
    loss = link_prediction_loss(x, torch.tensor([[0, 1], [1, 0]]))
    torch.testing.assert_close(loss, torch.log(torch.tensor(2.0)))
    with pytest.raises(SettingError, match="'sigmoid' or 'softmax'"):
        link_prediction_loss(x, torch.tensor([[0, 1], [1, 0]]), reading="tanh")
