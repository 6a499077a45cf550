"""A Markdown page that holds the tables between two marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tapnet.errors import DataError

BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def split_page(file: Path) -> tuple[str, str, str]:
    """Splits a page into the text before its tables, the tables, and the text after them.

    Args:
        file: The page; one that does not exist yet has a heading and no tables.

    Raises:
        DataError: If it cannot be read, or has no marks to put tables between.
    """
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else f"# Results\n\n{BEGIN}\n{END}\n"
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise DataError(f"{file}: is not text in UTF-8") from None
    before, begin, rest = text.partition(BEGIN)
    tables, end, after = rest.partition(END)
    if not begin or not end:
        raise DataError(f"{file}: it has no {BEGIN} … {END} to put the tables between")
    return before, tables, after


def insert_tables(file: Path, explanation: Sequence[str], tables: Sequence[str]) -> str:
    """Puts tables between the two marks of a page; its other tables, and the text around them, stay.

    Args:
        file: The page; it is not written.
        explanation: Paragraphs before the tables.
        tables: Each with its heading, by which it takes the place of an older one.

    Returns:
        The new text of the page.
    """
    before, there, after = split_page(file)
    sections = {}
    for section in [*re.split(r"^(?=## )", there, flags=re.MULTILINE)[1:], *tables]:
        sections[section.partition("\n")[0]] = section.rstrip("\n") + "\n"
    return "\n\n".join([before + BEGIN, *explanation, "\n".join(sections.values()) + f"\n{END}{after}"])
