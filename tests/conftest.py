"""What all tests share: a cache of their own, and the real data sets where they are there."""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before torch: two test processes with two threads each would wait for each other

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.helpers.commands import end_server

settings.register_profile("tapnet", deadline=None, max_examples=60, derandomize=True)  # --all looks further
settings.register_profile("all", deadline=None, max_examples=600)

REAL_DATA = os.environ.get("TAPNET_DATA")
OWN_HOSTS = {"localhost", "::1", "0.0.0.0", socket.gethostname()}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="also the tests that take minutes, and more examples")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("all" if config.getoption("--all") else "tapnet")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--all"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: run pytest with --all (make test-all)"))


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["TAPNET_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.environ.pop("TAPNET_DATA", None)


@pytest.fixture(scope="session", autouse=True)
def _no_process_stays() -> Iterator[None]:
    yield
    end_server()


@pytest.fixture(autouse=True)
def _same_weights(pytestconfig: pytest.Config) -> None:
    """Layers are drawn alike however the tests are spread over processes; with --all, each time anew."""
    import torch

    if pytestconfig.getoption("--all"):
        torch.seed()
    else:
        torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def _no_other_machine() -> Iterator[None]:
    """Tests talk to servers that they start here, and to nothing else."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else "localhost"
        if host not in OWN_HOSTS and not host.startswith("127."):
            raise OSError(f"a test tried to reach {host}")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real archives that TAPNET_DATA named when the tests began."""
    if not REAL_DATA or not Path(REAL_DATA).is_dir():
        pytest.skip("needs the real data sets: set TAPNET_DATA to their folder")
    return Path(REAL_DATA).resolve()
