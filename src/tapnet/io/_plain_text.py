"""What the two formats of numbers in plain text (TU files and the one-file text) share."""

from __future__ import annotations

import re

from tapnet.errors import DataError
from tapnet.io.archive import Place

WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)


def not_plain_text(file: Place) -> DataError:
    """The error for a file that is not ASCII; it names the first such line."""
    line = ""
    try:
        with file.open("rb") as lines:
            line = next((f":{i}" for i, text in enumerate(lines, start=1) if not text.isascii()), "")
    except UnicodeDecodeError:  # of the file's name in its archive
        pass
    return DataError(f"{file}{line}: not plain text, so it cannot be read")
