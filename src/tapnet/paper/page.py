"""A Markdown page that holds the tables between two marks; its text may have places for numbers of the tables.

Such a place is ``{table2; TAPNet; PTC; paper; mean}``: target, system, data set, protocol and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tapnet.errors import DataError

VALUE = re.compile(r"\{([^{}]*)\}")
TEXT = "report.md"  # in the folder of results: the text of its report
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def split_page(file: Path) -> tuple[str, str, str]:
    """Splits a page into the text before its tables, the tables, and the text after them.

    Args:
        file: The page, or the text that it is made of; one that does not exist yet has a heading and no tables.

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


def fill_values(text: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Puts numbers of the tables into their places.

    Args:
        text: Of a page.
        rows: Of the tables, as their CSV files have them, not rounded.

    Raises:
        DataError: If a place names a number that is in no table.
    """
    found = dict[tuple[str, ...], Mapping[str, Any]]()
    for row in rows:
        layer = [str(row["after_layer"])] if row.get("after_layer") is not None else []
        found[(*(str(row[name]) for name in ("target", "system", "dataset", "protocol")), *layer)] = row

    def number(match: re.Match[str]) -> str:
        *place, column = (word.strip() for word in match[1].split(";"))
        value = _value(found.get(tuple(place), {}), column)
        if value is None:
            raise DataError(f"{match[0]} names a number that is in no table")
        return value

    return VALUE.sub(number, text)


def _value(row: Mapping[str, Any], column: str) -> str | None:
    """A number of a row in words; of connectivity, the share of isolated nodes or the components of a graph."""
    if column == "isolated" and row.get("nodes"):
        return f"{100 * row['isolated'] / row['nodes']:.1f}"
    if column == "components" and row.get("graphs"):
        return f"{row['components'] / row['graphs']:.1f}"
    value = row.get(column)
    if value is None or column in ("isolated", "components"):
        return None
    if column.startswith("difference"):
        return signed(value)
    return f"{value:.2f}" if column.startswith("p_") or column == "stability" else f"{value:.1f}"


def signed(difference: float) -> str:
    """A difference in points, such as "−0.4"; one that rounds to 0 has no sign."""
    words = f"{difference:+.1f}".replace("-", "−")
    return "0.0" if words[1:] == "0.0" else words
