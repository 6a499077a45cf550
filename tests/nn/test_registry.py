"""Pooling layers by name and by class, and layers with PyG's calling convention in TAPNet."""

import sys

import pytest
import torch
from torch_geometric.nn import ASAPooling, DMoNPooling, EdgePooling, MemPooling, SAGPooling, TopKPooling

from tapnet import TAPNet, TAPooling, load_dataset
from tapnet.errors import SettingError
from tapnet.inference.explain import explain
from tapnet.models.tapnet import TAPNetSettings
from tapnet.nn.pool.registry import MUTAG, POOLS, find_name, list_pools, register, resolve, source_digest
from tapnet.nn.pool.select import SelectPooling


class DegreePool(SelectPooling):
    """Keeps the nodes with the most neighbours."""

    def score(self, h, batch):
        return batch.degree.to(h.dtype)


class FirstHalf(torch.nn.Module):
    """A user's own, with PyG's convention: the first half of each graph's nodes, last first."""

    def __init__(self, in_channels):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(in_channels))

    def forward(self, x, edge_index, edge_attr, batch):
        size, first = batch.bincount(), (batch.bincount().cumsum(0) - batch.bincount())[batch]
        place = torch.arange(len(x)) - first
        perm = (place < (size[batch] + 1) // 2).nonzero()[:, 0].flip(0)
        number = torch.full((len(x),), -1).index_copy(0, perm, torch.arange(len(perm)))
        edges = number[edge_index]
        return x[perm] * self.weight, edges[:, (edges >= 0).all(0)], None, batch[perm], perm, x[perm, 0]


class LosesAll(FirstHalf):
    """Loses every graph but the first."""

    def forward(self, x, edge_index, edge_attr, batch):
        perm = (batch == 0).nonzero()[:, 0]
        return x[perm], edge_index[:, :0], None, batch[perm], perm, None


class Dense(FirstHalf):
    """Returns padded features."""

    def forward(self, x, edge_index, batch):
        return x.unsqueeze(0), edge_index


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


@pytest.mark.parametrize("pool", [TopKPooling, SAGPooling, ASAPooling, EdgePooling, FirstHalf, DegreePool])
def test_a_class_trains_in_tapnet_and_its_weights_are_stored(mutag, pool):
    torch.manual_seed(0)
    model, batch = TAPNet(7, 2, pool=pool, ratios=(0.8, 0.5)), mutag.batch(range(24))
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.003), []
    for _ in range(4):
        loss = torch.nn.functional.cross_entropy(model.train()(batch), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert torch.tensor(losses).isfinite().all()
    again = TAPNet(7, 2, **model.settings.to_dict())
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.eval()(batch), model.eval()(batch))


@pytest.mark.parametrize("pool", [TopKPooling, SAGPooling, ASAPooling, EdgePooling, FirstHalf, DegreePool])
def test_alone_and_in_a_batch_a_graph_gets_the_same(pool):
    """Complete graphs: PyG's EdgePooling scores every edge to a leaf 1.5 and breaks these ties otherwise in a batch."""
    torch.manual_seed(0)
    n, graphs = 7, 20
    pairs = torch.combinations(torch.arange(n)).T
    edges = torch.cat([pairs, pairs.flip(0)], dim=1)
    x, model = torch.randn(graphs * n, 7), TAPNet(7, 2, pool=pool, ratios=(0.8,)).eval()
    batch = torch.arange(graphs).repeat_interleave(n)
    together = model(x, torch.cat([edges + n * g for g in range(graphs)], dim=1), batch)
    alone = torch.cat([model(part, edges) for part in x.split(n)])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)


def test_kept_nodes_are_ascending_and_explained(mutag):
    found = explain(TAPNet(7, 2, pool=FirstHalf).eval(), mutag.batch([0]))
    assert found.layers[0].kept.tolist() == [True] * 9 + [False] * 8
    assert torch.from_numpy(found.layers[0].score).isnan().tolist() == [False] * 9 + [True] * 8
    batch = mutag.batch([0, 1])
    merged = TAPNet(7, 2, pool=EdgePooling).pools[0](torch.randn(batch.num_nodes, 48), batch)
    assert merged.perm is None
    assert torch.equal(merged.batch.graph[merged.assignment], batch.graph)
    with pytest.raises(SettingError, match="merges"):
        explain(TAPNet(7, 2, pool=EdgePooling).eval(), mutag.batch([0]))


@pytest.mark.parametrize(
    ("pool", "reason"),
    [(DMoNPooling, "edge_index"), (MemPooling, "edge_index"), (torch.nn.Linear, "edge_index"), (dict, "Module")],
)
def test_what_cannot_pool_says_why(pool, reason):
    with pytest.raises(SettingError, match=reason):
        TAPNet(7, 2, pool=pool)


def test_what_goes_wrong_in_a_layer_is_said(mutag):
    with pytest.raises(ValueError, match="left no node"):
        TAPNet(7, 2, pool=LosesAll)(mutag.batch([0, 1]))
    with pytest.raises(ValueError, match="dense"):
        TAPNet(7, 2, pool=Dense)(mutag.batch([0, 1]))

    class Needs(FirstHalf):
        def __init__(self, in_channels, heads):
            super().__init__(in_channels)

    with pytest.raises(SettingError, match="heads"):
        TAPNet(7, 2, pool=Needs)


def test_names():
    assert set(POOLS) >= {"tap", "topk", "sort", "diff", "sag", "eigen", "haar", "none"}
    assert find_name(TAPooling) == "tap"
    assert register(DegreePool) == f"{__name__}:DegreePool" == TAPNetSettings(pool=DegreePool).pool
    assert TAPNet(7, 2, pool=DegreePool).settings.pool == f"{__name__}:DegreePool"
    assert resolve(f"{__name__}:DegreePool") is DegreePool
    assert source_digest("tap") == ""
    assert len(source_digest(register(DegreePool))) == 16
    with pytest.raises(SettingError, match="did you mean topk"):
        TAPNetSettings(pool="topq")


@pytest.mark.parametrize("pool", list_pools()[: len(POOLS)], ids=lambda pool: pool.name)
def test_every_built_in_layer_says_what_it_is(pool):
    assert pool.kind in ("select", "merge", "readout", "none")
    assert all((pool.about, pool.cost, pool.memory))
    assert pool.parameters is not None
    assert (pool.year is None) == (pool.paper == "")


def test_the_losses_that_a_layer_names_are_there(mutag):
    batch = mutag.batch([0, 1])
    x = torch.randn(batch.num_nodes, 48)
    for name, cls in POOLS.items():
        assert (cls.build(MUTAG)(x, batch).loss is not None) == bool(cls.losses), name


def test_a_layer_of_the_users_own_is_listed_as_such():
    register(FirstHalf)
    own = next(pool for pool in list_pools() if pool.name.endswith(":FirstHalf"))
    assert (own.kind, own.paper, own.year, own.parameters, own.losses) == ("own", "", None, 48, ())
    state = torch.get_rng_state()
    counts = {pool.name: pool.parameters for pool in list_pools()}
    assert (counts["tap"], counts["none"], counts["diff"]) == (48 * 48 + 48, 0, 49 * 15)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_name_is_imported_only_where_that_is_allowed(tmp_path, monkeypatch):
    (tmp_path / "own_pools_of_a_test.py").write_text(
        "from tapnet.nn.pool.sort import SortPool\nclass Own(SortPool):\n    '''Mine.'''\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    name = "own_pools_of_a_test:Own"
    for use in (lambda: TAPNetSettings(pool=name), lambda: resolve(name)):
        with pytest.raises(SettingError, match="own_pools_of_a_test:Own") as error:
            use()
        assert "--" not in str(error.value)
    assert "own_pools_of_a_test" not in sys.modules
    assert resolve(name, allow_import=True).__name__ == "Own"
    assert TAPNetSettings(pool=name).pool == name
    with pytest.raises(SettingError, match="no_such_module"):
        resolve("no_such_module:Own", allow_import=True)


def test_an_edited_class_without_a_file_has_another_digest():
    """As in a notebook: the class has no source that could be read."""
    digests = []
    for score in ("batch.degree.to(h.dtype)", "-batch.degree.to(h.dtype)", "batch.degree.to(h.dtype) * 2"):
        cell = {"SelectPooling": SelectPooling, "__name__": "notebook"}
        exec(f"class Mine(SelectPooling):\n    def score(self, h, batch):\n        return {score}", cell)
        digests.append(source_digest(register(cell["Mine"])))
    assert len(set(digests)) == 3
    assert all(len(digest) == 16 for digest in digests)


def test_the_same_class_without_a_file_has_the_same_digest():
    """Also with a function within a method, of which Python's text has an address, and with a set, of any order."""
    source = "class Mine(SelectPooling):\n    def score(self, h, batch):\n        return KIND"
    for body in ("(lambda: h[:, 0])()", "h[:, 0] if 'a' in {'a', 'b', 'c', 'd', 'e'} else h[:, 1]"):
        cells = [{"SelectPooling": SelectPooling, "__name__": "notebook"} for _ in range(2)]
        for cell in cells:
            exec(source.replace("KIND", body), cell)
        assert len({source_digest(register(cell["Mine"])) for cell in cells}) == 1
