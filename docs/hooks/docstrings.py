"""What the source says beside its docstrings, for the reference: formulas in reStructuredText, comments of fields."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

MATH = re.compile(r"^\.\. math::\n((?:    .*\n|\s*\n)+)", re.MULTILINE)


class Docstrings(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = MATH.sub(_as_markdown, obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """A record's fields, each with the comment behind it, become the attributes that its docstring lists."""
        kinds = [str(d.value) for d in cls.decorators] + [str(base) for base in cls.bases]
        if cls.docstring and any(re.match(r"dataclass|NamedTuple", kind) for kind in kinds):
            fields = [a for name, a in cls.attributes.items() if a.annotation is not None and name[0] != "_"]
            lines = [f"    {field.name}: {_comment(field)}" for field in fields]
            if lines and "Attributes:" not in cls.docstring.value:
                cls.docstring.value += "\n\nAttributes:\n" + "\n".join(lines)


def _comment(field: griffe.Attribute) -> str:
    found = re.search(r"  # (.*)$", field.source)
    return found[1] if found else "\N{NO-BREAK SPACE}"  # the name says it


def _as_markdown(found: re.Match[str]) -> str:
    lines = [line for line in textwrap.dedent(found[1]).splitlines() if line]
    return "$$\n\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}\n$$\n\n"
