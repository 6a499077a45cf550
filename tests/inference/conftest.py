"""A short run whose models the tests of this folder read."""

import pytest

import tapnet


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inference") / "run"
    return tapnet.cross_validate("MUTAG", epochs=2, folds=3, jobs=1, out=folder, final=True)


@pytest.fixture(scope="session")
def model(run):
    """The file of a fold's model."""
    return sorted((run.folder / "models").iterdir())[0]
