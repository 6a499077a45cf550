"""Data in shards: every graph is trained on once in an epoch, whichever machines are left."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tapnet import TAPNet, load_dataset
from tapnet.training.distributed import SINGLE_PROCESS
from tapnet.training.settings import TrainingSettings
from tapnet.training.shards import graphs_of_turn, plan_turns, steps_of_turn, train_turn
from tapnet.training.trainer import make_optimizer

holdings = st.lists(st.sets(st.integers(0, 8)), min_size=1, max_size=4)


@given(holdings, st.sets(st.integers(0, 8)))
def test_every_shard_is_in_one_turn_and_whole_ones_are_read_by_a_process_that_holds_them(held, shards):
    turns = plan_turns(held, shards)
    assert all(len(turn) == len(held) for turn in turns)
    assert sorted(shard for turn in turns for shard in set(turn)) == sorted(shards)
    for turn in turns:
        if len(set(turn)) > 1:
            assert len(set(turn)) == len(held)
            assert all(shard in some for shard, some in zip(turn, held, strict=True))


@given(holdings, st.integers(1, 50))
def test_the_processes_of_a_turn_see_each_graph_once(held, num_graphs):
    for turn in plan_turns(held, range(9)):
        seen = [(s, g) for i, s in enumerate(turn) for g in graphs_of_turn(turn, i, num_graphs).tolist()]
        assert sorted(seen) == [(shard, graph) for shard in sorted(set(turn)) for graph in range(num_graphs)]


def test_the_shards_of_a_lost_machine_are_shared_by_those_that_are_left():
    assert plan_turns([[0, 3], [1, 4], [2, 5]], range(6)) == [(0, 1, 2), (3, 4, 5)]
    assert plan_turns([[0, 3], [1, 4]], range(6)) == [(0, 1), (3, 4), (2, 2), (5, 5)]
    assert plan_turns([[0, 3], [1, 4]], {2, 4, 5}) == [(2, 2), (4, 4), (5, 5)]  # from the middle of an epoch
    assert plan_turns([[0, 1], [0, 1]], range(2)) == [(0, 1)]  # two processes on one machine
    assert graphs_of_turn((2, 2), 1, 5).tolist() == [3, 4]


@given(st.lists(st.integers(1, 200), min_size=1, max_size=4), st.integers(1, 64))
def test_every_process_has_a_graph_in_every_step(sizes, batch_size):
    steps = steps_of_turn(sizes, batch_size)
    assert 1 <= steps <= min(sizes)
    assert steps == min(sizes) or max(sizes) <= steps * batch_size


def test_a_process_without_graphs_is_an_error():
    with pytest.raises(ValueError, match="3, 0"):
        steps_of_turn([3, 0], 64)


def test_a_turn_trains_on_each_graph_once_and_learns():
    mutag = load_dataset("MUTAG")
    model = TAPNet(mutag.num_features, 2)
    optimizer = make_optimizer(model, TrainingSettings(lr=0.01))
    options = {"batch_size": 50, "sizes": [150], "group": SINGLE_PROCESS, "generator": torch.Generator()}
    losses = [train_turn(model, optimizer, mutag, torch.arange(150), **options) for _ in range(8)]
    assert losses[-1] < 0.9 * losses[0]
    assert {int(state["step"]) for state in optimizer.state.values()} == {8 * 3}
