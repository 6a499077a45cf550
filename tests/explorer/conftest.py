"""MUTAG, a model of it, and the page of that model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the page needs FastAPI and uvicorn: pip install 'tapnet[explore]'")
pytest.importorskip("uvicorn", reason="the page needs FastAPI and uvicorn: pip install 'tapnet[explore]'")

import tapnet
from tapnet import GraphDataset, load_dataset
from tapnet.explorer.results import Results
from tapnet.explorer.views import Explorer
from tapnet.inference.model import SavedModel
from tapnet.inference.model_file import CalibrationRecord
from tapnet.inference.uncertainty import conformal_scores, fit_reference
from tapnet.models.predictor import embed_graphs
from tests.helpers.pages import make_model, running, write_named_graphs


@pytest.fixture(scope="session")
def mutag() -> GraphDataset:
    return load_dataset("MUTAG", download=False)


@pytest.fixture(scope="session")
def saved(mutag: GraphDataset) -> SavedModel:
    return make_model(mutag)


@pytest.fixture(scope="session")
def explorer(saved: SavedModel, mutag: GraphDataset) -> Explorer:
    return Explorer(saved, mutag)


@pytest.fixture(scope="session")
def model_file(saved: SavedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("model") / "mutag.safetensors"
    saved.save(file)
    return file


@pytest.fixture(scope="session")
def page(model_file: Path) -> Iterator[str]:
    """The address of a page that many tests visit."""
    with running(model_file) as (address, _):
        yield address


@pytest.fixture(scope="session")
def named_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named")
    write_named_graphs(folder)
    return folder


@pytest.fixture(scope="session")
def named(named_folder: Path) -> Explorer:
    """A page of graphs whose files and nodes have names."""
    data = load_dataset(named_folder)
    return Explorer(make_model(data), data)


@pytest.fixture(scope="session")
def sure(saved: SavedModel, mutag: GraphDataset) -> Explorer:
    """A page of a model whose file says how sure it is."""
    encoded = saved.encode(mutag)
    said, folds = saved.probabilities(encoded).numpy(), np.arange(len(mutag)) % 3
    card = saved.card.replace(
        calibration=CalibrationRecord(method="temperature", temperature=[2.0]),
        conformal=conformal_scores("classification", mutag.y.numpy(), said, folds),
        reference=fit_reference(embed_graphs(saved.network, encoded).numpy()),
    )
    return Explorer(replace(saved, card=card), mutag)


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a comparison in which settings were tried."""
    folder = tmp_path_factory.mktemp("results") / "compared"
    tapnet.compare("MUTAG", ["gin"], protocol="nested", configs=2, folds=3, epochs=1, jobs=1, final_seeds=1, out=folder)
    return folder


@pytest.fixture(scope="session")
def results(compared: Path) -> Results:
    return Results(compared)
