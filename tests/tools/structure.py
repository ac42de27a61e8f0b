"""Counts of the package: its code lines, files and entries, and its public names."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import daskcoreset

ROOT = Path(daskcoreset.__file__).parent

MODULES = (
    "datasets", "errors", "metrics", "objectives", "objectives.divergences", "plotting", "testing",
    "xarray",
)  # fmt: skip
"""Public modules beside `daskcoreset` and `daskcoreset.estimators`."""

ASIDE = {"__init__.py", "__main__.py", "py.typed", "references.bib", "__pycache__"}

LAYOUT_ONLY = (
    tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
    tokenize.COMMENT,
)  # fmt: skip


def code_lines(path: Path) -> int:
    """Lines of a file without docstrings, comments and blanks."""
    source = path.read_text(encoding="utf-8")
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and body:
            match body[0]:
                case ast.Expr(value=ast.Constant(value=str())) as first:
                    docstrings |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT_ONLY:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


@cache
def files() -> dict[str, int]:
    """Code lines of every file, without those that hold none."""
    counts = {
        path.relative_to(ROOT).as_posix(): code_lines(path) for path in sorted(ROOT.rglob("*.py"))
    }
    return {name: count for name, count in counts.items() if count}


def entries() -> list[str]:
    """Folders and modules in the package."""
    return sorted(path.name for path in ROOT.iterdir() if path.name not in ASIDE)


def names_of(module: str) -> dict[str, Any]:
    """Public names of a public module, with what they are."""
    home = importlib.import_module(f"daskcoreset.{module}".rstrip("."))
    names = getattr(home, "__all__", None) or dir(home)
    return {name: getattr(home, name) for name in names}


def public_objects() -> dict[str, Any]:
    """Functions and classes that are public, and the public methods of the classes."""
    found: dict[str, Any] = {}
    for module in ("", "estimators", *MODULES):
        for name, value in names_of(module).items():
            if not _is_ours(value):
                continue
            found[name] = value
            if inspect.isclass(value):
                found |= {f"{name}.{method}": one for method, one in _methods(value)}
    return found


def n_parameters(value: Any) -> int:
    """Parameters of a callable, without `self`, ``*args`` and ``**kwargs``."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(value).parameters.values()
    return sum(one.kind not in variadic and one.name not in {"self", "cls"} for one in parameters)


def _methods(value: type) -> Iterator[tuple[str, Any]]:
    for name in dir(value):
        if not name.startswith("_"):
            method = inspect.getattr_static(value, name)
            method = getattr(method, "__func__", method)
            if inspect.isfunction(method) and _is_ours(method):
                yield name, method


def _is_ours(value: Any) -> bool:
    if inspect.isclass(value) and issubclass(value, BaseException):
        return False  # nobody calls them
    is_callable = inspect.isclass(value) or inspect.isfunction(value)
    return is_callable and value.__module__.startswith("daskcoreset")
