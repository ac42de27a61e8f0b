"""The page of the command line names the options that the program has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from daskcoreset.cli.commands import parser

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command_line.md"

# Shown by --help alone.
FLAGS_OF_ALL = {"--help", "--progress", "--no-progress"}


def test_page__has_every_option_of_every_command() -> None:
    commands = _commands(parser())
    tree = commands.pop("tree")
    real = {
        name: {flag for action in command._actions for flag in action.option_strings}
        for name, command in {**commands, **_commands(tree)}.items()
    }
    flags = {
        name: {one for one in found if one.startswith("--")} - FLAGS_OF_ALL
        for name, found in real.items()
    }
    assert _synopsis() == flags


def _commands(whole: Any) -> dict[str, Any]:
    found: dict[str, Any] = next(one.choices for one in whole._actions if one.dest == "COMMAND")
    return dict(found)


def _synopsis() -> dict[str, set[str]]:
    """Return the flags of each command, by the synopsis."""
    block = PAGE.read_text().split("```text\n")[1].split("```")[0]
    groups = {
        name: " ".join(lines.split())
        for name, lines in re.findall(r"^(STORES|READING): (.*(?:\n .*)*)", block, re.MULTILINE)
    }
    found = {}
    pattern = r"^daskcoreset (?:tree )?(\w+)(.*(?:\n .*)*)"
    for name, lines in re.findall(pattern, block, re.MULTILINE):
        text = lines.replace("READING", groups["READING"]).replace("STORES", groups["STORES"])
        found[name] = set(re.findall(r"--[a-z-]+", text))
    return found
