"""What the two formats of numbers in plain text (TU files and the one-file text) share."""

from __future__ import annotations

import re

from tapnet.errors import DataError
from tapnet.io.archive import Place

WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)


BOM = b"\xef\xbb\xbf"  # what some programs put before UTF-8 text
UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def not_plain_text(file: Place) -> DataError:
    """The error for a file that is not ASCII; it names the first such line."""
    line = encoding = ""
    try:
        with file.open("rb") as lines:
            encoding = ": it is UTF-16 and should be UTF-8" if lines.read(2) in UTF_16 else ""
            lines.seek(0)
            line = next((f":{i}" for i, text in enumerate(lines, start=1) if not text.isascii()), "")
    except UnicodeDecodeError:  # of the file's name in its archive
        pass
    return DataError(f"{file}{line}: not plain text{encoding or ', so it cannot be read'}")
