"""Poolers of torch-geometric-pool in TAPNet, and TAPooling among them; skipped where the library is not installed."""

import sys

import pytest
import torch

from tapnet import TAPNet, TAPooling, load_dataset
from tapnet.data.dense import DenseBatch
from tapnet.errors import SettingError
from tapnet.models.tapnet import TAPNetSettings
from tapnet.nn.pool.registry import source_digest
from tapnet.nn.pool.tgp import tap_pooler


def library():
    return pytest.importorskip("tgp.poolers", reason="pip install torch-geometric-pool", exc_type=ImportError)


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


def test_what_is_missing_is_named_with_how_to_get_it(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "tgp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tgp", None)
    with pytest.raises(SettingError, match="pip install torch-geometric-pool"):
        TAPNet(7, 2, pool="tgp:topk2")


def test_a_name_that_is_not_there():
    library()
    with pytest.raises(SettingError, match="did you mean topk"):
        TAPNet(7, 2, pool="tgp:topq")


@pytest.mark.parametrize("name", ["topk", "kmis", "ec", "mincut", "lap", "maxcut", "nmf", "eigen", "nopool"])
def test_a_pooler_trains_in_tapnet(mutag, name):
    library()
    torch.manual_seed(0)
    batch = mutag.batch(range(12))
    model = TAPNet(7, 2, ratios=(0.8, 0.5), pool=f"tgp:{name}", mean_nodes=18.0)
    assert model.settings.pool == f"tgp:{name}" == TAPNetSettings(pool=f"tgp:{name}").pool
    assert len(source_digest(f"tgp:{name}")) == 16
    outputs = model.outputs(batch)
    assert (outputs.auxiliary is not None) == (name in ("mincut", "maxcut"))
    (outputs.logits.square().sum() + (0 if outputs.auxiliary is None else outputs.auxiliary)).backward()
    assert all(p.grad is not None for p in model.parameters())
    first, second = list(model.eval().levels(batch))[1:]
    assert first.batch.num_graphs == second.batch.num_graphs == 12
    if name == "topk":
        assert (first.perm.diff() > 0).all()
    if name in ("kmis", "ec"):
        assert torch.equal(first.batch.graph[first.assignment], batch.graph)
    if name == "mincut":
        assert isinstance(first.batch, DenseBatch)
        assert first.assignment.shape == (batch.num_nodes, 15)


def test_a_class_is_taken_too(mutag):
    library()
    from tgp.poolers import TopkPooling

    torch.manual_seed(0)
    by_class = TAPNet(7, 2, pool=TopkPooling).eval()
    torch.manual_seed(0)
    by_name = TAPNet(7, 2, pool="tgp:topk").eval()
    assert torch.equal(by_class(mutag.batch(range(5))), by_name(mutag.batch(range(5))))


@pytest.mark.parametrize("gate", ["straight-through", "none", "tanh"])
def test_tap_is_one_of_its_poolers(mutag, gate):
    library()
    from tgp.src import PoolingOutput, SRCPooling

    batch = mutag.batch(range(9))
    x = torch.randn(batch.num_nodes, 16)
    pool, ours = tap_pooler()(16, ratio=0.6, gate=gate), TAPooling(16, ratio=0.6, gate=gate)
    assert isinstance(pool, SRCPooling)
    ours.load_state_dict(pool.selector.tap.state_dict())
    out = pool(x=x, adj=batch.edge_index, batch=batch.graph)
    assert isinstance(out, PoolingOutput)
    rows, edge_index, _, graph, perm, _ = ours(x, batch.edge_index, None, batch.graph)
    assert torch.equal(out.so.node_index, perm)
    torch.testing.assert_close(out.x, rows)
    assert torch.equal(out.edge_index, edge_index)
    assert torch.equal(out.batch, graph)
    for result in (out.x, rows):
        result.square().sum().backward() if gate != "none" else None
    if gate != "none":
        torch.testing.assert_close(pool.selector.tap.projection.grad, ours.projection.grad)
    lifted = pool(x=out.x, so=out.so, lifting=True)
    torch.testing.assert_close(lifted[perm], (out.x * out.so.weight[:, None]))
