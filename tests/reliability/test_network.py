"""Nothing is sent anywhere unless a user asks for it."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

IMPORT_ALL = """
import pkgutil, socket, sys, importlib

def refuse(*_):
    sys.exit("a connection was tried")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
import tapnet
names = [m.name for m in pkgutil.walk_packages(tapnet.__path__, "tapnet.") if not m.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def test_importing_every_module_opens_no_connection():
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 60


def test_the_tests_themselves_reach_no_other_machine():
    with pytest.raises(OSError, match="a test tried to reach 192.0.2.1"), socket.socket() as outside:
        outside.connect(("192.0.2.1", 9))  # an address that is reserved for documentation
