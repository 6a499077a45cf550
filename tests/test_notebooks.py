"""Every notebook in examples/notebooks runs from the first cell to the last, in a real kernel, and draws."""

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "examples" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_it_runs(file, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(file, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert "image/png" in kinds
    assert not [output for output in outputs if output.output_type == "error"]
    texts = [output["data"]["text/plain"] for output in outputs if "text/plain" in output.get("data", {})]
    if file.stem != "layer_in_pyg":  # a loop of PyG's own has no protocol
        assert any("protocol fair" in text and "3 folds" in text for text in texts)
    stored = nbformat.read(file, as_version=4)
    assert any(cell.outputs for cell in stored.cells if cell.cell_type == "code")  # shown in the docs as it is


def test_a_notebook_shows_bars_and_pictures_by_themselves(tmp_path):
    """In a real kernel, without ipywidgets; what a cell displays is what a person sees."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    cells = [
        "import tapnet\nmutag = tapnet.load_dataset('MUTAG')\n"
        "result = tapnet.cross_validate(mutag, epochs=2, folds=3, jobs=1, out='run', final=True)",
        "model = tapnet.TAPClassifier(epochs=2, verbose=True).fit(mutag)",
        "from tapnet.inference.explain_graph import explain_graph\nexplain_graph(tapnet.load_model('run'), 0).plot()",
        "model.explain(mutag[0]).plot()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    displayed = [[] for _ in cells]
    process = client.process_message

    def record(message, cell, index):
        content = message["content"]
        if message["msg_type"] in ("display_data", "update_display_data", "execute_result"):
            displayed[index].append(content["data"])
        return process(message, cell, index)

    client.process_message = record
    client.execute()
    assert any("epochs in all" in data.get("text/html", "") for data in displayed[0])
    assert any("TAPClassifier" in data.get("text/html", "") for data in displayed[1])
    assert all(not data.get("text/plain") for data in (displayed[0][-1], displayed[1][-1]))  # gone at the end
    assert all("image/png" in displayed[i][-1] for i in (2, 3))
    said = "".join(output.get("text", "") for cell in notebook.cells for output in cell.outputs)
    assert 'install "ipywidgets"' not in said  # what rich's own bars say; the import of tqdm says something alike
