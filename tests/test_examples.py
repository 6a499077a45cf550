"""Every program in examples/ runs as it stands, and says how its accuracy was measured."""

import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
SAYS = {
    "custom_pooling": ["3 folds × 25 epochs"],
    "molecules_to_explanation": ["Written: molecule.png"],
    "pyg_model": ["held out once"],
    "sklearn_grid_search": ["3 stratified folds of 90 graphs, 20 epochs", "On the 30 graphs that the search never saw"],
}


def test_there_are_four():
    assert [file.stem for file in EXAMPLES] == sorted(SAYS)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_it_runs(file, tmp_path):
    done = subprocess.run([sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert all(words in done.stdout for words in SAYS[file.stem])
    assert " %" in done.stdout
    assert "epochs" in done.stdout
    for picture in tmp_path.glob("*.png"):
        height, width = matplotlib.image.imread(picture).shape[:2]
        assert width > 500 < 2 * height
