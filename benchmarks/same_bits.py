"""Whether two checkouts of the package give the same bits, in every mode and by every model.

``python benchmarks/same_bits.py --before FOLDER`` runs the calls of `jobs` and `others` in a
process with the package of FOLDER and in one with the package of this checkout, and compares
digests of points, weights, indices and labels, or of what a model has learnt. Digests are compared
on one machine only: other processors round differently.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from daskcoreset import Draw, MergeReduce

HERE = Path(__file__).parents[1]


def digest(*arrays: Any) -> str:
    """Return a digest of the bytes, shapes and dtypes of arrays."""
    found = hashlib.blake2b(digest_size=12)
    for one in arrays:
        array = np.ascontiguousarray(one.toarray() if sp.issparse(one) else one)
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def of_coreset(coreset: Any) -> str:
    """Return the digest of a coreset."""
    labels = [] if coreset.labels is None else [coreset.labels]
    return digest(coreset.points, coreset.weights, coreset.indices, *labels)


def jobs() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield a name and a build, for every construction and mode."""
    import dask.array as da

    import daskcoreset as dc

    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(loc, 1.0, size=(4000, 4)) for loc in (0.0, 6.0, -9.0)])
    X = X[rng.permutation(len(X))]
    y = (X[:, 0] + rng.normal(size=len(X)) > 4.0).astype(np.int64)
    u = rng.uniform(0.5, 2.0, size=len(X))
    positive = np.abs(X) + 0.1
    methods: dict[str, tuple[Any, Any, Any]] = {
        "uniform": (dc.Uniform(), X, None),
        "lightweight": (dc.Lightweight(), X, None),
        "kmeans": (dc.StrongKMeans(5), X, None),
        "bregman": (dc.LightweightBregman("kl"), positive, None),
        "strong bregman": (dc.StrongBregman(5, "itakura_saito"), positive, None),
        "mixture": (dc.Mixture(3), X, None),
        "svm": (dc.SVM(), X, y),
        "svm as published": (dc.SVM(variant="paper"), X, y),
        "logistic": (dc.Logistic(), X, y),
    }
    modes: dict[str, dict[str, Any]] = {
        "one read": {"chunks": 1500},
        "two reads": {"chunks": 1500, "draw": Draw(passes=2)},
        "independent": {"chunks": 1500, "draw": Draw(sampling="multinomial", passes=2)},
        "tree": {"chunks": 1500, "draw": MergeReduce()},
        "one block": {},
    }

    def built(method: Any, data: Any, labels: Any, given: dict[str, Any]) -> str:
        options = {"size": 300, "random_state": 3} | given
        return of_coreset(dc.build(data, labels, method=method, **options))

    for name, (method, data, labels) in methods.items():
        for mode, given in modes.items():
            yield f"{name}, {mode}", lambda a=(method, data, labels, given): built(*a)
        yield (
            f"{name}, weights",
            lambda a=(method, data, labels): built(*a, {"sample_weight": u, "chunks": 2500}),
        )
        yield (
            f"{name}, sparse",
            lambda a=(method, data, labels): built(a[0], sp.csr_array(a[1]), a[2], {}),
        )
        yield (
            f"{name}, float32 Dask",
            lambda a=(method, data, labels): built(
                a[0],
                da.from_array(a[1].astype(np.float32), chunks=(1700, -1)),
                None if a[2] is None else da.from_array(a[2], chunks=1700),
                {},
            ),
        )

        def streamed(a: tuple[Any, ...] = (method, data, labels)) -> str:
            stream = dc.CoresetStream(a[0], size=200, leaf_size=2000, random_state=1)
            for start in range(0, len(a[1]), 1100):
                rows = slice(start, start + 1100)
                stream.partial_fit(a[1][rows], *([] if a[2] is None else [a[2][rows]]))
            return of_coreset(stream.coreset())

        yield f"{name}, stream", streamed

        def stored(a: tuple[Any, ...] = (method, data, labels)) -> str:
            with tempfile.TemporaryDirectory() as folder:
                tree = dc.CoresetTree.create(
                    Path(folder) / "tree", method=a[0], size=200, random_state=1
                )
                for i, start in enumerate(range(0, len(a[1]), 4000)):
                    rows = slice(start, start + 4000)
                    tree.append(a[1][rows], None if a[2] is None else a[2][rows], name=str(i))
                return of_coreset(tree.coreset())

        yield f"{name}, stored tree", stored
    yield "cover, diameter", lambda: of_coreset(dc.build(X, method=dc.Coverage(diameter=3.0)))
    yield (
        "cover, size",
        lambda: of_coreset(dc.build(X, method="coverage", size=50, chunks=2000)),
    )
    apart = np.where(y[:, np.newaxis] > 0, X + 40.0, X)
    yield from others(X, y, apart)


def others(X: Any, y: Any, apart: Any) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield a name and a call, for models, portfolios, views, audits and metrics."""
    import dask.array as da

    import daskcoreset as dc
    from daskcoreset import estimators as es

    targets = X @ np.arange(1.0, 5.0) + np.random.default_rng(1).normal(size=len(X))
    seeded: dict[str, Any] = {"size": 300, "random_state": 0}
    models: dict[str, tuple[Any, Any, Any, str]] = {
        "CoresetKMeans": (es.CoresetKMeans(4, **seeded), X, None, "cluster_centers_"),
        "CoresetBregman": (es.CoresetBregman(4, **seeded), X, None, "cluster_centers_"),
        "CoresetGaussianMixture": (es.CoresetGaussianMixture(3, **seeded), X, None, "means_"),
        "CoresetSVC": (es.CoresetSVC(**seeded), X, y, "coef_"),
        "CoresetLogisticRegression": (es.CoresetLogisticRegression(**seeded), X, y, "coef_"),
        "CoresetRidge": (es.CoresetRidge(**seeded), X, targets, "coef_"),
        "CoresetElasticNet": (es.CoresetElasticNet(**seeded), X, targets, "coef_"),
        "CoresetKernelClassifier": (
            es.CoresetKernelClassifier(max_points=30, random_state=0), X, y, "dual_coef_",
        ),
        "CoresetKernelClassifier, AVM": (
            es.CoresetKernelClassifier(solver="avm", max_points=30, random_state=0), X, y,
            "dual_coef_",
        ),
        "ODMClassifier": (es.ODMClassifier(random_state=0), X[:400], y[:400], "dual_coef_"),
        "MaxMarginClassifier": (es.MaxMarginClassifier(), apart, y, "coef_"),
        "OutlierMaxMarginClassifier": (es.OutlierMaxMarginClassifier(1), apart, y, "coef_"),
        "StructuredMaxMargin": (es.StructuredMaxMargin(), apart, y, "coef_"),
        "ActiveMaxMarginClassifier": (
            es.ActiveMaxMarginClassifier(random_state=0), apart, y, "coef_",
        ),
    }  # fmt: skip
    for name, (model, rows, labels, attribute) in models.items():
        in_blocks = da.from_array(rows, chunks=(2000, 4))

        def fitted(a: tuple[Any, ...], data: Any) -> str:
            model, labels, attribute = a
            return digest(np.asarray(getattr(model.fit(data, labels), attribute)))

        given = (model, labels, attribute)
        yield name, lambda a=given, data=rows: fitted(a, data)
        if name != "ODMClassifier":
            yield f"{name}, chunks", lambda a=given, data=in_blocks: fitted(a, data)

    def portfolio() -> str:
        many = dc.build_many(X, methods=["uniform", "lightweight"], chunks=2000, **seeded)
        return "".join(of_coreset(many[name]) for name in ("uniform", "lightweight"))

    def audited() -> str:
        coreset = dc.build(X, **seeded)
        return digest(coreset.audit(X, n_clusters=4, random_state=0, chunks=2000).distortion)

    def followed() -> str:
        with tempfile.TemporaryDirectory() as folder:
            for i in range(5):
                np.save(Path(folder) / f"{i}.npy", X[i * 2000 : i * 2000 + 2000])
            view = dc.CoresetTree.follow(
                f"{folder}/*.npy", Path(folder) / "view", size=200, random_state=1
            )
            return of_coreset(view.coreset())

    yield "grow", lambda: of_coreset(dc.grow(X, n_clusters=5, epsilon=0.2, random_state=3))
    yield "portfolio", portfolio
    yield "audit", audited
    yield "view", followed
    yield "lazy", lambda: of_coreset(dc.plan(X, chunks=2000, **seeded).compute())


def run() -> None:
    """Print a line of JSON for every build: its name and digest, or the error it ended with."""
    warnings.simplefilter("ignore")
    for name, work in jobs():
        try:
            found = work()
        except Exception as error:  # noqa: BLE001 - the same error is the same answer
            found = f"{type(error).__name__}: {error}"
        print(json.dumps([name, found]), flush=True)


def results_of(folder: Path) -> dict[str, str]:
    """Return the digests of the package in a folder."""
    env = os.environ | {"PYTHONPATH": str(folder.resolve()), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "--run"], env=env, check=True, capture_output=True, text=True
    )
    return dict(json.loads(line) for line in done.stdout.splitlines())


def main() -> int:
    """Compare two checkouts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="folder of an earlier checkout")
    parser.add_argument("--run", action="store_true", help="print the digests of this process")
    given = parser.parse_args()
    if given.run:
        run()
        return 0
    now = results_of(HERE)
    before = results_of(given.before)
    differing = [name for name in now if now[name] != before.get(name)]
    for name in differing:
        print(f"{name}: {before.get(name)} before, {now[name]} now")
    errors = [name for name, found in now.items() if ": " in found]
    print(f"{len(now)} builds, {len(errors)} of them errors in both, {len(differing)} differ")
    for name in errors:
        print(f"    {name}: {now[name][:120]}")
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
