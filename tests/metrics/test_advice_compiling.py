"""The read of a pilot is timed without the loops that are compiled for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from daskcoreset import advise, build
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.metrics import advice, advice_compiling
from daskcoreset.metrics.advice_tasks import TASKS


@pytest.mark.parametrize("task", ["clustering", "classification"])
def test_advise__times_no_build_that_is_the_first(
    monkeypatch: pytest.MonkeyPatch, task: Any
) -> None:
    """By a clock on which the first build takes a hundred seconds, and all others one."""
    clock = SimpleNamespace(now=0.0)
    built: list[Any] = []

    def timed(X: Any, *args: Any, **options: Any) -> Any:
        clock.now += 1.0 if built else 100.0
        built.append(X)
        return build(X, *args, **options)

    for module in (advice, advice_compiling):
        monkeypatch.setattr(module, "build", timed)
    monkeypatch.setattr(advice, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(advice, "_PILOT", 500)
    monkeypatch.setattr(advice, "_TRIALS", 3)
    monkeypatch.setattr(advice, "_MOST_TRIALS", 3)
    X = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    clusters = task == "clustering"
    found = advise(
        X, None if clusters else y, task=task, n_clusters=2 if clusters else None, budget=50,
        random_state=0,
    )  # fmt: skip
    first, second = built
    assert first.shape == (2256, 3)
    assert first.dtype == X.dtype
    assert second is X
    assert found.seconds == pytest.approx(found.reads)


@pytest.mark.parametrize(
    ("kind", "task"),
    [
        ("float16", "clustering"), ("float64", "regression"), ("float32", "classification"),
        ("sparse", "clustering"),
    ],
)  # fmt: skip
def test_compile_loops__rows_of_the_kind_of_the_data(
    monkeypatch: pytest.MonkeyPatch, kind: str, task: str
) -> None:
    seen = []

    def looked(X: Any, *args: Any, **options: Any) -> Any:
        seen.append((X, options.get("n_clusters")))
        return build(X, *args, **options)

    monkeypatch.setattr(advice_compiling, "build", looked)
    rows: Any = np.eye(300)
    rows = sp.csr_array(rows) if kind == "sparse" else rows.astype(kind)
    parts = 300 if TASKS[task].clusters else None
    advice_compiling.compile_loops(row_blocks(rows), TASKS[task], parts, progress=False)
    ((made, n_clusters),) = seen
    assert sp.issparse(made) == (kind == "sparse")
    assert made.dtype == (np.float32 if kind == "float16" else rows.dtype)
    assert made.shape == (300 + 256, 80)  # and not as many columns and clusters as there are
    assert n_clusters in (8, None)


_SCRIPT = """
import numpy as np
import scipy.sparse as sp
from daskcoreset import advise
from daskcoreset.core.compiling import watch_compiling
from daskcoreset.metrics import advice, advice_compiling

made = {made}
build, told = advice.build, []

def watched(*args, **options):
    with watch_compiling(told.append):
        build(*args, **options)
    raise SystemExit(sum(told))

advice.build = watched
if not made:
    advice.compile_loops = lambda *args, **options: None
X = np.random.default_rng(0).normal(size=(60_000, 4))
advise({rows}, n_clusters=3, budget=100, random_state=0, chunks=20_000)
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("rows", "made"),
    [("X", True), ("X", False), ("X.astype('f4')", True), ("sp.csr_array(X)", True)],
)
def test_advise__compiles_no_loop_in_the_read_that_it_times(
    tmp_path: Path, rows: str, made: bool
) -> None:
    """In a process that finds no compiled loops; without the made rows it compiles some."""
    script = _SCRIPT.format(rows=rows, made=made)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert (done.returncode == 0) == made
