"""The documentation: complete, without dead links, and fit to be looked at in a browser."""

from __future__ import annotations

import importlib
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
    "estimators", "metrics", "plotting",
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


# --- numbers -----------------------------------------------------------------------------


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


def _by_hand() -> dict[str, list[str]]:
    """Settings, definitions and figures of others, which no benchmark can change."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "docs" / "numbers_by_hand.txt").read_text().splitlines():
        if named := re.match(r"(\S+): ", line):
            found.setdefault(named[1], []).append(line[named.end() :])
    return found


def _left(name: str, prose: str) -> list[str]:
    """Return the figures of a text that nobody answers for."""
    for phrase in sorted(_by_hand().get(name, []), key=len, reverse=True):
        assert phrase in prose, f"{name} has no {phrase!r}: take it out of numbers_by_hand.txt"
        prose = prose.replace(phrase, " ")
    hits = _FIGURE.finditer(prose)
    return [prose[max(0, found.start() - 50) : found.end() + 30] for found in hits]


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_figures__of_sentences_come_from_results_or_are_no_results(page: Path) -> None:
    path = page.relative_to(ROOT).as_posix()
    text = page.read_text()
    if page.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    left = _left(path, _prose(text))
    assert not left, (
        f"{path} has figures by hand: {left}. Take one that was measured from its results, by "
        f"docs/numbers_of_results.py, and a setting or definition into docs/numbers_by_hand.txt."
    )


def test_numbers_by_hand__are_of_what_there_is() -> None:
    assert set(_by_hand()) <= {page.relative_to(ROOT).as_posix() for page in PROSE}
