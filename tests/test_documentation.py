"""The documentation: complete, without dead links, and fit to be looked at in a browser."""

from __future__ import annotations

import importlib
import os
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

from tests.tools.structure import MODULES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GUIDES = sorted(path.stem for path in (DOCS / "guides").glob("*.md") if path.stem != "index")

# --- the source --------------------------------------------------------------------------


def test_reference__has_every_public_name() -> None:
    text = (DOCS / "reference" / "index.rst").read_text()
    listed = set(re.findall(r"^   (\w+)$", text, flags=re.MULTILINE))
    for module in ("daskcoreset", *(f"daskcoreset.{name}" for name in ("estimators", *MODULES))):
        public = _names_of(importlib.import_module(module))
        assert public <= listed, f"docs/reference/index.rst lacks {sorted(public - listed)}"


def _names_of(module: ModuleType) -> set[str]:
    """Public names of a module without modules; those of the package are what `dir` lists."""
    names = getattr(module, "__all__", dir(module))
    return {name for name in names if not isinstance(getattr(module, name), ModuleType)}


def test_notebooks__are_in_the_list() -> None:
    listed = (DOCS / "notebooks" / "index.md").read_text()
    assert set(re.findall(r"\]\((\w+\.ipynb)\)", listed)) <= {
        path.name for path in (ROOT / "notebooks").glob("*.ipynb")
    }


@pytest.mark.parametrize("name", GUIDES)
def test_guide__is_short_and_has_a_picture(name: str) -> None:
    text = (DOCS / "guides" / f"{name}.md").read_text()
    assert re.search(r"^(`{3,}\{drawing\}|!\[)", text, flags=re.MULTILINE)
    prose = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    words = [word for word in prose.split() if re.search(r"\w", word)]
    assert len(words) <= 1_000


def test_pages__have_no_substitutions() -> None:
    left = [str(page) for page in DOCS.rglob("*.md") if re.search(r"\{\{ ?\w", page.read_text())]
    assert not left


def test_picture_of_the_readme__is_small() -> None:
    assert (DOCS / "_static" / "why.png").stat().st_size <= 200_000


# --- the site ----------------------------------------------------------------------------

# Built by a command that executes all notebooks: minutes, so not by this test.
SITE = Path(os.environ.get("DASKCORESET_SITE", ROOT / "site"))
site = pytest.mark.skipif(
    not (SITE / "index.html").exists(), reason="the documentation is not built, see CONTRIBUTING"
)
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


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


@site
def test_site__links_to_other_projects() -> None:
    pages = (SITE / "reference" / "generated").glob("*.html")
    found = {urlsplit(link).netloc for page in pages for link in _Links(page).links}
    assert found >= {
        "numpy.org", "docs.scipy.org", "scikit-learn.org",
        "docs.dask.org", "docs.xarray.dev", "zarr.readthedocs.io",
    }  # fmt: skip


# A wide window in the light theme, and a phone in the dark one.
LOOKS = ((1280, "light"), (390, "dark"))


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium to look at the pages with")
    with playwright.sync_playwright() as run:
        browser = run.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


@site
def test_site__pages_in_a_browser(page: Any, tmp_path: Path) -> None:
    from matplotlib.image import imread

    written = sorted(SITE.glob("*.html")) + sorted(SITE.glob("[a-z]*/*.html"))
    generated = ("daskcoreset.build", "daskcoreset.estimators.CoresetKMeans")
    written += [SITE / "reference" / "generated" / f"{name}.html" for name in generated]
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    bad = []
    for width, theme in LOOKS:
        page.set_viewport_size({"width": width, "height": 1000})
        page.emulate_media(color_scheme=theme)
        for path in written:
            page.goto(path.resolve().as_uri())
            found = page.evaluate(_STATE)
            page.screenshot(path=tmp_path / "page.png")
            pixels = imread(tmp_path / "page.png")[..., :3]
            background = np.median(pixels.reshape(-1, 3), axis=0)
            drawn = (np.abs(pixels - background) > 0.2).any(axis=2)
            if (
                errors
                or found["wide"] > 0
                or found["broken"]
                or found["theme"] != theme
                or not 0.002 < drawn.mean() < 0.7
            ):
                bad.append((path.name, width, theme, found, float(drawn.mean()), *errors))
                errors.clear()
    assert not bad, bad


# A page that is wider than the window has to be pushed sideways to be read. The theme lets the
# article scroll instead, which is no better.
_STATE = """() => ({
    wide: Math.max(...[document.documentElement, document.querySelector('.bd-article-container')]
        .map(part => part === null ? 0 : part.scrollWidth - part.clientWidth)),
    broken: [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src),
    theme: document.documentElement.dataset.theme,
})"""
