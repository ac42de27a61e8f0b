"""``daskcoreset demo``: k-means on coresets of a store that stays on the disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

from dask.utils import format_bytes

from daskcoreset.datasets import make_geometric
from daskcoreset.errors import StoreError
from daskcoreset.metrics.compare import Comparison, compare

# Each cluster has half the rows of the one before, lies farther out and costs as much.
_CLUSTERS, _COLUMNS, _CHUNK = 16, 10, 2**16


def run_demo(
    folder: str | None = None, *, random_state: int = 0, n_rows: int = 1_200_000
) -> Comparison:
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
    Comparison
        As `daskcoreset.compare` returns it.
    """
    store = Path(folder or tempfile.mkdtemp(prefix="daskcoreset-demo-")) / "rows.zarr"
    print(f"Write {n_rows:,} rows of {_COLUMNS} columns to {store}")
    X, _ = make_geometric(
        n_rows, _COLUMNS, n_clusters=_CLUSTERS, chunks=_CHUNK, random_state=random_state
    )
    if store.exists():
        raise StoreError(f"{store} exists", remedy="remove it, or pass another --folder")
    X.to_zarr(str(store))
    print(f"Build coresets from its {format_bytes(int(X.nbytes))}, and solve k-means on them")
    found = compare(str(store), n_clusters=_CLUSTERS, sizes=[500, 2000], random_state=random_state)
    print(found)
    print(
        "Error: excess of the cost on all rows over the lowest cost found here.\n"
        "It is a mean over the draws, beside the least and the largest."
    )
    return found
