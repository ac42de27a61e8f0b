"""Bytes between the processes of a cluster: every construction and estimator, two workers.

A Zarr store of float32 rows with labels is written, and every build and fit runs on a scheduler
and two worker processes. What the scheduler reads and writes is counted on its connections, so
that a value which passes through it to the client counts twice; what workers fetch of one another
is counted apart.

    python benchmarks/traffic.py --rows 12000000
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np
import zarr

import daskcoreset as dc
from daskcoreset import estimators as es

sys.path.append(str(Path(__file__).parents[1]))

from tests.tools.traffic import Traffic

COLUMNS = 20
CHUNK_ROWS = 200_000  # 16 MB


def write(path: str, n_rows: int) -> None:
    """Write rows, and labels of a noisy linear rule."""
    rng = np.random.default_rng(0)
    group = zarr.open_group(path, mode="w")
    chunk = min(CHUNK_ROWS, n_rows)
    X = group.create_array("X", shape=(n_rows, COLUMNS), chunks=(chunk, COLUMNS), dtype="float32")
    y = group.create_array("y", shape=(n_rows,), chunks=(chunk,), dtype="int64")
    direction = rng.normal(size=COLUMNS)
    for start in range(0, n_rows, chunk):
        stop = min(start + chunk, n_rows)
        rows = rng.standard_normal((stop - start, COLUMNS), dtype=np.float32)
        X[start:stop] = rows
        y[start:stop] = rows @ direction + rng.normal(size=stop - start) > 0


def jobs(path: str) -> dict[str, Callable[[], Any]]:
    """Return what is measured, by name."""

    def built(method: Any, y: str | None = None, **options: Any) -> Callable[[], Any]:
        return lambda: dc.build(f"{path}/X" if y is None else path, y, method=method,
                                random_state=0, progress=False, **options)  # fmt: skip

    def fitted(model: Any, y: str | None = None) -> Callable[[], Any]:
        return lambda: model.fit(*([path, y] if y else [f"{path}/X"]))

    return {
        "uniform": built("uniform"),
        "lightweight": built("lightweight"),
        "lightweight, two reads": built("lightweight", draw=dc.Draw(passes=2)),
        "lightweight, 100,000 rows": built("lightweight", size=100_000),
        "lightweight, tree": built("lightweight", draw=dc.MergeReduce()),
        "kmeans": built(dc.StrongKMeans(10)),
        "mixture": built(dc.Mixture(5)),
        "bregman": built(dc.LightweightBregman("squared_euclidean")),
        "coverage, 100 points": built("coverage", size=100),
        "svm": built("svm", "y"),
        "svm, two reads and a draw": built("svm", "y", draw=dc.Draw(passes=2)),
        "svm, 100,000 rows": built("svm", "y", size=100_000),
        "logistic": built("logistic", "y", draw=dc.Draw(passes=2)),
        "least_squares": built("least_squares", "y", draw=dc.Draw(passes=2)),
        "CoresetKMeans": fitted(es.CoresetKMeans(10, random_state=0)),
        "CoresetGaussianMixture": fitted(es.CoresetGaussianMixture(5, random_state=0)),
        "CoresetSVC": fitted(es.CoresetSVC(random_state=0), "y"),
        "CoresetLogisticRegression": fitted(es.CoresetLogisticRegression(random_state=0), "y"),
        "CoresetKernelClassifier": fitted(es.CoresetKernelClassifier(random_state=0), "y"),
        "CoresetKernelClassifier, CSVRG": fitted(
            es.CoresetKernelClassifier(solver="csvrg", random_state=0), "y"
        ),
        "CoresetKernelClassifier, AVM": fitted(
            es.CoresetKernelClassifier(solver="avm", max_points=200, random_state=0), "y"
        ),
    }


def size_of(n_rows: int) -> float:
    """Return the mebibytes of so many rows."""
    return n_rows * COLUMNS * 4 / 2**20


def report(data: dict[str, Any]) -> str:
    """Return the table."""
    rows = []
    for key, cell in data["results"].items():
        name, n_rows = key.rsplit("|", 1)
        size = size_of(int(n_rows))
        passed, between = (cell[part] / 2**20 for part in ("scheduler", "workers"))
        share = f"{100 * passed / size:.1f}"
        numbers = [f"{int(n_rows):,}", f"{size:.0f}", f"{passed:.1f}", share, f"{between:.1f}"]
        rows.append([name, *numbers, cell["commit"]])
    heads = [
        "job", "rows", "data, MiB", "scheduler, MiB in and out", "% of the data",
        "between workers, MiB", "commit",
    ]  # fmt: skip
    text = (
        f"Rows of {COLUMNS} float32 columns, on two workers. What does not grow with the rows "
        "(what processes tell one another, the coreset, drawn rows, Hessians of kernel "
        f"classifiers) is the greater part where there are few. {common.stamped(data)}"
    )
    return "\n".join([text, "", *common.table(heads, rows), ""])


def earlier(folder: Path) -> dict[str, Any]:
    """Return the results that are there, of other jobs or numbers of rows."""
    file = folder / "traffic.json"
    return dict(json.loads(file.read_text())["results"]) if file.exists() else {}


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=12_000_000)
    parser.add_argument("--jobs", nargs="+", help="names of some of the jobs")
    parser.add_argument("--folder", type=Path, help="where the store goes; removed afterwards")
    args = parser.parse_args()
    from distributed import Client

    warnings.simplefilter("ignore")
    stamp = common.stamp()
    results = earlier(args.out)
    with (
        tempfile.TemporaryDirectory(dir=args.folder) as folder,
        common.workers(2) as cluster,
        Client(cluster) as client,
    ):
        path = f"{folder}/rows.zarr"
        write(path, args.rows)
        known = jobs(path)

        def place(key: str) -> tuple[int, int]:
            name, n_rows = key.rsplit("|", 1)
            return list(known).index(name), int(n_rows)

        for name in args.jobs or known:
            with Traffic(client) as bytes_:
                known[name]()
            key = f"{name}|{args.rows}"
            results[key] = {
                "scheduler": bytes_.scheduler,
                "workers": bytes_.workers,
                "commit": stamp["commit"],
            }
            common.printed([key, *results[key].values()])
            # After every job: a table of some is better than none.
            in_order = dict(sorted(results.items(), key=lambda item: place(item[0])))
            common.write("traffic", {"stamp": stamp, "results": in_order}, args.out, report)


if __name__ == "__main__":
    main()
