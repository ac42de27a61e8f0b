"""The README's examples print what it shows, and its links lead to pages and files."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SITE = "https://daskcoreset.readthedocs.io/en/latest/"
FILES = (
    "https://raw.githubusercontent.com/daskcoreset/daskcoreset/main/",
    "https://github.com/daskcoreset/daskcoreset/blob/main/",
)


def _without_digits(text: str) -> str:
    """Replace fractions, which differ between processors in the rows that are drawn."""
    return re.sub(r"\d+\.\d+", "#", text)


def test_examples__print_what_follows_them() -> None:
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", README, flags=re.DOTALL)
    names: dict[str, Any] = {}
    assert len(blocks) >= 2
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)  # noqa: S102 - the README's own code
        assert _without_digits(printed.getvalue()) == _without_digits(shown)


def test_links__lead_to_pages_and_files() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    dead = []
    for link in links:
        page = link.removeprefix(SITE).removesuffix(".html")
        if link.startswith(SITE):
            there = any((ROOT / "docs" / f"{page}{ending}").exists() for ending in (".md", ".rst"))
        else:
            file = next((link.removeprefix(start) for start in FILES if link.startswith(start)), "")
            there = bool(file) and (ROOT / file).exists()
        if not there:
            dead.append(link)
    assert len(links) > 10
    assert dead == []
