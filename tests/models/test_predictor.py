"""The batched forward pass gives each graph what it would get alone, in the order asked for."""

import pytest
import torch

from tapnet import TAPNet, load_dataset
from tapnet.models.base import DataShape
from tapnet.models.predictor import embed_graphs, predict_batches, predict_logits
from tapnet.models.registry import MODELS


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


def make(mutag, **settings):
    torch.manual_seed(0)
    return TAPNet(mutag.num_features, mutag.num_classes, mean_nodes=18.0, **settings).eval()


@pytest.mark.parametrize("pool", ["tap", "diff"])
def test_logits_are_those_of_each_graph_alone_in_the_order_asked_for(mutag, pool, monkeypatch):
    model, graphs = make(mutag, pool=pool), torch.tensor([5, 3, 150, 3, 77])
    expected = torch.cat([model(mutag.batch([g])) for g in graphs.tolist()]).detach()
    torch.testing.assert_close(predict_logits(model, mutag, graphs, batch_size=2), expected)
    monkeypatch.setattr("tapnet.models.base.ELEMENTS_AT_ONCE", 400)  # DiffPool then sorts its graphs by size
    torch.testing.assert_close(predict_logits(model, mutag, graphs), expected)
    assert predict_logits(model, mutag).shape == (188, 2)


def test_batches_say_which_graphs_they_hold(mutag):
    model, graphs = make(mutag), torch.arange(180, 188)
    batches = list(predict_batches(model, mutag, graphs, 3))
    assert [numbers.tolist() for numbers, _ in batches] == [[180, 181, 182], [183, 184, 185], [186, 187]]
    torch.testing.assert_close(torch.cat([out.logits for _, out in batches]), predict_logits(model, mutag, graphs))
    assert all(out.logits.is_inference() for _, out in batches)
    assert not torch.is_inference_mode_enabled()


def test_the_embedding_is_what_the_classifier_gets(mutag):
    model = make(mutag)
    with torch.no_grad():
        torch.testing.assert_close(model.classifier(embed_graphs(model, mutag)), predict_logits(model, mutag))


@pytest.mark.parametrize("name", [name for name, spec in MODELS.items() if spec.build is not None])
def test_every_network_embeds_graphs(name, mutag):
    spec = MODELS[name]
    model = spec.network(DataShape.of(mutag), spec.make_settings("MUTAG", {})).eval()
    some = mutag.subset(range(6))
    rows = embed_graphs(model, some)
    assert len(rows) == 6
    assert rows.shape[1] > 2
    torch.testing.assert_close(embed_graphs(model, mutag.subset([4]))[0], rows[4], rtol=1e-4, atol=1e-4)
    if hasattr(model, "out"):
        with torch.no_grad():
            torch.testing.assert_close(model.out(rows), predict_logits(model, some))
