"""Lazy results: computed once, by the scheduler that is set, and pickled."""

from __future__ import annotations

import ast
import logging
import os
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from dask.base import is_dask_collection, tokenize
from dask.delayed import delayed

import daskcoreset
from daskcoreset import build
from daskcoreset.core.errors import CoresetWarning
from daskcoreset.execution.engine import tree_reduce
from daskcoreset.execution.lazy import Lazy, active_client, leaf_layers
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.testing import CountingScheduler
from tests.pairs import each
from tests.tools.graphs import (
    N_BLOCKS,
    READERS,
    ROWS,
    Watcher,
    first_moment,
    from_random,
    from_zarr,
    is_leaf,
    name_of,
    total,
    tree_tasks,
    two_passes,
)


def test_optimise__is_left_to_the_user(tmp_path: Path) -> None:
    lazy = tree_reduce(
        row_blocks(**from_random(tmp_path, ("X",)), chunks=ROWS), first_moment, total
    )
    expected = lazy.compute(scheduler="sync")
    with dask.config.set({"optimization.fuse.active": False}):
        assert lazy.n_tasks == 2 * N_BLOCKS + tree_tasks(N_BLOCKS, 16)
        assert lazy.compute(scheduler="sync") == expected


@pytest.mark.distributed
@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("hold", ["compute", "persist"])
def test_compute__alone_after_others_while_their_futures_are_held(
    hold: str, passes: Any, cluster: Any, tmp_path: Path
) -> None:
    from distributed import Client, wait

    array = zarr.create_array(tmp_path / "a", shape=(800, 3), chunks=(100, 3), dtype="f8")
    array[:] = np.random.default_rng(0).normal(size=(800, 3))
    options: dict[str, Any] = {"size": 50, "chunks": 100, "passes": passes, "random_state": 0}
    with Client(cluster) as client, scheduler_records() as said:
        first = build(array, compute=False, **options)
        others = [first, build(array, method="uniform", compute=False, **options)]
        held = getattr(client, hold)(others)
        wait(held)
        found = first.compute()
        assert found.equals(build(array, **options))
        assert found.equals(first.compute())
        assert first.compute(scheduler="sync").equals(found)
        del held
        assert first.compute().equals(found)
    assert not [one for one in said if "run_spec" in one]


@pytest.mark.distributed
@each(source=["zarr", "random", "sums", "one block"], passes=[1, 2])
def test_dask_compute__of_one_after_several_while_their_futures_are_held(
    source: str, passes: Any, cluster: Any, tmp_path: Path
) -> None:
    from distributed import Client, wait

    rows = np.random.default_rng(0).normal(size=(800, 3))
    stored = zarr.create_array(tmp_path / "a", shape=(800, 3), chunks=(100, 3), dtype="f8")
    stored[:] = rows
    random = da.random.default_rng(0).normal(size=(800, 3), chunks=(100, 3))
    one = da.from_array(rows, chunks=(800, 3))
    X = {"zarr": stored, "random": random, "sums": (random + 1) * 2, "one block": one}[source]
    options: dict[str, Any] = {"size": 50, "passes": passes, "random_state": 0, "compute": False}
    with Client(cluster) as client, scheduler_records() as said:
        first, second = (build(X, method=m, **options) for m in ("lightweight", "uniform"))
        held = client.compute([first, second])
        wait(held)
        (alone,) = dask.compute(first)
        turned = dask.compute(second, first)
        (kept,) = dask.persist(second)
        wait(kept)
        again = dask.compute(first, kept, second)
        assert alone.equals(held[0].result())
        assert all(found.equals(alone) for found in (turned[1], again[0], first.compute()))
        del held, kept
    assert not [one for one in said if "run_spec" in one]


@contextmanager
def scheduler_records() -> Iterator[list[str]]:
    """Yield what the scheduler of a cluster says in its log."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    with mock.patch.object(logging.getLogger("distributed.scheduler"), "handlers", [handler]):
        yield said


def lazy_sum() -> Lazy[float]:
    return tree_reduce(row_blocks(np.ones((40, 2)), chunks=4), first_moment, total)


def in_words(value: float) -> str:
    return f"sum {value:.0f}"


def with_process(value: float) -> tuple[float, int]:
    warnings.warn("finished", CoresetWarning, stacklevel=1)
    return value, os.getpid()


def test_lazy__computes_with_other_work() -> None:
    lazy, other = lazy_sum(), da.ones(10, chunks=5).sum()
    words, number, plain = dask.compute(lazy.then(in_words), other, lazy, scheduler="sync")
    assert (words, number, plain) == ("sum 80", 10.0, 80.0)


def test_lazy__inside_containers_and_delayed() -> None:
    lazy = lazy_sum().then(in_words)
    assert dask.compute({"a": [lazy]}, scheduler="sync") == ({"a": ["sum 80"]},)
    assert delayed(str.upper)(lazy).compute(scheduler="sync") == "SUM 80"
    assert delayed(len)([lazy, lazy]).compute(scheduler="sync") == 2


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_lazy__persists(scheduler: str) -> None:
    (kept,) = dask.persist(lazy_sum().then(in_words), scheduler=scheduler)
    assert isinstance(kept, Lazy)
    with Watcher() as watcher:
        assert kept.compute(scheduler="sync") == "sum 80"
    assert not any(is_leaf(key) for key in watcher.order)


def test_lazy__optimises_to_an_equal_collection() -> None:
    lazy = lazy_sum().then(in_words)
    better: Any = dask.optimize(lazy)[0]
    assert len(dict(better.__dask_graph__())) == lazy.n_tasks
    assert better.compute(scheduler="sync") == "sum 80"


def test_lazy__rebuilds_under_another_name() -> None:
    lazy = lazy_sum()
    rebuild, extra = lazy.__dask_postpersist__()
    old, new = "coreset-fold-" + name_of(lazy.__dask_keys__()[0]).removeprefix("coreset-fold-"), "z"
    moved = rebuild({(new,): 5.0}, *extra, rename={old: new})
    assert moved.compute(scheduler="sync") == 5.0


def test_lazy__pickles() -> None:
    again = pickle.loads(pickle.dumps(lazy_sum().then(in_words)))
    assert again.compute(scheduler="sync") == "sum 80"


def test_lazy__tokens_differ_between_folds_and_not_between_copies() -> None:
    lazy = lazy_sum()
    assert is_dask_collection(lazy)
    assert tokenize(lazy) == tokenize(pickle.loads(pickle.dumps(lazy)))
    assert tokenize(lazy) != tokenize(lazy_sum())


def test_lazy__adds_no_task_without_a_finish() -> None:
    lazy = lazy_sum()
    with Watcher() as watcher:
        dask.compute(lazy, scheduler="sync")
    assert len(watcher.order) == lazy.n_tasks


def test_compute__finishes_in_the_process_of_the_caller() -> None:
    lazy = lazy_sum().then(with_process)
    with pytest.warns(CoresetWarning, match="finished"):
        value, process = lazy.compute(scheduler="processes", num_workers=1)
    assert (value, process) == (80.0, os.getpid())


def compute_once_more(value: float) -> tuple[float, float, Any]:
    return value, lazy_sum().compute(), dask.config.get("scheduler", None)


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_compute__gives_its_scheduler_to_what_finish_computes(scheduler: str) -> None:
    lazy = lazy_sum().then(compute_once_more)
    assert lazy.compute(scheduler=scheduler) == (80.0, 80.0, scheduler)
    assert dask.config.get("scheduler", None) is None


def test_compute__looks_for_no_client_where_distributed_was_never_imported() -> None:
    code = (
        "import sys, numpy, daskcoreset\n"
        "daskcoreset.build(numpy.eye(9), size=3, chunks=2)\n"
        "assert 'dask.threaded' in sys.modules\n"
        "assert 'distributed' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compute__obeys_the_setting_of_the_scheduler() -> None:
    counting = CountingScheduler()
    with dask.config.set(scheduler=counting):
        assert lazy_sum().compute() == 80.0
    assert counting.calls == 1


def test_compute__threads_are_the_default_of_a_mixed_compute() -> None:
    assert dask.compute(lazy_sum(), da.ones(3, chunks=1).sum()) == (80.0, 3.0)


def test_leaf_layers__counts_the_blocks_of_every_read(tmp_path: Path) -> None:
    lazy = two_passes(from_zarr(tmp_path, ("X",))["X"])
    assert list(leaf_layers(lazy).values()) == [N_BLOCKS, N_BLOCKS]
    kept: Any = dask.persist(lazy, scheduler="sync")[0]
    assert leaf_layers(kept) == {}


def test_leaf_layers__are_the_names_of_tasks_that_run(tmp_path: Path) -> None:
    for reader in READERS.values():
        (folder := tmp_path / reader.__name__).mkdir()
        lazy = two_passes(reader(folder, ("X",))["X"])
        with Watcher() as watcher:
            lazy.compute(scheduler="sync")
        names = [name_of(key) for key in watcher.order]
        assert {name: names.count(name) for name in leaf_layers(lazy)} == leaf_layers(lazy)


def test_active_client__none_without_a_client() -> None:
    assert active_client() is None


PRIVATE = re.compile(r"(^|\.)_[a-z]")


def private_imports(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    libraries = ("dask", "distributed", "zarr", "numcodecs")
    return {name for name in found if name.split(".")[0] in libraries and PRIVATE.search(name)}


def test_private_modules_of_dask_are_imported_by_the_plumbing_alone() -> None:
    root = Path(daskcoreset.__file__).parent
    users = {
        str(path.relative_to(root)): names
        for path in sorted(root.rglob("*.py"))
        if (names := private_imports(path.read_text(encoding="utf-8")))
    }
    assert set(users) == {
        f"execution/{name}.py" for name in ("clone", "engine", "fold", "lazy", "unfused", "waiting")
    }
    modules = {name.rpartition(".")[0] for names in users.values() for name in names}
    assert modules == {"dask._task_spec", "distributed.client"}


def test_private_imports__finds_them_in_every_form() -> None:
    source = "import dask._a\nfrom dask import _b\ndef f():\n    from dask._c import d\nimport dask"
    assert private_imports(source) == {"dask._a", "dask._b", "dask._c.d"}


def test_repr__is_cheap_and_a_table_in_notebooks() -> None:
    rows, scheduler = da.ones((1000, 2), chunks=(100, 2)), CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        lazy = daskcoreset.build(rows, size=10, compute=False)
        plan = daskcoreset.build(rows, size=10, dry_run=True)
        assert repr(lazy) == "Lazy(10 blocks to read; compute() gives the value)"
        assert "<td" in lazy._repr_html_()
        assert "compute()" in lazy._repr_html_()
        for word in ("<td", "peak of a worker", "1,000", "BuildPlan"):
            assert word in plan._repr_html_()
    assert scheduler.calls == 0
    assert "unknown" in daskcoreset.build(rows[rows[:, 0] > 0], dry_run=True)._repr_html_()
