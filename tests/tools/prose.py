"""Figures of prose: words per sentence, long sentences, semicolons, openers and words to avoid."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.tools.structure import MODULES, names_of

ROOT = Path(__file__).parents[2]

OPENERS = re.compile(r"^(Of|What|Where|So many|As many|Those|That of)\b")
WORDS = re.compile(
    r"\b(raked?|raking|foretells?|foretold|remarks?|anew|so many|of (?:one's|its|their) own|"
    r"what becomes of|stands? for|is no|are no|none of|no more|learns? by heart|says? nothing|"
    r"tells? of|as it is|where it is|as many|a row of)\b",
    re.IGNORECASE,
)
LONG = 25
"""Words of a sentence that is not long yet."""

_FRONT_MATTER = re.compile(r"^---\n.*?\n---\n", re.DOTALL)
_FENCED = re.compile(r"^(```+|~~~+|:::+).*?^\1\s*$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NO_PROSE = re.compile(r"\s*(\||#|!\[|:|>>>|\.\.\s)")
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)")
_CODE_OR_LINK = re.compile(r"`+[^`]*`+|:\w+:`[^`]*`|\$[^$]*\$|\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])")
_UNDERLINED = re.compile(r"\n\s*-{3,}\s*(\n|$)")
_PARAMETER = re.compile(r"\s*[\w*, ]+ : ")


class Figures(NamedTuple):
    """What the budget limits."""

    words_per_sentence: float
    percent_long: float
    semicolons_per_1000: float
    percent_openers: float
    listed_per_1000: float


def figures(parts: Iterable[str]) -> Figures:
    """Count the sentences of some paragraphs."""
    found = list(_sentences(parts))
    lengths = [len(one.split()) for one in found]
    text, n, words = " ".join(found), len(found) or 1, sum(lengths) or 1
    return Figures(
        words / n,
        100 * sum(length > LONG for length in lengths) / n,
        1000 * text.count(";") / words,
        100 * sum(bool(OPENERS.match(one)) for one in found) / n,
        1000 * len(WORDS.findall(text)) / words,
    )


def of_files(*patterns: str) -> Iterator[str]:
    """Paragraphs of Markdown files, and of the text cells of notebooks."""
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".ipynb":
                for cell in json.loads(text)["cells"]:
                    if cell["cell_type"] == "markdown":
                        yield from _of_markdown("".join(cell["source"]))
            else:
                yield from _of_markdown(text)


def of_public_names() -> Iterator[str]:
    """Paragraphs of the docstrings of public modules, names, methods and properties."""
    seen: set[int] = set()
    for module in ("", "estimators", *MODULES):
        home = importlib.import_module(f"daskcoreset.{module}".rstrip("."))
        for value in (home, *names_of(module).values()):
            for one in (value, *_members(value)):
                if id(one) not in seen:
                    seen.add(id(one))
                    yield from _of_docstring(_own_docstring(one))


def _members(value: Any) -> Iterator[Any]:
    """Public methods and properties of a class of the package, those of its bases included."""
    if not inspect.isclass(value):
        return
    for name in dir(value):
        member = inspect.getattr_static(value, name)
        member = getattr(member, "__func__", member)
        module = getattr(getattr(member, "fget", member), "__module__", "") or ""
        if not name.startswith("_") and module.startswith("daskcoreset"):
            yield member


def _own_docstring(value: Any) -> str:
    """Return the docstring of an object, without one that others lent it."""
    if inspect.ismodule(value) or not hasattr(value, "__name__"):
        return inspect.cleandoc(getattr(value, "__doc__", None) or "")
    ours = str(getattr(value, "__module__", "")).startswith("daskcoreset")
    return inspect.cleandoc(value.__doc__ or "") if ours else ""


def _of_markdown(text: str) -> list[str]:
    for pattern, instead in ((_FRONT_MATTER, ""), (_FENCED, "\n\n"), (_COMMENT, "")):
        text = pattern.sub(instead, text)
    return _PARAGRAPH.split("\n".join(x for x in text.splitlines() if not _NO_PROSE.match(x)))


def _of_docstring(text: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", text):
        if _UNDERLINED.search(block):
            block = re.sub(r"^.*\n\s*-{3,}\s*\n", "", block)  # noqa: PLW2901
        if ">>>" not in block and ".. math" not in block:
            yield "\n".join(x for x in block.splitlines() if not _PARAMETER.match(x))


def _sentences(parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        flat = _CODE_OR_LINK.sub(lambda found: found[1] or "X", part)
        flat = re.sub(r"\s+", " ", flat).strip(" -*0123456789.")
        yield from (one for one in _END.split(flat) if len(one.split()) >= 3)
