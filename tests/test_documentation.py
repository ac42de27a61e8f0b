"""The documentation: complete, without dead links, and fit to be looked at in a browser."""

from __future__ import annotations

import importlib
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
    "index", "choose", "guides/streams", "reference/generated/daskcoreset.build",
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
