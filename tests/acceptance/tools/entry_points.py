"""Every call that computes on a cluster, on the same small rows, with what it gives as a digest."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import dask.array as da
import numpy as np
import zarr
from sklearn.cluster import KMeans

from tests.acceptance.face import (
    Draw,
    LightweightBregman,
    MergeReduce,
    Mixture,
    StrongKMeans,
    build,
    create_tree,
    estimators,
    grow,
    plan,
    stream as make_stream,
    time_limit,
)
from tests.acceptance.tools.cluster_harness import Gate, GatedRows, until

BLOCK, BLOCKS = 250, 12


@dataclass(frozen=True)
class Data:
    """Rows on disk, whose second half passes a gate, and their labels."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Self:
        """Write rows of two classes with a margin between them, in clusters."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(BLOCK * BLOCKS, 4)) + 8.0 * rng.integers(0, 2, (BLOCK * BLOCKS, 1))
        X[:, 0] += np.where(X[:, 0] > 4.0, 1.0, -1.0)
        y = (X[:, 0] > 4.0).astype(np.int64)
        zarr.create_array(folder / "X.zarr", data=X, chunks=(BLOCK, 4))
        zarr.create_array(folder / "y.zarr", data=y, chunks=(BLOCK,))
        return cls(folder)

    @property
    def gate(self) -> Gate:
        return Gate(self.folder / "gate")

    @property
    def X(self) -> GatedRows:  # noqa: N802 - the field's name for rows
        """Rows that tasks read themselves."""
        return GatedRows(self.folder / "X.zarr", self.gate)

    @property
    def dask_X(self) -> Any:  # noqa: N802 - likewise
        """The same as a Dask array."""
        return da.from_array(self.X, chunks=(BLOCK, 4), inline_array=True, asarray=False)

    @property
    def y(self) -> Any:
        return zarr.open_array(self.folder / "y.zarr", mode="r")

    @property
    def in_memory(self) -> tuple[Any, Any]:
        """All rows and labels as NumPy arrays, past the gate."""
        return zarr.open_array(self.folder / "X.zarr", mode="r")[:], self.y[:]

    @property
    def pair(self) -> tuple[Any, Any]:
        return self.X, self.y


def bits(*parts: Any) -> str:
    """Return a digest of arrays and numbers, to the last bit."""
    digest = hashlib.sha256()
    for part in parts:
        array = np.asarray(part)
        digest.update(f"{array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return digest.hexdigest()[:16]


def of_coreset(coreset: Any) -> str:
    return bits(coreset.points, coreset.weights, coreset.indices)


def _build(data: Data, *, labels: bool = False, **options: Any) -> str:
    settings: dict[str, Any] = {"size": 60, "random_state": 0, "chunks": BLOCK} | options
    return of_coreset(build(data.X, data.y if labels else None, **settings))


def _grown(data: Data) -> str:
    options: dict[str, Any] = {"n_clusters": 2, "epsilon": 0.3, "random_state": 0}
    return of_coreset(grow(data.X, method="lightweight", chunks=BLOCK, **options))


def _defined(data: Data) -> str:
    lazy = plan(data.X, size=60, random_state=0, chunks=BLOCK)
    return of_coreset(lazy.compute())


def _fitted(name: str, data: Data) -> str:
    attribute, options = MODELS[name]
    model = getattr(estimators, name)(**options)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    model.fit(data.dask_X, data.y if "coef_" in attribute else None)
    return bits(attrgetter(attribute)(model))


def _scored(data: Data) -> str:
    X, _ = data.in_memory
    return bits(estimators.CoresetKMeans(2, random_state=0).fit(X).score(data.dask_X))


def _tree(data: Data) -> str:
    with tempfile.TemporaryDirectory() as folder:
        tree = create_tree(Path(folder) / "tree", size=60, random_state=0)
        tree.append(data.X, name="first")
        tree.replace("first", data.dask_X)
        return of_coreset(tree.coreset())


def _stream(data: Data) -> str:
    stream = make_stream(size=60, leaf_size=500, random_state=0)
    return of_coreset(stream.partial_fit(data.dask_X).coreset())


def _audit(data: Data) -> str:
    X, _ = data.in_memory
    coreset = build(X, size=60, random_state=0)
    return bits(coreset.audit(data.X, n_clusters=2, random_state=0, chunks=BLOCK).distortion)


Entry = Callable[[Data], str]

BUILDS: dict[str, Entry] = {
    "one read": _build,
    "two passes": partial(_build, draw=Draw(passes=2)),
    "multinomial": partial(_build, draw=Draw("multinomial", 2)),
    "tree strategy": partial(_build, draw=MergeReduce()),
    "coverage": partial(_build, method="coverage", random_state=None, size=40),
    "kmeans": partial(_build, method=StrongKMeans(2), draw=Draw(passes=2)),
    "svm": partial(_build, method="svm", labels=True),
    "logistic": partial(_build, method="logistic", labels=True),
    "least_squares": partial(_build, method="least_squares", labels=True, draw=Draw(passes=2)),
    "bregman": partial(_build, method=LightweightBregman()),
    "mixtures": partial(_build, method=Mixture(2), draw=Draw(passes=2)),
    "size=auto": _grown,
    "compute=False": _defined,
}
"""`build` in all modes."""

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "CoresetKMeans": ("cluster_centers_", {"n_clusters": 2, "size": 60}),
    "CoresetBregman": ("cluster_centers_", {"n_clusters": 2, "size": 60}),
    "CoresetGaussianMixture": ("means_", {"n_components": 2, "size": 60}),
    "CoresetSVC": ("coef_", {"size": 60}),
    "CoresetLogisticRegression": ("coef_", {"size": 60}),
    "CoresetEstimator": (
        "estimator_.cluster_centers_",
        {"estimator": KMeans(2, n_init=1, random_state=0), "size": 60},
    ),
    "MaxMarginClassifier": ("coef_", {}),
    "OutlierMaxMarginClassifier": ("coef_", {"k": 1}),
    "StructuredMaxMargin": ("coef_", {}),
    "ActiveMaxMarginClassifier": ("coef_", {"batch": 20, "max_labels": 40}),
    "CoresetKernelClassifier": ("dual_coef_", {}),
}
"""What of each model is compared, and its parameters."""

OTHERS: dict[str, Entry] = {
    **{name: partial(_fitted, name) for name in MODELS},
    "CoresetKMeans.score": _scored,
    "CoresetTree": _tree,
    "CoresetStream": _stream,
    "audit": _audit,
}
"""Everything else that reads."""

ENTRY_POINTS = BUILDS | OTHERS


@contextmanager
def running(name: str, data: Data, client: Any, *signs: str, **limit: Any) -> Iterator[Any]:
    """Start an entry point on a cluster, and wait until a read of it stands at the gate.

    With a `timeout` it may have ended before.

    Yields
    ------
    concurrent.futures.Future, int
        Of the digest, and the number of a process that waits; the gate opens at the end.
    """

    def run() -> str:
        with client.as_current(), time_limit(limit.get("timeout")):
            return ENTRY_POINTS[name](data)

    data.gate.close(*signs)
    try:
        with ThreadPoolExecutor(1) as pool:
            try:
                result = pool.submit(run)
                until(lambda: result.done() or data.gate.waiting(), f"{name} reads")
                if not (data.gate.waiting() or limit):
                    result.result()
                    raise AssertionError(f"{name} reads nothing on the cluster")
                yield result, data.gate.waiting()
            finally:
                data.gate.open()
    finally:
        data.gate.open()
