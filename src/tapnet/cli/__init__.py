"""The command `tapnet`: one file a command."""

from tapnet.cli.app import Command, app, main
from tapnet.cli.bench import bench
from tapnet.cli.compare import compare
from tapnet.cli.datasets import datasets
from tapnet.cli.explain import explain
from tapnet.cli.explore import explore
from tapnet.cli.merge import merge
from tapnet.cli.models import models
from tapnet.cli.pools import pools
from tapnet.cli.predict import predict
from tapnet.cli.reproduce import reproduce
from tapnet.cli.show import show
from tapnet.cli.train import train
from tapnet.cli.tune import tune

__all__ = ["app", "main"]

for _command in (
    datasets,
    train,
    tune,
    compare,
    predict,
    explain,
    show,
    explore,
    models,
    pools,
    reproduce,
    merge,
    bench,
):
    app.command(cls=Command)(_command)
