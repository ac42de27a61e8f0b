"""The documentation: complete, without dead links, and fit to be looked at in a browser."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import pydoc
import re
import runpy
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

import daskcoreset

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference" / "index.rst"
MODULES = (
    "estimators", "metrics", "sizing", "plotting", "coverage", "margin", "divergences",
    "objectives", "datasets", "errors", "testing",
)  # fmt: skip

# --- the source --------------------------------------------------------------------------


def test_reference__has_every_public_name() -> None:
    listed = set(re.findall(r"^   (\w+)$", REFERENCE.read_text(), flags=re.MULTILINE))
    for module in ("daskcoreset", *(f"daskcoreset.{name}" for name in MODULES)):
        public = set(_names_of(importlib.import_module(module))) - set(MODULES)
        assert public <= listed, f"docs/reference/index.rst lacks {sorted(public - listed)}"


def _names_of(module: ModuleType) -> list[str]:
    """Public names of a module; those of the package are what `dir` lists."""
    return list(getattr(module, "__all__", dir(module)))


def test_help__of_the_package_fits_two_screens() -> None:
    shown = pydoc.plain(pydoc.render_doc(daskcoreset)).splitlines()
    assert len(shown) < 100  # 6,228 with the bodies of all classes
    assert any("daskcoreset.build(" in line for line in shown[:24])
    for name in dir(daskcoreset):
        assert f"`{name}`" in (daskcoreset.__doc__ or ""), f"the package's help lacks {name}"
    assert "on_invalid" in pydoc.plain(pydoc.render_doc(daskcoreset.build))


def test_notebooks__are_in_the_list() -> None:
    listed = (ROOT / "docs" / "notebooks" / "index.md").read_text()
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert re.search(rf"^{path.stem}$", listed, flags=re.MULTILINE), path.name


# --- the site ----------------------------------------------------------------------------

# Built by the README's command, which executes all notebooks: minutes, so not by this test.
SITE = Path(os.environ.get("DASKCORESET_SITE", ROOT / "site"))
site = pytest.mark.skipif(
    not (SITE / "index.html").exists(), reason="the documentation is not built, see the README"
)
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
PAGES = (
    "index", "choose", "guide/streams", "reference/generated/daskcoreset.build",
    "reference/generated/daskcoreset.estimators.CoresetKMeans", "notebooks/quickstart",
)  # fmt: skip


class _Links(HTMLParser):
    """Collect what a page links to, and the anchors in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value and tag != "link":
                self.links.append(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


@site
def test_site__links_lead_somewhere() -> None:
    # Not the listings of source code, nor what the theme brings.
    paths = [path for path in SITE.rglob("*.html") if path.relative_to(SITE).parts[0][0] != "_"]
    pages = {path: _Links(path) for path in paths}
    dead = []
    for page, content in pages.items():
        for link in content.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            known = pages.get(target)
            missing = known is not None and parts.fragment and parts.fragment not in known.anchors
            if not target.exists() or missing:
                dead.append(f"{page.relative_to(SITE)}: {link}")
    assert len(pages) > 100
    assert not dead, dead[:10]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium to look at the pages with")
    with playwright.sync_playwright() as run:
        browser = run.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@site
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_site__page_in_a_browser(name: str, width: int, browser: Any, tmp_path: Path) -> None:
    from matplotlib.image import imread

    page = browser.new_page(viewport={"width": width, "height": 1000})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))

    page.goto((SITE / f"{name}.html").resolve().as_uri())
    # A page that is wider than the window has to be pushed sideways to be read.
    # The theme lets the article scroll instead, which is no better.
    wide = page.evaluate(
        "Math.max(...[document.documentElement, document.querySelector('.bd-article-container')]"
        ".map(part => part.scrollWidth - part.clientWidth))"
    )
    broken = page.evaluate("[...document.images].filter(i => !i.naturalWidth).map(i => i.src)")
    page.screenshot(path=tmp_path / "page.png")
    page.close()

    assert not errors
    assert wide <= 0
    assert not broken
    pixels = imread(tmp_path / "page.png")[..., :3]
    background = np.median(pixels.reshape(-1, 3), axis=0)
    drawn = (np.abs(pixels - background) > 0.2).any(axis=2)
    assert 0.01 < drawn.mean() < 0.6
    assert drawn[200:].any(axis=1).mean() > 0.2


def test_numbers_of_results__are_there_for_all_that_pages_name() -> None:
    where = ROOT / "docs" / "numbers_of_results.py"
    numbers: Any = runpy.run_path(str(where))["substitutions"]()
    pages = [page.read_text() for page in (ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"\{\{ (\w+) \}\}", page)}
    assert named <= set(numbers)


def test_numbers_of_results__of_a_system_that_drops_no_files_from_its_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = str(ROOT / "docs" / "numbers_of_results.py")
    benchmark = (ROOT / "benchmarks" / "one_read.py").read_text()
    assert all(f'"{place}"' in benchmark for place in runpy.run_path(where)["_PLACES"])
    plain = json.loads
    without: Any = lambda text: _without_cold(plain(text))  # noqa: E731 - for one call
    whole = runpy.run_path(where)["_one_read"]()
    monkeypatch.setattr(json, "loads", without)
    found = runpy.run_path(where)["_one_read"]()
    assert "From the disk itself" in whole["one_read_cold"]
    assert "was not measured" in found["one_read_cold"]
    page = (ROOT / "docs" / "guide" / "portfolio.md").read_text()
    named = set(re.findall(r"\{\{ (one_read_\w+) \}\}", page))
    assert named <= found.keys() < whole.keys()


def _without_cold(results: dict[str, Any]) -> dict[str, Any]:
    ratios = results["ratios"]
    return {**results, "ratios": {name: ratios[name] for name in ratios if ", not" not in name}}


# --- numbers -----------------------------------------------------------------------------


def test_recipes__seconds_of_boosting_are_as_the_words_say() -> None:
    text = (ROOT / "docs" / "guide" / "recipes.md").read_text()
    words = " ".join(text.split())
    results = (ROOT / "benchmarks" / "results" / "boosting.md").read_text()
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in results.partition("## Seconds")[2].splitlines()
        if line.startswith("| ")
    ]
    heads, rows = lines[0], [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    spans = [
        {
            head: [float(number) for number in re.findall(r"\d+\.\d+", row[head])]
            for head in heads[2:]
        }
        for row in rows
    ]
    assert "A pilot saves none there, with LightGBM or with HistGradientBoosting" in words
    for span in spans:
        for head in ("margin", "gradient", "gradient, 3/4", "cells"):
            assert span[head][2] > span["all rows"][0]
    assert "on one of the sets training on any draw" in words
    slower = [
        row["set"]
        for row, span in zip(rows, spans, strict=True)
        if row["model"] == "hist"
        and all(
            span[head][1] > span["all rows"][0]
            for head in heads
            if head in span and head != "all rows"
        )
    ]
    assert len(slower) == 1
    assert 'Draws by `method="logistic"` saved time with LightGBM on each' in words
    for row, span in zip(rows, spans, strict=True):
        assert row["model"] == "hist" or span["logistic"][3] < span["all rows"][0]


PROSE = [
    ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "notebooks").glob("*.ipynb")),
]  # fmt: skip
_COUNT = "two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|hundred"
# A figure, or a count of times and sets, as results have them.
_FIGURE = re.compile(
    rf"(?<![\w.])\d[\d,.]*|\b({_COUNT}) times (as|the|that|its)\b"
    rf"|\b(on ({_COUNT}) of|({_COUNT}) per cent)\b"
    rf"|\b({_COUNT}) of (the )?({_COUNT})\b|\b(twice|half|a (third|quarter|fifth|tenth)) as\b"
)
# Code, what is made of results, formulas, links, the names of numbers; years, and what is cited.
_NOT_PROSE = (
    r"^(`{3,})[^\n]*\n.*?^\1$", r"^    .*?$",
    r"<!-- results:(\w+) -->.*?<!-- /results:\1 -->", r"<!--.*?-->",
    r"\$\$.*?\$\$", r"\$[^$\n]*\$", r"`[^`]*`", r"\]\([^)]*\)", r"\{\{ \w+ \}\}",
    r"\b(19|20)\d\d\b", r"\b(Python|NumPy|Zen|Theorem|Algorithm|Table|Lemma|section) \d[\d.]*",
    r"^\d\. ", r"^:+\{grid\}.*?$|^:\w+:.*?$",
)  # fmt: skip


def _prose(text: str) -> str:
    for pattern in _NOT_PROSE:
        text = re.sub(pattern, " ", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\s+", " ", text)


def test_prose__leaves_out_what_is_made_and_cited() -> None:
    text = (
        "In 2.5 s (Lu, 2023, Theorem 2), `k=3`, {{ a }} %:\n\n```python\n4\n```\n<!-- 5 -->\n6. x"
        "\n    7\n`a` {{ b }} `c` to 8"
    )
    assert [found[0] for found in _FIGURE.finditer(_prose(text))] == ["2.5", "8"]


def _by_hand() -> dict[str, list[str]]:
    """Settings, definitions and figures of others, which no benchmark can change."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "docs" / "numbers_by_hand.txt").read_text().splitlines():
        if named := re.match(r"(\S+): ", line):
            found.setdefault(named[1], []).append(line[named.end() :])
    return found


def _left(name: str, prose: str, figure: re.Pattern[str]) -> list[str]:
    """Return the figures of a text that nobody answers for."""
    for phrase in sorted(_by_hand().get(name, []), key=len, reverse=True):
        assert phrase in prose, f"{name} has no {phrase!r}: take it out of numbers_by_hand.txt"
        prose = prose.replace(phrase, " ")
    hits = figure.finditer(prose)
    return [prose[max(0, found.start() - 50) : found.end() + 30] for found in hits]


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_figures__of_sentences_come_from_results_or_are_no_results(page: Path) -> None:
    path = page.relative_to(ROOT).as_posix()
    text = page.read_text()
    if page.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    left = _left(path, _prose(text), _FIGURE)
    assert not left, (
        f"{path} has figures by hand: {left}. Take one that was measured from its results, by "
        f"docs/numbers_of_results.py, and a setting or definition into docs/numbers_by_hand.txt."
    )


SOURCES = sorted((ROOT / "daskcoreset").rglob("*.py"))
# What results look like: docstrings are full of shapes, defaults and bounds, which look otherwise.
_PARTS = "third|quarter|fifth|sixth|seventh|eighth|ninth|tenth|twentieth|hundredth"
_AMOUNT = rf"(\d[\d,.]*|one|{_COUNT}|thirty|fifty|thousand)"
_MEASURED = re.compile(
    rf"\b{_AMOUNT} ?(%|(per ?cent|times|fold|(milli|micro)?seconds?|minutes?|hours?|ms|[KMGT]i?B"
    r"|(giga|mega)bytes|nats?)\b)|\d s\b|\b(half )?a (second|minute|nat)\b"
    rf"|\b(twice|half|an? ({_PARTS})) (as|of the time)\b|\b(an?|{_COUNT}) ({_PARTS})s?\b"
    rf"|\b{_AMOUNT} of (the )?({_COUNT}|\d+)\b|\bfactor of {_AMOUNT}\b"
    r"|(?<![\w.=(^])\d+\.\d+\b|(?<![\w(+-])\d[\d,.]* (to|against|instead of) \d"
)
# Examples, references, formulas, names, the heads of parameters, and what is cited.
_NOT_SENTENCES = (
    r"^ *>>>.*?(\n *\n|\Z)", r"^ *References\n *-+\n.*\Z", r"\.\. math::.*?\n\n(?=\S|\Z)",
    r"``.*?``|:\w+:`[^`]*`|`[^`]*`", r"^ *[\w, *]+ : .*?$",
    r"\b(Theorems?|Algorithm|Table|Lemma|Corollary|Definitions?|[Ss]ection|Fig\.) \d[\d.]*",
)  # fmt: skip


def _sentences(docstring: str) -> str:
    for pattern in _NOT_SENTENCES:
        docstring = re.sub(pattern, " ", docstring, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\s+", " ", docstring)


def test_changelog__has_no_measured_figures() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    left = _left("CHANGELOG.md", _prose(text), _MEASURED)
    assert not left, (
        f"CHANGELOG.md has figures by hand: {left}. Say what was found in words, and name the "
        f"results; a setting or definition goes into docs/numbers_by_hand.txt."
    )


def _documented(members: dict[str, Any], parent: str) -> Iterator[tuple[str, str]]:
    """Yield names of public classes, functions and properties of this package, and docstrings."""
    for name, value in members.items():
        plain = getattr(value, "__func__", value)  # of class methods and static ones
        code = getattr(plain, "fget", None) or getattr(plain, "func", None) or plain
        known = inspect.isclass(code) or inspect.isroutine(code)
        home = getattr(code, "__module__", None) or ""
        if name.startswith("_") or not known or not home.startswith("daskcoreset"):
            continue
        yield f"{parent}.{name}", inspect.getdoc(code) or ""
        if inspect.isclass(value):
            own = {member: inspect.getattr_static(value, member) for member in dir(value)}
            yield from _documented(own, f"{parent}.{name}")


def _public_docstrings() -> dict[str, str]:
    """Every docstring of the reference, by the first name that has it."""
    found: dict[str, str] = {}
    for module in ("daskcoreset", *(f"daskcoreset.{name}" for name in (*MODULES, "xarray"))):
        space = importlib.import_module(module)
        found.setdefault(space.__doc__ or "", module)
        members = {name: getattr(space, name) for name in _names_of(space)}
        for name, text in _documented(members, module):
            found.setdefault(text, name)
    return {name: text for text, name in found.items()}


def test_sentences__leave_out_what_is_set_and_shown() -> None:
    text = """Draw rows in 0.3 s, twice as fast.

    Parameters
    ----------
    size : int, default=0.5
        Of ``2 times`` :math:`3 \\%`, by Lemma 2.1; a third of the others took 4 to 5 reads.

    >>> 6.5

    References
    ----------
    Lu (2023), 7 %.
    """
    found = [found[0] for found in _MEASURED.finditer(_sentences(text))]
    assert found == ["0.3", "twice as", "a third", "4 to 5"]


def test_docstrings__have_no_measured_figures() -> None:
    docstrings = _public_docstrings()
    assert len(docstrings) > 300
    left = {
        name: figures
        for name, text in docstrings.items()
        if (figures := _left(name, _sentences(text), _MEASURED))
    }
    assert not left, (
        f"docstrings have figures by hand: {left}. Say what was found in words, and name the page "
        f"of the guide that has the figure by docs/numbers_of_results.py; a setting or definition "
        f"goes into docs/numbers_by_hand.txt."
    )


def _messages(path: Path) -> str:
    """Texts that a program prints: of errors, warnings and help, which is docstrings as well."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [
        _sentences(node.value)
        for node in nodes
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and len(node.value.split()) > 2
        and (path.parent.name == "cli" or id(node) not in docstrings)
    ]
    return "\n".join(texts)


def test_messages__have_no_measured_figures() -> None:
    texts = {path.relative_to(ROOT).as_posix(): _messages(path) for path in SOURCES}
    assert "such as 0.4" in texts["daskcoreset/estimators/kernel/losses.py"]
    left = {
        path: figures for path, text in texts.items() if (figures := _left(path, text, _MEASURED))
    }
    assert not left, f"messages or help have figures by hand: {left}."


def test_numbers_by_hand__are_of_what_there_is() -> None:
    pages = {page.relative_to(ROOT).as_posix() for page in (*PROSE, *SOURCES)} | {"CHANGELOG.md"}
    assert set(_by_hand()) <= pages | set(_public_docstrings())
