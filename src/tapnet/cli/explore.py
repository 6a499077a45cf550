"""`tapnet explore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tapnet.cli.app import DataDir, OwnConv, OwnPool, notes, own_layer
from tapnet.errors import TapnetError


def explore(
    model: Annotated[Path, typer.Argument(help="A model file; or the folder of a run or of a comparison.")],
    dataset: Annotated[
        str | None, typer.Option(help="The data set whose graphs can be chosen.", show_default="the model's own")
    ] = None,
    pool: OwnPool = None,
    conv: OwnConv = None,
    data_dir: DataDir = None,
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another name by which browsers reach this machine; may be repeated."),
    ] = None,
    port: Annotated[int, typer.Option(help="The port to listen at; 0: any free one.", min=0, max=65535)] = 8765,
    browser: Annotated[bool, typer.Option(help="Open the page there.", rich_help_panel="Browser")] = True,
) -> None:
    """Look at predictions and what they rest on, or at stored results, on a page of your own machine.

    Choose a graph of the data set or drop a file of your own; take nodes away, compare graphs, move the sliders. Of a
    run or a comparison there are tables, curves, the settings that were tried, and the verdict.
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError:
        raise TapnetError("the page needs FastAPI and uvicorn: pip install fastapi uvicorn") from None
    from tapnet.explorer.load import load_pages
    from tapnet.explorer.server import address_of, listen, serve
    from tapnet.inference.model_file import find_model_file

    with notes():
        explorer, results = load_pages(model, dataset, data_dir, own_layer(pool), own_layer(conv))
    if explorer is not None and explorer.missing:
        typer.echo(f"{explorer.missing}; --dataset or --data-dir says where it is. Graphs come from files of your own.")
    listener = listen(host, port)
    address = address_of(listener)
    shown = str(model) if explorer is None else f"{explorer.saved.name}, {find_model_file(model).name}"
    typer.echo(f"{shown}: {address} (Ctrl-C stops it)")
    if browser:
        _open(address)
    serve(explorer, listener, allow_host or (), results)


def _open(address: str) -> None:
    """In the background: some browsers keep the caller waiting."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
