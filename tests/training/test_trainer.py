"""The trainer: the same bits after a restore, and an evaluation that is the plain one."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from tapnet import GraphDataset, TAPNet, load_dataset
from tapnet.errors import SettingError
from tapnet.models.base import DataShape
from tapnet.models.registry import find_model
from tapnet.training.settings import TrainingSettings
from tapnet.training.trainer import Trainer, make_optimizer


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


def make(mutag, conv="gcn", **changed):
    torch.manual_seed(0)
    settings = TrainingSettings(**{"batch_size": 32, **changed})
    return Trainer(TAPNet(7, 2, conv=conv), mutag, torch.arange(100), settings, seed=1)


@pytest.mark.parametrize("changed", [{}, {"ema_decay": 0.9}, {"average_power": 6}])
def test_a_restored_trainer_continues_to_the_same_bits(mutag, changed):
    whole, stopped = make(mutag, **changed), make(mutag, **changed)
    expected = [whole.train_epoch() for _ in range(4)]
    stopped = make(mutag, **changed)
    losses = [stopped.train_epoch() for _ in range(2)]
    state = stopped.state()
    torch.rand(5)
    resumed = make(mutag, **changed)
    resumed.restore(state)
    assert losses + [resumed.train_epoch() for _ in range(2)] == expected
    assert resumed.epoch == 4
    assert_same_weights(resumed.model, whole.model, rtol=0, atol=0)


def assert_same_weights(model, expected, **tolerance):
    expected = expected if isinstance(expected, dict) else expected.state_dict()
    for name, values in model.state_dict().items():
        torch.testing.assert_close(values, expected[name], **tolerance, msg=name)


# For each average what the first of the steps is that count, and the share of each that follows.
AVERAGES = {"ema_decay": (0.6, 4, (1 / 2, 0.4, 0.4)), "average_power": (2, 0, [3 / (t + 2) for t in range(2, 9)])}


@pytest.mark.parametrize("name", AVERAGES)
def test_averages_are_those_of_the_steps(mutag, monkeypatch, name):
    """Of the same steps as without averages: 4 an epoch, with batch norms, whose statistics are averaged as well."""
    value, first, shares = AVERAGES[name]
    plain, averaging = make(mutag, "gin", lr=0.01), make(mutag, "gin", lr=0.01, **{name: value})
    step, seen = plain.optimizer.step, []

    def recorded():
        step()
        seen.append({name: values.clone() for name, values in plain.model.state_dict().items()})

    monkeypatch.setattr(plain.optimizer, "step", recorded)
    random = torch.get_rng_state()
    losses = [plain.train_epoch() for _ in range(2)]
    torch.set_rng_state(random)
    assert [averaging.train_epoch() for _ in range(2)] == losses
    expected = seen[first]
    for values, share in zip(seen[first + 1 :], shares, strict=True):
        expected = {
            k: (1 - share) * v + share * values[k] if v.is_floating_point() else values[k] for k, v in expected.items()
        }
    assert_same_weights(averaging.model, expected, rtol=1e-4, atol=1e-6)
    assert not torch.equal(averaging.model.classifier.out.weight, plain.model.classifier.out.weight)


def test_an_epoch_of_one_step_has_no_average_but_its_weights(mutag):
    plain, averaging = make(mutag, batch_size=100), make(mutag, batch_size=100, ema_decay=0.9)
    for trainer in (plain, averaging):
        torch.manual_seed(0)
        trainer.train_epoch()
    assert_same_weights(averaging.model, plain.model, rtol=0, atol=0)


def test_a_step_counts_as_a_power_of_its_number():
    """The weights of 5 steps are the binomials (t + 1 choose 2) ∝ t (t + 1), with the power 2."""
    counts = np.eye(5)[0]
    for t in range(2, 6):
        counts = counts + 3 / (t + 2) * (np.eye(5)[t - 1] - counts)
    expected = np.array([t * (t + 1) for t in range(1, 6)])
    np.testing.assert_allclose(counts, expected / expected.sum())


def test_there_is_one_average_and_keys_of_trials_from_before_stay():
    assert not {"ema_decay", "average_power"} & TrainingSettings().to_dict().keys()
    assert TrainingSettings(ema_decay=0.9).to_dict()["ema_decay"] == 0.9
    with pytest.raises(SettingError, match="choose one"):
        TrainingSettings(ema_decay=0.9, average_power=6)


def test_evaluation_is_the_mean_over_graphs(mutag):
    trainer, graphs = make(mutag), torch.arange(100, 188)
    loss, accuracy, predicted = trainer.evaluate(graphs)
    batch = mutag.batch(graphs)
    logits = trainer.model.eval()(batch)
    assert loss == pytest.approx(float(cross_entropy(logits, batch.y).detach()), rel=1e-5)
    assert accuracy == pytest.approx(100 * float((logits.argmax(1) == batch.y).double().mean()))
    torch.testing.assert_close(predicted, logits.softmax(1).detach())


def test_the_learning_rate_is_halved_every_so_many_epochs(mutag):
    trainer = make(mutag, halve_lr_every=2, lr=0.01)
    rates = []
    for _ in range(5):
        trainer.train_epoch()
        rates.append(trainer.optimizer.param_groups[0]["lr"])
    assert rates == [0.01, 0.01, 0.005, 0.005, 0.0025]


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_connectivity_goes_evenly_from_the_first_epoch_to_the_last_and_a_restored_trainer_goes_on(mutag, ema_decay):
    def scheduled(epochs):
        torch.manual_seed(0)
        model = TAPNet(7, 2, 8, connectivity=0.1, connectivity_end=0.9)
        settings = TrainingSettings(epochs=epochs, ema_decay=ema_decay)
        return Trainer(model, mutag, torch.arange(60), settings, seed=1)

    def connectivities(trainer):
        return [pool.scheduled_connectivity.item() for pool in trainer.model.pools]

    whole, found, losses, states = scheduled(5), [], [], []
    for loss in whole.fit():
        losses.append(loss)
        states.append({name: value.clone() for name, value in whole.model.state_dict().items()})
        found.append(connectivities(whole))
        assert [pool.scheduled_connectivity.item() for pool in whole._stepped.pools] == found[-1]
    assert np.array(found) == pytest.approx(np.array([[0.1] * 3, [0.3] * 3, [0.5] * 3, [0.7] * 3, [0.9] * 3]))
    stopped, resumed = scheduled(5), scheduled(5)
    first = [stopped.train_epoch() for _ in range(2)]
    resumed.restore(stopped.state())
    assert [pool.scheduled_connectivity for pool in resumed.model.pools] == [
        pool.scheduled_connectivity for pool in stopped.model.pools
    ]
    assert first + list(resumed.fit()) == losses
    chosen = scheduled(5)
    chosen.model.load_state_dict(states[1])  # as a protocol takes the weights of an earlier epoch
    assert connectivities(chosen) == found[1]
    alone = scheduled(1)
    alone.train_epoch()
    assert connectivities(alone) == pytest.approx([0.1] * 3)


def numbered_graphs(scale=1.0, shift=0.0, seed=0):
    """Paths whose nodes and edges carry two numbers each, and a third that is the same everywhere."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for i in range(30):
        edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        x, edge_attr = torch.randn(3, 2, generator=generator), torch.randn(2, 2, generator=generator)
        x = torch.cat([scale * (x + i % 2) + shift, torch.full((3, 1), 0.1)], dim=1)
        edge_attr = (scale * edge_attr + shift).repeat_interleave(2, dim=0)
        graphs.append(Data(x=x, edge_index=edge_index, edge_attr=edge_attr, y=torch.tensor([i % 2])))
    return GraphDataset.from_pyg(graphs)


def trained_on_numbers(dataset, model="tapnet", **settings):
    spec, graphs = find_model(model), torch.arange(20)
    chosen = spec.make_settings("", settings)
    torch.manual_seed(0)
    network = spec.network(DataShape.of(dataset), chosen)
    trainer = Trainer(network, spec.prepare(dataset, chosen), graphs, TrainingSettings(epochs=3, lr=0.01), seed=0)
    return trainer, list(trainer.fit())


def test_numbers_of_nodes_and_edges_have_the_scale_of_the_training_graphs():
    dataset = numbered_graphs(1e6, 5e6)
    network = trained_on_numbers(dataset, conv="gine")[0].model
    nodes, edges = dataset.node_attributes[:60], dataset.edge_attributes[:80]
    torch.testing.assert_close(network.node_mean, nodes.double().mean(0).float())
    torch.testing.assert_close(network.node_scale[:2], nodes[:, :2].double().std(0, correction=0).float())
    assert network.node_scale[2] == 1  # a constant stays 0, and does not become rounding errors
    torch.testing.assert_close(network.edge_scale, edges.double().std(0, correction=0).float())


@pytest.mark.parametrize(
    ("model", "settings"), [("tapnet", {}), ("tapnet", {"conv": "gine"}), ("gin", {}), ("bag", {})]
)
def test_the_units_of_numbers_do_not_matter(model, settings):
    expected = trained_on_numbers(numbered_graphs(), model, **settings)[1]
    for scale, shift in ((1e6, 0.0), (1e-6, 0.0), (100.0, 300.0)):
        assert trained_on_numbers(numbered_graphs(scale, shift), model, **settings)[1] == pytest.approx(
            expected, rel=1e-2
        )


def test_categories_alone_have_no_scale(mutag):
    spec = find_model("tapnet")
    assert not dict(spec.network(DataShape.of(mutag), spec.make_settings("", {})).named_buffers())


@pytest.mark.parametrize(("name", "kind"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)])
def test_the_optimizer_is_torch_s_to_the_bit(name, kind):
    settings = TrainingSettings(optimizer=name)
    ours, theirs = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    theirs.load_state_dict(ours.state_dict())
    shared = {"weight_decay": settings.weight_decay, "amsgrad": settings.amsgrad, "fused": True}
    optimizers = make_optimizer(ours, settings), kind(theirs.parameters(), settings.lr, **shared)
    x = torch.randn(5, 3)
    for _ in range(3):
        for layer, optimizer in zip((ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            layer(x).square().sum().backward()
            optimizer.step()
    assert torch.equal(ours.weight, theirs.weight)
    assert str(optimizers[0].state_dict()) == str(optimizers[1].state_dict())


def test_training_imports_neither_torch_s_compiler_nor_scikit_learn():
    code = """
import sys, torch
from tapnet import TAPNet, load_dataset
from tapnet.training.metrics import METRICS
from tapnet.training.settings import TrainingSettings
from tapnet.training.trainer import Trainer
trainer = Trainer(TAPNet(7, 2), load_dataset("MUTAG"), torch.arange(20), TrainingSettings(), seed=0)
trainer.train_epoch()
predicted = trainer.evaluate(torch.arange(20)).predicted.numpy()
METRICS["rmse"](predicted[:, 0], predicted[:, 1])
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"torch._dynamo", "sklearn"} & set(done.stdout.split()) == set()
