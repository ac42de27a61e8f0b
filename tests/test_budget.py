"""The size of the package and its prose. A limit is what was reached and 2 %; it may only fall."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

import pytest

from tests.tools import prose
from tests.tools.structure import (
    MODULES,
    entries,
    files,
    n_parameters,
    names_of,
    public_objects,
)

MAX_CODE_LINES = 23_850
MAX_FILES = 165
MAX_ENTRIES = 17
MAX_NAMES = 60
MAX_OTHER_NAMES = 35
MAX_PARAMETERS = 12
MAX_DOCSTRING_LINES = 60
MAX_README_LINES, MAX_README_BYTES = 150, 9_216
MAX_PROSE = prose.Figures(
    words_per_sentence=17,
    percent_long=14,
    semicolons_per_1000=3,
    percent_openers=1,
    listed_per_1000=1,
)


def test_code__is_short() -> None:
    assert sum(files().values()) <= MAX_CODE_LINES


def test_files__are_few() -> None:
    assert sum(not name.endswith("__init__.py") for name in files()) <= MAX_FILES
    assert len(entries()) <= MAX_ENTRIES


def test_public_names__are_few() -> None:
    assert len(names_of("")) + len(names_of("estimators")) <= MAX_NAMES
    assert sum(len(names_of(module)) for module in MODULES) <= MAX_OTHER_NAMES


def test_parameters__are_few() -> None:
    wide = {name: n_parameters(value) for name, value in public_objects().items()}
    assert {name: count for name, count in wide.items() if count > MAX_PARAMETERS} == {}


def test_docstrings__fit_on_a_page() -> None:
    lines = {
        name: len((inspect.getdoc(value) or "").splitlines())
        for name, value in public_objects().items()
    }
    assert {name: count for name, count in lines.items() if count > MAX_DOCSTRING_LINES} == {}


def test_docstrings__have_headings_on_lines_of_their_own() -> None:
    glued = [
        name
        for name, value in public_objects().items()
        if re.search(r"\w +-{4,}|^ *-{4,} +\w", inspect.getdoc(value) or "", re.MULTILINE)
    ]
    assert glued == []


def test_readme__is_short() -> None:
    text = (prose.ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_README_LINES
    assert len(text.encode()) <= MAX_README_BYTES


PROSE = {
    "README": prose.of_files("README.md"),
    "CHANGELOG": prose.of_files("CHANGELOG.md"),
    "CONTRIBUTING": prose.of_files("CONTRIBUTING.md"),
    "docs": prose.of_files("docs/*.md", "docs/*/*.md"),
    "notebooks": prose.of_files("notebooks/*.ipynb"),
    "docstrings": prose.of_public_names(),
}


@pytest.mark.parametrize("parts", PROSE.values(), ids=PROSE)
def test_prose__is_plain(parts: Iterable[str]) -> None:
    found = prose.figures(parts)
    above = {
        name: (round(value, 1), limit)
        for name, value, limit in zip(found._fields, found, MAX_PROSE, strict=True)
        if value > limit
    }
    assert above == {}
