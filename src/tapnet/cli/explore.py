"""`tapnet explore`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tapnet.cli.app import DataDir, notes
from tapnet.errors import DatasetNotFoundError, SettingError, TapnetError

if TYPE_CHECKING:
    from tapnet.explorer.views import Explorer


def explore(
    model: Annotated[Path, typer.Argument(help="A model file, or the folder of a run that has a final model.")],
    dataset: Annotated[
        str | None, typer.Option(help="The data set whose graphs can be chosen.", show_default="the model's own")
    ] = None,
    data_dir: DataDir = None,
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at; 0: any free one.")] = 8765,
    browser: Annotated[bool, typer.Option(help="Open the page there.", rich_help_panel="Browser")] = True,
) -> None:
    """Look at graphs and what a trained network keeps of them, on a page of your own machine.

    Choose a graph of the data set or drop a file of your own; move the sliders and see the selection change.
    """
    if not 0 <= port <= 65535:
        raise SettingError(f"--port is a number from 0 to 65535, not {port}")
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError:
        raise TapnetError("the page needs FastAPI and uvicorn: pip install 'tapnet[explore]'") from None
    from tapnet.explorer.server import address_of, listen, serve
    from tapnet.inference.model_file import find_model_file

    model = find_model_file(model)
    explorer = find_explorer(model, dataset, data_dir)
    listener = listen(host, port)
    address = address_of(listener)
    typer.echo(f"{explorer.saved.name}, {model.name}: {address} (Ctrl-C stops it)")
    if browser:
        _open(address)
    serve(explorer, listener)


def find_explorer(file: Path, dataset: str | None, data_dir: Path | None) -> Explorer:
    """The model with its data set; without one there are still files of one's own."""
    from tapnet.explorer.views import Explorer
    from tapnet.inference.model import SavedModel
    from tapnet.io.load import load_dataset

    saved = SavedModel.load(file)
    try:
        with notes():
            data = load_dataset(dataset or saved.name, data_dir, features=saved.features, download=False)
            if dataset is None:
                saved.warn_if_other_data(data)
            return Explorer(saved, data)
    except DatasetNotFoundError:
        if dataset is not None:
            raise
        missing = f"{saved.name}, the data set of this model, is not here; --dataset or --data-dir says where it is"
        typer.echo(f"{missing}. Graphs come from files of your own.")
        return Explorer(saved, missing=missing)


def _open(address: str) -> None:
    """In the background: some browsers keep the caller waiting."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
