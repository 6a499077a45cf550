"""Formulas become MathML, which browsers show by themselves: no script, and nothing from another host."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
ACCENT = re.compile(r'(<mover accent="true">(?:<mrow>)?<mi>[A-Z]</mi>(?:</mrow>)?<mo>.{1,9}</mo></mover>)')


def on_page_content(content: str, **_: Any) -> str:
    return FORMULA.sub(_formula, content)


def _formula(found: re.Match[str]) -> str:
    tag, bracket, latex = found.groups()
    latex = html.unescape(latex).strip().replace("{aligned}", "{align*}")  # the same to a reader; it knows the second
    mathml = convert(latex, display="inline" if bracket == "(" else "block")
    mathml = ACCENT.sub(r'<mpadded height="0.72em">\1</mpadded>', mathml)  # else an exponent stands above the accent
    return f'<{tag} class="formula">{mathml}</{tag}>'
