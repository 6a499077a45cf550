"""Sets and intervals: the textbook's formulas, the promised coverage, and how far a graph is from the training data."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapnet.errors import DataError, SettingError
from tapnet.inference.model_file import ConformalRecord
from tapnet.inference.uncertainty import (
    check_confidence,
    conformal_scores,
    distances,
    fit_reference,
    largest_confidence,
    measured_coverage,
    prediction_intervals,
    prediction_sets,
    shares_nearer,
    with_quantiles,
)


def drawn(rng, n, classes=3):
    """A classifier whose probabilities are not right, and classes drawn from others."""
    logits = rng.normal(size=(n, classes))
    true = np.exp(1.5 * logits) / np.exp(1.5 * logits).sum(axis=1, keepdims=True)
    said = np.exp(4 * logits) / np.exp(4 * logits).sum(axis=1, keepdims=True)
    return (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), said


def within(hits, draws, share, deviations=4):
    """Whether a count is within the binomial's bounds of a share."""
    return abs(hits / draws - share) < deviations * math.sqrt(share * (1 - share) / draws)


@pytest.mark.parametrize("confidence", [0.75, 0.9])
def test_sets_of_exchangeable_graphs_hold_the_class_as_often_as_promised(confidence):
    """Exactly: with n scores and no ties, the coverage of split conformal is ceil((n + 1) c) / (n + 1)."""
    rng, hits, draws, n = np.random.default_rng(0), 0, 0, 39
    for _ in range(400):
        y, said = drawn(rng, n + 10)
        record = conformal_scores("classification", y[:n], said[:n], np.arange(n) % 3)
        sets = prediction_sets(record, "classification", said[None, n:], confidence)
        assert sets.any(axis=1).all()
        hits, draws = hits + int(sets[np.arange(10), y[n:]].sum()), draws + 10
    promised = math.ceil(confidence * (n + 1)) / (n + 1)
    assert hits / draws > promised - 4 * math.sqrt(promised * (1 - promised) / 400)  # draws of a repeat hang together


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_of_exchangeable_graphs_hold_the_number_as_often_as_promised(confidence):
    rng, hits, n = np.random.default_rng(1), 0, 79
    for _ in range(1500):
        said = 100 * rng.normal(size=(n + 1, 1))
        y = said + rng.standard_t(3, size=(n + 1, 1))
        record = conformal_scores("regression", y[:n], said[:n], np.arange(n) % 4)
        low, high = prediction_intervals(record, said[None, n:], confidence)
        hits += int(low[0, 0] <= y[n, 0] <= high[0, 0])
    assert within(hits, 1500, math.ceil(confidence * (n + 1)) / (n + 1))


@given(st.integers(1, 4), st.integers(0, 10**6), st.sampled_from([0.5, 0.8, 0.9]))
def test_cv_plus_is_the_textbooks(members, seed, confidence):
    """Barber et al. 2021, Eq. 11, and Romano et al. 2020, Eq. 9, graph by graph."""
    rng, n = np.random.default_rng(seed), 24
    folds = np.arange(n) % members
    y, out_of_fold = rng.normal(size=(n, 1)), rng.normal(size=(n, 1))
    record = conformal_scores("regression", y, out_of_fold, folds)
    numbers = rng.normal(size=(members, 5, 1))
    low, high = prediction_intervals(record, numbers, confidence)
    rank = math.ceil(confidence * (n + 1) - 1e-9)
    distance = np.abs(y - out_of_fold)[:, 0]
    for g in range(5):
        above = sorted(numbers[folds[i], g, 0] + distance[i] for i in range(n))
        below = sorted((numbers[folds[i], g, 0] - distance[i] for i in range(n)), reverse=True)
        assert high[g, 0] == pytest.approx(above[rank - 1], abs=1e-6)
        assert low[g, 0] == pytest.approx(below[rank - 1], abs=1e-6)
    classes, said = drawn(rng, n)
    _, new = drawn(rng, 5 * members)
    new = new.reshape(members, 5, 3)
    record = conformal_scores("classification", classes, said, folds)
    sets = prediction_sets(record, "classification", new, confidence)

    def score(p, c):
        return 0 if p.argmax() == c else 1 - p[c]

    for g in range(5):
        for c in range(3):
            smaller = sum(score(said[i], classes[i]) < score(new[folds[i], g], c) for i in range(n))
            assert sets[g, c] == (smaller < rank)


def test_labels_have_a_set_each_and_gaps_no_score():
    rng = np.random.default_rng(0)
    said = rng.random((200, 2))
    y = (rng.random((200, 2)) < said).astype(np.float32)
    y[:50, 1] = np.nan
    record = conformal_scores("multilabel", y, said, np.arange(200) % 4)
    assert [sum(map(len, column)) for column in record.scores] == [200, 150]
    sets = prediction_sets(record, "multilabel", np.array([[[0.99, 0.5], [0.01, 0.02]]]), 0.9)
    assert sets.shape == (2, 2, 2)
    assert sets[0, 0].tolist() == [False, True]
    assert sets[0, 1].tolist() == [True, True]
    assert sets[1, 0].tolist() == [True, False]


def test_coverage_is_measured_on_folds_that_were_left_out():
    rng = np.random.default_rng(0)
    y, said = drawn(rng, 2000)
    record = conformal_scores("classification", y, said, np.arange(2000) % 10)
    assert record.coverage.keys() == {"0.8", "0.9", "0.95"}
    assert within(record.coverage["0.9"] * 2000, 2000, 0.9)
    strange = ConformalRecord(scores=[[[0.1] * 50, [0.9] * 50]], graphs=100)  # the second fold is unlike the first
    assert measured_coverage(strange, 0.8) == 0.5
    assert measured_coverage(ConformalRecord(scores=[[[0.1, 0.2] * 50]], graphs=100), 0.8) == 0.5  # halves of one fold


def test_a_confidence_needs_enough_graphs():
    record = ConformalRecord(scores=[[[0.1] * 19]], graphs=19)
    assert largest_confidence(record) == 0.95
    assert check_confidence(record, 0.95) is record
    with pytest.raises(SettingError, match=r"0.99 needs at least 99 held-out graphs, and the model has 19.*0.95"):
        check_confidence(record, 0.99)
    for nonsense in (0, 1, -1, 90, math.nan):
        with pytest.raises(SettingError, match="between 0 and 1"):
            check_confidence(record, nonsense)
    with pytest.raises(DataError, match="train one"):
        check_confidence(None, 0.9)


def test_a_large_run_keeps_a_sample_of_its_scores():
    rng = np.random.default_rng(0)
    y, said = drawn(rng, 12_000)
    record = conformal_scores("classification", y, said, np.arange(12_000) % 3)
    assert record.graphs == sum(map(len, record.scores[0])) == 10_000
    assert within(record.coverage["0.9"] * 10_000, 10_000, 0.9)


def test_graphs_of_the_training_kind_are_near_and_others_far():
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(40, 40))  # directions of very different size, and some that nothing varies in
    mixed[:, 30:] = 0
    train, usual = ((rng.normal(size=(n, 40)) * 3.0 ** -np.arange(40)) @ mixed for n in (500, 2000))
    record = with_quantiles(fit_reference(train), distances(fit_reference(train[::2]), train[1::2]))
    share = shares_nearer(record, usual)
    assert abs(np.median(share) - 0.5) < 0.07
    assert (share > 0.99).mean() < 0.03
    elsewhere = usual[:5].copy()
    elsewhere[:, 35] += 100  # where no training graph ever was
    assert shares_nearer(record, elsewhere).tolist() == [1.0] * 5
    assert shares_nearer(record, np.full((1, 40), np.nan)).tolist() == [1.0]


@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 10**6))
def test_few_graphs_and_constant_embeddings_have_a_reference_too(n, width, seed):
    rows = np.random.default_rng(seed).integers(0, 2, size=(n, width)).astype(float)
    found = distances(fit_reference(rows), rows)
    assert np.isfinite(found).all()
    assert (distances(fit_reference(rows), rows + 1e4) > found.max()).all()


def test_a_copy_of_a_training_graph_is_not_unlike_the_training_data():
    """Where graphs are copies of a few, held-out ones are all as far as each other but for rounding."""
    kinds = np.random.default_rng(0).normal(size=(2, 12))
    record = fit_reference(np.repeat(kinds, 20, axis=0))
    held_out = distances(record, kinds).repeat(20) * np.random.default_rng(1).uniform(0.9995, 1.0, 40)
    assert (shares_nearer(with_quantiles(record, held_out), kinds) < 1).all()
