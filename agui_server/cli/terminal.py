"""What all commands share: where they print, and how they say what is wrong."""

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

DEMO_DB = Path("agui-demo.db")
"""The file of `agui demo`, and of every command that is told no other."""

Database = Annotated[Path, typer.Option("--db", help="The SQLite file.", envvar="AGUI_DB")]

errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)

PIPE_WIDTH = 200
"""Columns where nobody looks: a program that reads a table wants whole ids."""


def output() -> Console:
    """Return where a command prints what it was asked for."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)


def fail(sentence: str) -> NoReturn:
    """Say what is wrong and end with status 1."""
    errors.print(sentence)
    raise typer.Exit(1)


def one_line(text: str, limit: int = 500) -> str:
    """Return a text as one line of a terminal: what somebody wrote moves no cursor."""
    words = " ".join(text.split())
    shown = "".join(character for character in words if character.isprintable())
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
