"""The commands' reference, written from the commands themselves, so that it cannot say anything else than they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MARK = "<!-- every command -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown.replace(MARK, commands_page()) if MARK in markdown else markdown


def commands_page() -> str:
    """Every command with its arguments, options and defaults, in the order of ``tapnet --help``."""
    import typer.main

    from tapnet.cli import app

    program: Any = typer.main.get_command(app)
    return "\n".join(line for name, command in program.commands.items() for line in _section(name, command))


def _section(name: str, command: Any) -> Iterator[str]:
    command.name_pools()
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    words = [_argument(p) if p.required else f"[{_argument(p)}]" for p in arguments]
    usage = " ".join(["tapnet", name, *words, *(["[OPTIONS]"] if options else [])])
    yield f"## tapnet {name}\n\n{command.help}\n\n```text\n{usage}\n```\n"
    yield from _table("argument", [(_argument(p), p) for p in arguments])
    yield from _table("option", [(_option(p), p) for p in options])


def _table(title: str, rows: list[tuple[str, Any]]) -> Iterator[str]:
    if rows:
        yield f"| {title} | meaning | default |\n|---|---|---|"
        for name, param in rows:
            yield f"| `{name}` | {(param.help or '').replace('|', chr(92) + '|')} | {_default(param)} |"
        yield ""


def _argument(param: Any) -> str:
    return str(param.metavar or param.name.upper() + ("..." if param.nargs == -1 else ""))


def _option(param: Any) -> str:
    """--jobs INT, --device auto,cpu,cuda, --final, --browser/--no-browser"""
    names = "/".join([*param.opts, *param.secondary_opts])
    choices = ",".join(map(str, param.type_descriptor.choices or ()))
    kind = choices or param.metavar or param.bare_type().upper().replace("STR", "TEXT")
    return names if param.is_flag else f"{names} {kind}"


def _default(param: Any) -> str:
    if isinstance(param.show_default, str):
        return param.show_default
    if param.default is None or param.required:
        return ""
    if not getattr(param, "is_flag", False):
        return f"`{param.default}`"
    names = param.opts if param.default else param.secondary_opts  # a flag without a second name is off by default
    return f"`{names[0]}`" if names else ""
