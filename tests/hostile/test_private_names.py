"""No error of a public call names what users cannot import."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import daskcoreset
from daskcoreset.core.errors import CoresetError
from tests.acceptance.tools.public_calls import public_calls

BAD: dict[str, Any] = {
    "text": "nobody",
    "number": -3,
    "object": object(),
    "cube": np.ones((2, 2, 2)),
    "empty": np.empty((0, 3)),
}
"""What nearly no argument takes; others are in `test_mutations`."""


@pytest.fixture(autouse=True)
def agg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from matplotlib import pyplot as plt

    monkeypatch.chdir(tmp_path)  # pages and stores of the name "nobody" are written
    with mpl.rc_context({"backend": "Agg"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    plt.close("all")


def names_of_classes() -> tuple[set[str], set[str]]:
    """Classes of the package by name: those that users import, and all others."""
    public, found = set(dir(daskcoreset)), set[str]()
    for info in pkgutil.walk_packages(daskcoreset.__path__, "daskcoreset."):
        if info.name.endswith(("__main__", "_numba")):
            continue
        module = importlib.import_module(info.name)
        public |= set(getattr(module, "__all__", ()))
        for name, one in inspect.getmembers(module, inspect.isclass):
            if one.__module__.startswith("daskcoreset"):
                found.add(name)
    # Words such as Block or Part begin sentences; two capitals do not.
    private = {name for name in found - public if re.search(r"[a-z][A-Z]|^_", name)}
    return public, private


@pytest.mark.nightly
@pytest.mark.slow
def test_errors__name_no_private_class() -> None:
    _, private = names_of_classes()
    assert {"RowBlocks", "BlockSchema"} <= private
    words = re.compile(
        rf"\b({'|'.join(map(re.escape, sorted(private)))})\b|daskcoreset\.[a-z_]+\.[a-z_]+\."
    )
    told, n_errors = set(), 0
    spoilt = [
        (call, argument, value)
        for call in public_calls()
        for argument in call.known
        for value in BAD.values()
    ]
    for call, argument, value in spoilt[::5]:
        try:
            call.function(**{**call.good, argument: value})
        except CoresetError as error:
            n_errors += 1
            if found := words.search(str(error)):
                told.add((call.name, argument, found.group(), str(error)[:200]))
        except Exception:  # noqa: BLE001, S112 - those of others are judged in test_mutations
            continue
    assert n_errors > 100
    assert not told
