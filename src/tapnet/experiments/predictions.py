"""Out-of-fold predictions of every graph as a table, from which any metric can be computed later."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tapnet.data.dataset import GraphDataset
from tapnet.errors import DataError
from tapnet.experiments.trial import TrialResult
from tapnet.files import write_atomically


def write_predictions(file: Path, results: Sequence[TrialResult], dataset: GraphDataset) -> None:
    """Writes what each fold's network says of its test graphs: a line for each, by the number of the graph.

    The columns are the number and name of the graph, the seed if there are several, the fold, the target and the
    prediction; of classes then the probability of each, of labels their probabilities. Classes are called by their
    names, where the data set has names for them. What is missing is an empty cell.

    Args:
        file: a CSV file, which is replaced.
        results: of the folds, with their predictions.
        dataset: the data that they were trained on.
    """
    names = dataset.target_names or tuple(f"target {i}" for i in range(dataset.num_outputs))
    classes = dataset.task == "classification"
    if classes:
        names = dataset.class_names or tuple(map(str, dataset.classes))
        header = ["class", "prediction", *(f"p({name})" for name in names)]
    else:
        header = [*names, *(f"predicted {name}" for name in names)]
    several = len({result.trial.seed for result in results}) > 1
    lines: list[tuple[int, list[Any]]] = []
    for result in results:
        found = result.predicted.get("test")
        if found is None:
            continue
        if (found.graphs >= len(dataset)).any() or (classes and found.values.shape[1] != dataset.num_classes):
            raise DataError(f"the stored result {result.trial.key} is of other data: delete it, and run again")
        best = found.values.argmax(1)
        for i, graph in enumerate(found.graphs.tolist()):
            said = [f"{value:.6g}" for value in found.values[i]]
            if classes:
                cells = [names[int(found.y[i])], names[int(best[i])], *said]
            else:
                cells = [*("" if math.isnan(v) else f"{v:.6g}" for v in found.y[i]), *said]
            name = dataset.graph_names[graph] if dataset.graph_names else ""
            run = [result.trial.seed, result.trial.fold] if several else [result.trial.fold]
            lines.append((graph, [graph, name, *run, *cells]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["graph", "name", *(["seed"] if several else []), "fold", *header])
    writer.writerows(line for _, line in sorted(lines, key=lambda line: line[0]))
    write_atomically(file, text.getvalue().encode())
