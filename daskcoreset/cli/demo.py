"""``daskcoreset demo``: k-means on coresets of a store that stays on the disk."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from dask.utils import format_bytes

from daskcoreset._build import build
from daskcoreset.core.tables import text_table
from daskcoreset.datasets import make_geometric
from daskcoreset.errors import StoreError
from daskcoreset.metrics.costs import kmeans_cost

# Each cluster has half the rows of the one before, lies farther out and costs as much.
_CLUSTERS, _COLUMNS, _CHUNK = 16, 10, 2**16

# Rows kept, ways to choose them, seeds of each, and starts of k-means on them.
_SIZES, _METHODS, _SEEDS, _STARTS = (500, 2000), ("uniform", "lightweight", "kmeans"), 3, 8


def run_demo(
    folder: str | None = None, *, random_state: int = 0, n_rows: int = 1_200_000
) -> dict[tuple[int, str], list[float]]:
    """Compare k-means on uniform rows and on two coresets, and print a table.

    Parameters
    ----------
    folder : str or None, default=None
        Folder of the store, which stays. By default, a new temporary folder.
    random_state : int, default=0
        Seed of the data, and first seed of the builds.
    n_rows : int, default=1_200_000
        Rows of the store.

    Returns
    -------
    dict of (int, str) to list of float
        Errors of all seeds, by size and method. An error is the relative excess of the cost on all
        rows over the lowest cost found here.
    """
    from sklearn.cluster import KMeans

    store = Path(folder or tempfile.mkdtemp(prefix="daskcoreset-demo-")) / "rows.zarr"
    print(f"Write {n_rows:,} rows of {_COLUMNS} columns to {store}")
    X, _ = make_geometric(
        n_rows, _COLUMNS, n_clusters=_CLUSTERS, chunks=_CHUNK, random_state=random_state
    )
    if store.exists():
        raise StoreError(f"{store} exists", remedy="remove it, or pass another --folder")
    X.to_zarr(str(store))
    print(f"Build coresets from its {format_bytes(int(X.nbytes))}, and solve k-means on them")
    seconds: dict[tuple[int, str], float] = {}
    solutions = []
    for size in _SIZES:
        for method in _METHODS:
            start = time.perf_counter()
            for seed in range(random_state, random_state + _SEEDS):
                coreset = build(
                    str(store), size=size, method=method, n_clusters=_CLUSTERS, random_state=seed,
                    progress=False,
                )  # fmt: skip
                model = KMeans(_CLUSTERS, n_init=_STARTS, random_state=seed)
                model.fit(coreset.points, sample_weight=coreset.weights)
                solutions.append(model.cluster_centers_)
            seconds[size, method] = (time.perf_counter() - start) / _SEEDS
    print(f"Compare the costs of all {len(solutions)} solutions on all rows, in one pass")
    costs = kmeans_cost(str(store), solutions)
    found = np.reshape(costs / costs.min() - 1, (-1, _SEEDS))
    errors = {key: row.tolist() for key, row in zip(seconds, found, strict=True)}
    table: list[tuple[str, ...]] = [("method", "rows", "error", "from", "to", "seconds")]
    for (size, method), row in errors.items():
        shares = [f"{value:.2%}" for value in (np.mean(row), min(row), max(row))]
        table.append((method, f"{size:,}", *shares, f"{seconds[size, method]:.1f}"))
    print("\n".join(text_table(table)))
    print(
        f"Error: excess of the cost on all rows over the lowest cost found here. Mean and range of "
        f"{_SEEDS} seeds.\nSeconds: one build, and k-means from {_STARTS} starts."
    )
    return errors
