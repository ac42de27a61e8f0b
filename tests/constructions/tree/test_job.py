"""``build(strategy="tree")``: one read, one tree, the same bits everywhere."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

from daskcoreset.build import build
from daskcoreset.constructions.tree.reducer import SensitivityReducer
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import CoresetWarning, InvalidInputError
from daskcoreset.core.points import WeightedPoints
from daskcoreset.execution.lazy import Lazy, leaf_layers
from daskcoreset.sensitivities import Lightweight, StrongKMeans, Uniform
from daskcoreset.testing import CountingArray, CountingScheduler

N = 3000
SIZE = 60


def data(n: int = N) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = np.sort(rng.normal(scale=5.0, size=(n, 1)), axis=0) + rng.normal(size=(n, 4))
    return X, rng.integers(0, 3, n), rng.integers(0, 3, n) * rng.lognormal(size=n)


def defined(X: Any, y: Any, w: Any, **options: Any) -> Lazy[Coreset]:
    chunks = (700, 0, 1, 999, 800, 500)
    parts = [da.from_array(part, chunks=(chunks, *part.shape[1:])) for part in (X, y, w)]
    given: dict[str, Any] = {"size": SIZE, "random_state": 5, "split_every": 2, **options}
    lazy: Lazy[Coreset] = build(
        parts[0], parts[1], sample_weight=parts[2], strategy="tree", compute=False, **given
    )
    return lazy


@pytest.mark.parametrize("sampling", ["systematic", "multinomial"])
@pytest.mark.parametrize(
    "method", [Uniform(), Lightweight(), StrongKMeans(4), StrongKMeans(3, rough="kmeans||")]
)
def test_build__same_bits_on_schedulers(method: Any, sampling: Any) -> None:
    lazy = defined(*data(), method=method, sampling=sampling)
    one = lazy.compute(scheduler="sync")
    assert one.equals(lazy.compute(scheduler="threads", num_workers=3))
    assert one.equals(defined(*data(), method=method, sampling=sampling).compute())


def test_build__reads_every_row_once_and_defines_without_computing() -> None:
    X = data()[0]
    counted, scheduler = CountingArray(X), CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        lazy = build(counted, size=SIZE, chunks=500, strategy="tree", compute=False)
        plan = build(counted, size=SIZE, chunks=500, strategy="tree", dry_run=True)
        assert scheduler.calls == 0
        lazy.compute()
    assert (counted.reads == 1).all()
    assert plan.reads == 1
    assert sum(leaf_layers(lazy).values()) == 6
    assert lazy.n_tasks == plan.tasks == 7  # six leaves and a root


def test_build__depth_is_logarithmic() -> None:
    X = data()[0]
    for split_every, levels in ((2, 5), (4, 3), (16, 2)):
        c = build(X, size=10, chunks=100, strategy="tree", split_every=split_every)
        assert c.provenance["levels"] == levels
        assert c.provenance["n_blocks"] == 30


def test_build__provenance_has_the_keys_of_a_sample() -> None:
    X, y, w = data()
    options: dict[str, Any] = {"sample_weight": w, "size": SIZE, "random_state": 0, "chunks": 500}
    tree = build(X, y, strategy="tree", **options)
    sample = build(X, y, **options)
    assert sample.provenance.keys() <= tree.provenance.keys()
    for key in ("method", "n", "m", "d", "n_dropped", "n_blocks", "seed", "versions", "passes"):
        assert tree.provenance[key] == sample.provenance[key]
    assert tree.provenance["inner_size"] == 2 * SIZE
    assert tree.provenance["strategy"] == "tree"
    np.testing.assert_allclose(tree.provenance["total_weight"], w.sum())


def test_build__one_block_needs_no_scheduler() -> None:
    X = data()[0]

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a scheduler was asked")

    with dask.config.set(scheduler=refuse):
        c = build(X, size=SIZE, strategy="tree", random_state=0)
    assert len(c) == SIZE
    assert c.provenance["levels"] == 0


def test_build__a_reducer_needs_the_tree_and_few_rows_warn() -> None:
    from daskcoreset.constructions.tree.reducer import SensitivityReducer

    X = data(100)[0]
    with pytest.raises(InvalidInputError, match='pass strategy="tree"'):
        build(X, size=9, method=SensitivityReducer(Uniform()))
    with pytest.warns(CoresetWarning, match="is below n_clusters=12"):
        build(X, size=9, method=StrongKMeans(12), strategy="tree")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(X, size=12, method=StrongKMeans(12), strategy="tree")


def test_build__every_node_has_random_numbers_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else equal blocks would lose the same rows, and errors would add up instead of averaging."""
    numbers: list[float] = []
    for name in ("reduce", "finish"):
        original = getattr(SensitivityReducer, name)

        def noting(
            self: Any, points: Any, size: int, rng: Any, original: Any = original
        ) -> WeightedPoints:
            numbers.append(float(copy.deepcopy(rng).random()))
            found: WeightedPoints = original(self, points, size, rng)
            return found

        monkeypatch.setattr(SensitivityReducer, name, noting)
    X, _, w = data(600)
    with dask.config.set(scheduler="sync"):
        build(
            X, sample_weight=w, size=30, inner_size=40, chunks=75, split_every=2,
            strategy="tree", random_state=0,
        )  # fmt: skip
    assert len(numbers) == 15  # eight leaves, four nodes, two nodes, the root
    assert len(set(numbers)) == len(numbers)
