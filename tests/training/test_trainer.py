"""The trainer: the same bits after a restore, and an evaluation that is the plain one."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from tapnet import TAPNet, load_dataset
from tapnet.training.settings import TrainingSettings
from tapnet.training.trainer import Trainer


@pytest.fixture(scope="module")
def mutag():
    return load_dataset("MUTAG")


def make(mutag, **changed):
    torch.manual_seed(0)
    return Trainer(TAPNet(7, 2), mutag, torch.arange(100), TrainingSettings(batch_size=32, **changed), seed=1)


def test_a_restored_trainer_continues_to_the_same_bits(mutag):
    whole, stopped = make(mutag), make(mutag)
    expected = [whole.train_epoch() for _ in range(4)]
    stopped = make(mutag)
    losses = [stopped.train_epoch() for _ in range(2)]
    state = stopped.state()
    torch.rand(5)
    resumed = make(mutag)
    resumed.restore(state)
    assert losses + [resumed.train_epoch() for _ in range(2)] == expected
    assert resumed.epoch == 4


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
