"""The licences of everything that tapnet and its extras bring, written from what is installed."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, metadata, requires
from typing import Any

from packaging.requirements import Requirement

MARK = "<!-- every licence -->"
FAMILIES = {  # what a package's own words for its licence have to name
    "BSD": r"\bBSD\b",
    "MIT": r"\bMIT\b",
    "Apache": r"\bApache\b",
    "ISC": r"\bISC\b",
    "MPL 2.0": r"\bMPL\b|Mozilla Public License",
    "PSF": r"\bPSF\b|Python Software Foundation",
    "Zlib": r"\bZlib\b",
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown.replace(MARK, licences_table()) if MARK in markdown else markdown


def licences_table() -> str:
    rows = [f"| {name} | {', '.join(families)} |" for name, families in sorted(licences().items(), key=_by_name)]
    return "\n".join(["| package | licence |", "|---|---|", *rows])


def licences() -> dict[str, list[str]]:
    """Each package that an installation with every extra has, and the families of its licence."""
    return {name: _families(name) for name in _needed("tapnet", frozenset({"explore", "cluster", "docs", "dev"}))}


def _by_name(item: tuple[str, list[str]]) -> str:
    return item[0].lower()


def _needed(root: str, extras: frozenset[str]) -> set[str]:
    found: dict[str, frozenset[str]] = {}
    left = [(root, extras)]
    while left:
        name, wanted = left.pop()
        known = found.get(name)
        if known is not None and wanted <= known:
            continue
        found[name] = wanted | (known or frozenset())
        for line in requires(name) or []:
            need = Requirement(line)
            applies = need.marker is None or any(need.marker.evaluate({"extra": e}) for e in ("", *wanted))
            try:
                if applies:
                    left.append((metadata(need.name)["Name"], frozenset(need.extras)))
            except PackageNotFoundError:
                continue  # for another system or another version of Python
    return set(found) - {root}


def _families(name: str) -> list[str]:
    about = metadata(name)
    classifiers = [line for line in about.get_all("Classifier", []) if line.startswith("License")]
    own_words = (about.get("License") or "").split("\n")[0]  # some put the whole text there
    words = " ".join([about.get("License-Expression") or "", *classifiers, own_words])
    return [family for family, pattern in FAMILIES.items() if re.search(pattern, words)]
