"""EigenGCN and HaarPool's network: what must be true of any classifier of graphs, and that they learn."""

import pytest
import torch
from torch_geometric.loader import DataLoader

from tapnet import load_dataset
from tapnet.data.batch import GraphBatch
from tapnet.errors import SettingError
from tapnet.models import eigenpool, haarpool
from tapnet.models.base import DataShape
from tapnet.models.eigenpool import EigenPoolSettings
from tapnet.models.haarpool import HaarPoolSettings

SPECS = {"eigen": eigenpool.SPEC, "haar": haarpool.SPEC}
SMALL = {
    "eigen": EigenPoolSettings(hidden_channels=32, layers=3, dense_channels=64, dropout=0.0),
    "haar": HaarPoolSettings(hidden_channels=32, dense_channels=(32, 16), dropout=0.0),
}


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


def make(kind, mutag, settings=None):
    torch.manual_seed(0)
    return SPECS[kind].build(DataShape.of(mutag), settings or SMALL[kind])


def test_the_defaults_are_their_authors():
    s = EigenPoolSettings()
    assert (s.hidden_channels, s.layers, s.ratios, s.vectors) == (128, 5, (0.1, 1), 3)
    assert (s.dense_channels, s.dropout) == (256, 0.5)
    h = SPECS["haar"].make_settings("PROTEINS", {})
    assert (h.hidden_channels, h.layers, h.ratios, h.dense_channels) == (128, 2, (0.5, 0.5, 1), (128, 64))
    m = SPECS["haar"].make_settings("MUTAG", {})
    assert (m.hidden_channels, m.layers, m.ratios, m.dense_channels) == (60, 1, (1,), (180, 60))
    assert SPECS["haar"].make_settings("MUTAG", {"poolings": 2}).ratios == (0.5, 1)
    assert HaarPoolSettings(**h.to_dict()) == HaarPoolSettings(dense_channels=[128, 64])
    assert hash(h) == hash(HaarPoolSettings())


def test_every_parameter_is_accounted_for(mutag):
    net = make("eigen", mutag, EigenPoolSettings())
    first = 7 * 128 + 128 + 4 * (128 * 128 + 128)
    second = 3 * 640 * 128 + 128 + 4 * (128 * 128 + 128)
    dense = (640 + 640 + 3 * 640) * 256 + 256 + 256 * 2 + 2
    assert net.num_parameters == first + second + dense
    net = make("haar", mutag, HaarPoolSettings())
    assert net.num_parameters == 7 * 128 + 128 + 5 * (128 * 128 + 128) + 128 * 128 + 128 + 128 * 64 + 64 + 64 * 2 + 2


@pytest.mark.parametrize("kind", SPECS)
def test_a_graph_alone_and_in_a_batch_gives_the_same_logits(mutag, kind):
    model = make(kind, mutag).double().eval()
    ready = SPECS[kind].prepare(mutag, model.settings)
    together = model(ready.batch(range(30)))
    alone = torch.cat([model(ready.batch([i])) for i in range(30)])
    torch.testing.assert_close(together, alone)
    assert together.std(dim=0).min() > 1e-4  # and they are not all the same


@pytest.mark.parametrize("kind", SPECS)
def test_called_as_pyg_calls_models_it_prepares_for_itself(mutag, kind):
    model = make(kind, mutag).eval()
    fast = model(SPECS[kind].prepare(mutag, model.settings).batch(range(16)))
    data = next(iter(DataLoader([mutag[i] for i in range(16)], batch_size=16)))
    torch.testing.assert_close(model(data.x, data.edge_index, data.batch), fast)
    one_hot = torch.nn.functional.one_hot(data.x, 7).float()
    torch.testing.assert_close(model(one_hot, data.edge_index, data.batch), fast)


@pytest.mark.parametrize("kind", SPECS)
def test_odd_graphs(mutag, kind):
    """One node; two without an edge; a path beside an isolated node; none at all; a directed edge."""
    model = make(kind, mutag).eval()
    edge_index = torch.tensor([[3, 4, 4, 5, 7], [4, 3, 5, 4, 8]])
    graph = torch.tensor([0, 1, 1, 2, 2, 2, 2, 4, 4])
    x = torch.arange(9) % 7
    logits = model(x, edge_index, graph)
    assert logits.shape == (5, 2)
    assert logits.isfinite().all()
    torch.testing.assert_close(logits[2:3], model(x[3:7], edge_index[:, :4] - 3))


@pytest.mark.parametrize("kind", SPECS)
def test_the_last_pooling_leaves_one_node(mutag, kind):
    model = make(kind, mutag)
    batch = SPECS[kind].prepare(mutag, model.settings).batch(range(12))
    graphs, nodes = batch, []
    for pool in model.pools:
        h = torch.randn(graphs.num_nodes, pool.in_channels)
        h, graphs, *_ = pool(h, graphs)
        nodes.append(graphs.nodes_per_graph)
    n = batch.nodes_per_graph
    halves = (n + 1) // 2
    expected = [(n + 9) // 10] if kind == "eigen" else [halves, (halves + 1) // 2]
    assert [k.tolist() for k in nodes] == [*(k.tolist() for k in expected), [1] * 12]
    assert isinstance(graphs, GraphBatch)


@pytest.mark.parametrize(
    ("settings", "chosen", "reason"),
    [
        (EigenPoolSettings, {"ratio": 0.0}, "ratio is"),
        (EigenPoolSettings, {"vectors": 0}, "vectors is at least 1"),
        (EigenPoolSettings, {"dropout": 1.0}, "dropout is at least 0 and below 1"),
        (HaarPoolSettings, {"poolings": 0}, "poolings is at least 1"),
        (HaarPoolSettings, {"dense_channels": (3,)}, "dense_channels is"),
        (HaarPoolSettings, {"ratio": 1.5}, "ratio is"),
    ],
)
def test_wrong_settings_are_refused(settings, chosen, reason):
    with pytest.raises(SettingError, match=reason):
        settings(**chosen)
