"""Pickles of results have a version: newer ones are refused in words, those of before load."""

from __future__ import annotations

import base64
import copyreg
import io
import pickle
import sys
import zlib
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

from daskcoreset import Coreset, CoresetStream, CoresetTree, Portfolio
from daskcoreset.core.errors import StoreError
from daskcoreset.core.pickles import pickled
from daskcoreset.core.points import WeightedPoints
from tests.pairs import each

# A pickle of `portfolio()`, written before there were versions.
OF_BEFORE = (
    b"c-oaxO-lnY5bd^GtMwBR6;I-+g7l&X4}ygr1Q!<Z;zcOi-O;RelbU3O3I#8IL2iyeOn;3xoorVtSSp5WW+r*_cJd"
    b"~-?#pJWkPWjI1?n;s5)|mVwe_x$`b>0UfoAIH+keJdA5BScK(qQQClAn6nz=`Kv&_?^+pD)SNRoDR97q}T(9E<Xg"
    b"n}zA)6haqIYUx9j|Pxu^a^*_blUiU$5`_mujm!;kxiR&q<dYkNyW1re0m(5myENAzV9D?(8w0Apt1ebTo~N*cAu6"
    b"8%?8potFl?k&*s0`DOe)L-611e9mBWO__Aa9;=lRwMieT!wS0b`)SE~^GZCSgxJ)463XQ|js~T4UL?n-ym(aCha~"
    b"<gT8VE2IQXoYfSzoj-AhZW)*<2nZ)Vjs1G~hbEp$x&-K}sRfRCz1xq)LNS=s9UhjdptwNF05yEvou8FZZo7tXduH"
    b"zvr)NWyGtBxu&w_P9Q#K8lt1Y2ECIJf602ilBqrH9Qk9^-uPE<>>b=(@yVacYXaF%^^t9RRpql&8`eJoTw5D!"
)

KINDS = [Coreset, Portfolio, CoresetStream, CoresetTree]


def portfolio() -> Portfolio:
    rows = np.array([[0.0, 1.0], [2.0, 3.0]], dtype=np.float32)
    cells = WeightedPoints(rows + 1, np.array([5.0, 5.0]), np.array([4, 8]))
    record = {
        "method": "kmeans",
        "n": 10,
        "seed": 0,
        "representatives": "centroids",
        "objective": {"name": "quantization error", "n_clusters": 1},
    }
    where = {"year": np.array([2001, 2002])}
    one = Coreset(rows, np.full(2, 5.0), np.array([3, 7]), None, record, where, 1.5, cells)
    return Portfolio({"one": one}, {"n": 10}, None, one)


def made(kind: type, folder: Path) -> Any:
    if kind is CoresetTree:
        tree = CoresetTree.create(folder / "tree", size=5, random_state=0)
        tree.append(np.arange(8.0).reshape(4, 2))
        return tree
    if kind is CoresetStream:
        return CoresetStream(size=5, random_state=0).partial_fit(np.arange(8.0).reshape(4, 2))
    return portfolio() if kind is Portfolio else portfolio()["one"]


def test_pickle__of_before_there_were_versions() -> None:
    stored = zlib.decompress(base64.b85decode(OF_BEFORE))
    assert b"begun" not in stored
    found = pickle.loads(stored)
    assert found.equals(portfolio())
    with pytest.raises(ValueError, match="read-only"):
        found["one"].weights[0] = 1.0


@pytest.mark.parametrize("kind", [CoresetStream, CoresetTree])
def test_pickle__of_before_by_attributes(kind: type, tmp_path: Path) -> None:
    """As objects without ``__reduce__`` are pickled: the class, and what ``__getstate__`` says."""
    one = made(kind, tmp_path)
    file = io.BytesIO()
    pickler = pickle.Pickler(file)
    pickler.dispatch_table = {
        kind: lambda each: (copyreg.__newobj__, (kind,), each.__getstate__())  # type: ignore[attr-defined]
    }
    pickler.dump(one)
    assert b"begun" not in file.getvalue()
    assert pickle.loads(file.getvalue()).coreset().equals(one.coreset())


@each(protocol=[2, 5], kind=KINDS)
def test_pickle__of_a_newer_version_says_who_wrote_it(
    kind: Any, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(kind, tmp_path)
    known = kind._pickle_version
    assert type(pickle.loads(pickle.dumps(one, protocol))) is kind
    with monkeypatch.context() as newer:
        newer.setattr(kind, "_pickle_version", known + 1)
        newer.setattr("daskcoreset.core.pickles.package_versions", lambda: {"daskcoreset": "9.8"})
        stored = pickle.dumps(one, protocol)
    message = (
        rf"pickled {kind.__name__} was written by daskcoreset 9\.8 in layout {known + 1}, and "
        rf"daskcoreset [0-9].* knows none above {known}; upgrade daskcoreset, or build"
    )
    with pytest.raises(StoreError, match=message):
        pickle.loads(stored)


class Made:
    """Something with a version."""

    _pickle_version: ClassVar[int] = 1

    def __init__(self, held: Any) -> None:
        self.held = held

    def __reduce__(self) -> Any:
        return pickled(self, vars(self))


def test_pickle__of_a_newer_version_may_hold_what_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The version is looked at before classes that only the newer library has."""
    newer: Any = ModuleType("of_a_newer_version")
    newer.Held = type("Held", (), {"__module__": newer.__name__})
    with monkeypatch.context() as then:
        then.setitem(sys.modules, newer.__name__, newer)
        then.setattr(Made, "_pickle_version", 2)
        stored = pickle.dumps(Made(newer.Held()))
    with pytest.raises(StoreError, match="upgrade"):
        pickle.loads(stored)
    assert pickle.loads(pickle.dumps(Made(3))).held == 3


def test_pickle_version__goes_up_with_the_fields() -> None:
    """An older library cannot take a field that it does not know: raise the version then."""
    names = "points weights indices labels provenance coordinates constant cell_rows"
    assert [each.name for each in fields(Coreset)] == names.split()
    assert Coreset._pickle_version == 1
    names = "members provenance summary sample"
    assert [each.name for each in fields(Portfolio)] == names.split()
    assert Portfolio._pickle_version == 1
