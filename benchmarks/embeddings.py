"""Clusters of embeddings: as many as an index has, beside faiss; and ten million rows of float16.

Four parts. *soft*: what sensitivities gain over uniform rows, on 50 clusters that run into one
another, and on the same with four rows of each of ten groups apart. *centers*: 1,024 clusters of a
stand-in for SIFT (a million rows of 128 bytes, lengths about 500, half of the numbers zero, made
here), the cost over all rows by the solvers of `CoresetKMeans`, by faiss on all rows, as it comes
(on 256 rows a cluster) and on uniform rows. *many*: 16,384 clusters of such rows. *rows*: builds
from rows of 768 float16 columns that are made when they are read, beside plain reads of the same
array. Rows come from a table by shifting its columns, which costs less than to read them from a
disk, or are drawn as one would draw them.

    python benchmarks/embeddings.py
    python benchmarks/embeddings.py --parts rows --rows 400_000 --out /tmp/embeddings

Parts that are not run again keep their results, each with the stamp of its own run. faiss has to
be installed (``pip install "daskcoreset[embeddings]"``).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import common
import dask
import dask.array as da
import numpy as np
import zarr

import daskcoreset
from daskcoreset.estimators import CoresetKMeans

NAME = "embeddings"
PARTS = ("soft", "centers", "many", "rows")

# Of the rows of few soft clusters.
SOFT_ROWS, SOFT_COLUMNS, SOFT_SIZE, SOFT_SEEDS = 40_000, 64, 1000, 8

# The stand-in for SIFT.
SIFT_ROWS, SIFT_COLUMNS = 1_000_000, 128
SIFT_CHUNK = 65_536

# What Lance publishes for SIFT, k = 1,024: cost of its streaming coresets, and of faiss.
LANCE = (13.84e9, 13.28e9)

CENTERS, MANY = 1024, 16_384
MANY_ROWS, MANY_SIZE = 300_000, 100_000

# Steps of faiss on all rows: as many as it makes by itself, and fewer where one takes minutes.
STEPS, FEW_STEPS = 25, 5

ROWS, COLUMNS = 10_000_000, 768
BLOCK_ROWS = 16_384
SIZE = 10_000
TURNS = 3

# Rows of the table that lazy rows come from.
_TABLE_ROWS = 40_000


# --- soft clusters -----------------------------------------------------------------------


def soft_rows(*, apart: bool) -> np.ndarray:
    """Return rows of 50 clusters that run into one another, perhaps with a few rows apart."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((50, SOFT_COLUMNS))
    X = means[rng.integers(0, 50, SOFT_ROWS)] + rng.standard_normal((SOFT_ROWS, SOFT_COLUMNS))
    if apart:
        far = 100.0 * rng.standard_normal((10, SOFT_COLUMNS))
        X[:40] = np.repeat(far, 4, axis=0) + rng.standard_normal((40, SOFT_COLUMNS))
    return X.astype(np.float32)


def soft_part() -> list[dict[str, Any]]:
    """Compare centers from few rows with those from all of them."""
    found = []
    for apart in (False, True):
        X, k = soft_rows(apart=apart), 60 if apart else 50
        fits: dict[str, dict[str, Any]] = {
            "uniform rows": {"method": "uniform"},
            "strong, rows": {"representatives": "rows"},
            "strong, centroids": {},
        }
        whole = CoresetKMeans(k, size=len(X), representatives="rows", random_state=0).fit(X)
        for name, options in fits.items():
            costs = [
                CoresetKMeans(k, size=SOFT_SIZE, random_state=seed, **options).fit(X).inertia_
                for seed in range(SOFT_SEEDS)
            ]
            excess = np.array(costs) / whole.inertia_ - 1.0
            one = {"apart": apart, "name": name, "excess": excess.tolist()}
            found.append(one)
            common.printed([apart, name, common.cell(float(excess.mean()))])
    return found


# --- a stand-in for SIFT -----------------------------------------------------------------


def descriptors(seed: int = 0) -> Callable[[int], np.ndarray]:
    """Return a source of rows like SIFT's: bytes, half of them zero, of about the same length.

    Three thousand overlapping clusters in 20 dimensions of uneven widths, mapped to 128 columns,
    cut at zero, and twice brought to a length of 512 and cut at 130, as SIFT does.
    """
    rng = np.random.default_rng(seed)
    dims, n_clusters = 20, 3000
    widths = 1.0 / np.sqrt(1.0 + np.arange(dims) / 4.0)
    directions = (rng.standard_normal((dims, SIFT_COLUMNS)) * widths[:, np.newaxis]).astype("f4")
    means = rng.standard_normal((n_clusters, dims), dtype=np.float32)

    def draw(count: int) -> np.ndarray:
        hidden = means[rng.integers(0, n_clusters, count)]
        hidden = hidden + 0.8 * rng.standard_normal((count, dims), dtype=np.float32)
        noise = 0.5 * rng.standard_normal((count, SIFT_COLUMNS), dtype=np.float32)
        rows = np.maximum(hidden @ directions + noise, 0.0) ** 1.3
        for _ in range(2):
            rows *= 512.0 / np.sqrt(np.square(rows).sum(axis=1, keepdims=True) + 1e-9)
            np.minimum(rows, 130.0, out=rows)
        return np.rint(rows).astype(np.uint8)

    return draw


def write_descriptors(path: Path, n_rows: int) -> np.ndarray:
    """Write the rows to a Zarr array, and return them as float32, as faiss wants them."""
    shape, chunks = (n_rows, SIFT_COLUMNS), (min(SIFT_CHUNK, n_rows), SIFT_COLUMNS)
    array = zarr.create_array(path, shape=shape, chunks=chunks, dtype="uint8")
    draw, X = descriptors(), np.empty(shape, dtype=np.float32)
    for start in range(0, n_rows, chunks[0]):
        rows = draw(min(chunks[0], n_rows - start))
        array[start : start + len(rows)] = rows
        X[start : start + len(rows)] = rows
    return X


def cost_of(X: np.ndarray, centers: np.ndarray) -> float:
    """Sum of squared distances of all rows to the nearest center."""
    import faiss

    index = faiss.IndexFlatL2(X.shape[1])
    index.add(np.ascontiguousarray(centers, dtype=np.float32))
    return float(index.search(X, 1)[0].sum(dtype=np.float64))


def by_faiss(X: np.ndarray, k: int, steps: int, most: int | None = None) -> np.ndarray:
    """Return the centers of faiss, from at most so many rows a center, by default from all."""
    import faiss

    options = {"max_points_per_centroid": most or len(X), "min_points_per_centroid": 1}
    model = faiss.Kmeans(X.shape[1], k, niter=steps, seed=0, **options)
    model.train(X)
    return np.asarray(model.centroids)


def fitted(path: Path, k: int, **options: Any) -> np.ndarray:
    """Return the centers of `CoresetKMeans`."""
    return np.asarray(CoresetKMeans(k, random_state=0, **options).fit(path).cluster_centers_)


def uniform(path: Path, k: int, size: int) -> np.ndarray:
    """Return the centers of faiss from uniform rows."""
    rows = daskcoreset.build(path, method="uniform", size=size, random_state=0)
    return by_faiss(np.ascontiguousarray(rows.points, dtype=np.float32), k, STEPS)


def compared(
    X: np.ndarray, jobs: dict[str, tuple[int, Callable[[], np.ndarray]]]
) -> list[dict[str, Any]]:
    """Run each of the jobs; cost over all rows, rows that it kept, and seconds."""
    spread = float(X.var(axis=0, dtype=np.float64).sum()) * len(X)
    found = []
    for name, (size, job) in jobs.items():
        with common.timed() as clock:
            centers = job()
        cost = cost_of(X, centers)
        one = {"name": name, "size": size, "cost": cost, "share": cost / spread}
        found.append(one | {"cpu": clock.cpu, "seconds": clock.wall, "k": len(centers)})
        common.printed([name, size, f"{cost:.5g}", f"{clock.cpu:.1f} s"])
    return found


def centers_part(n_rows: int, k: int, folder: Path) -> list[dict[str, Any]]:
    """Compare on as many clusters as an index has."""
    path = folder / "sift.zarr"
    X = write_descriptors(path, n_rows)
    size = 100 * k
    jobs: dict[str, tuple[int, Callable[[], np.ndarray]]] = {
        "faiss, all rows": (n_rows, lambda: by_faiss(X, k, STEPS)),
        "faiss as it comes": (256 * k, lambda: by_faiss(X, k, STEPS, 256)),
        "uniform rows, faiss": (size, lambda: uniform(path, k, size)),
        "`solver=\"faiss\"`": (size, partial(fitted, path, k, solver="faiss")),
        "`solver=\"parts\"`": (size, partial(fitted, path, k, solver="parts")),
        "`solver=\"scikit-learn\"`, one start": (size, partial(fitted, path, k, n_init=1)),
    }  # fmt: skip
    return compared(X, jobs)


def many_part(n_rows: int, k: int, size: int, folder: Path) -> list[dict[str, Any]]:
    """Compare on very many clusters."""
    path = folder / "many.zarr"
    X = write_descriptors(path, n_rows)
    jobs: dict[str, tuple[int, Callable[[], np.ndarray]]] = {
        "`solver=\"parts\"`": (size, partial(fitted, path, k, solver="parts", size=size)),
        "`solver=\"faiss\"`": (size, partial(fitted, path, k, solver="faiss", size=size)),
        f"faiss, all rows, {FEW_STEPS} steps": (n_rows, lambda: by_faiss(X, k, FEW_STEPS)),
    }  # fmt: skip
    return compared(X, jobs)


# --- rows that are made when they are read -----------------------------------------------


def table() -> np.ndarray:
    """Return rows of 50 clusters that run into one another."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((50, COLUMNS), dtype=np.float32)
    noise = rng.standard_normal((_TABLE_ROWS, COLUMNS), dtype=np.float32)
    return (means[rng.integers(0, 50, _TABLE_ROWS)] + noise).astype(np.float16)


def shifted(rows: np.ndarray, n_rows: int, block_id: tuple[int, ...]) -> np.ndarray:
    """Return a block: rows of the table, their columns shifted by the number of the block."""
    i = block_id[0]
    start = i * 977 % (_TABLE_ROWS - BLOCK_ROWS)
    count = min(BLOCK_ROWS, n_rows - i * BLOCK_ROWS)
    return np.roll(rows[start : start + count], i % COLUMNS, axis=1)


def drawn(rows: np.ndarray, n_rows: int, block_id: tuple[int, ...]) -> np.ndarray:
    """Return a block: rows drawn about those of the table."""
    i = block_id[0]
    rng = np.random.default_rng([1, i])
    count = min(BLOCK_ROWS, n_rows - i * BLOCK_ROWS)
    noise = rng.standard_normal((count, COLUMNS), dtype=np.float32)
    noise += rows[rng.integers(0, len(rows), count)]
    return noise.astype(np.float16)


def lazy(make: Callable[..., np.ndarray], n_rows: int) -> da.Array:
    """Return rows of float16 that are made block by block."""
    full, rest = divmod(n_rows, BLOCK_ROWS)
    chunks = ((BLOCK_ROWS,) * full + ((rest,) if rest else ()), (COLUMNS,))
    meta = np.empty((0, 0), dtype=np.float16)
    source = partial(make, table(), n_rows)
    return da.map_blocks(source, chunks=chunks, dtype=np.float16, meta=meta)


def _column_sums(block: np.ndarray) -> np.ndarray:
    return block.astype(np.float32).sum(axis=0, dtype=np.float64, keepdims=True)


def _first(block: np.ndarray) -> np.ndarray:
    return block[:1, :1].copy()  # a view would keep all rows


def reads(X: da.Array) -> dict[str, Callable[[], object]]:
    """Return plain reads of an array and builds from it, by name."""
    build = partial(daskcoreset.build, X, size=SIZE, random_state=0, progress=False)
    sums = X.map_blocks(_column_sums, chunks=(1, COLUMNS), dtype=np.float64)
    return {
        "plain read": lambda: X.sum(axis=0, dtype=np.float64).compute(),
        "plain read as float32": lambda: sums.sum(axis=0).compute(),
        "`lightweight`": build,
        "`lightweight`, cosine": lambda: build(metric="cosine"),
        "`StrongKMeans(50)`": lambda: build(method=daskcoreset.StrongKMeans(50)),
        "`uniform`": lambda: build(method="uniform"),
        "rows made": lambda: X.map_blocks(_first, chunks=(1, 1)).compute(),
    }


Save: TypeAlias = Callable[[list[dict[str, Any]]], None]

MAKERS = {"shifted": shifted, "drawn": drawn}


def measure_peak(kind: str, n_rows: int, name: str) -> dict[str, float]:
    """Time a job once, and its peak bytes beyond what the process had; in a process of its own."""
    with dask.config.set(scheduler="threads"):
        reads(lazy(MAKERS[kind], 1000))[name]()
        X = lazy(MAKERS[kind], n_rows)
        before = common.reset_high_water()
        with common.timed() as clock:
            reads(X)[name]()
    return {
        "peak": common.high_water() - before,
        "whole": common.high_water(),
        "seconds": clock.wall,
        "cpu": clock.cpu,
    }


def rows_part(n_rows: int, kinds: list[str], save: Save) -> list[dict[str, Any]]:
    """Time every job in turns, each in a process of its own; few rows first."""
    found: list[dict[str, Any]] = []
    for kind in sorted(kinds):
        count = n_rows if kind == "shifted" else n_rows // 50
        for name in reads(lazy(MAKERS[kind], 1000)):
            turns = [
                common.in_child(__file__, "--peak-of", kind, count, name)
                for _ in range(TURNS if count < ROWS else 1)
            ]
            one: dict[str, Any] = {"kind": kind, "rows": count, "name": name}
            for key in ("seconds", "cpu"):
                one[key] = float(np.median([turn[key] for turn in turns]))
            for key in ("peak", "whole"):
                one[key] = max(turn[key] for turn in turns)
            found.append(one)
            common.printed(
                [kind, count, name, f"{one['cpu']:.1f} s", f"{one['peak'] / 1e6:.0f} MB"]
            )
            save(found)  # the next one may take long
    return found


# --- tables ------------------------------------------------------------------------------


def _solver_lines(found: list[dict[str, Any]]) -> list[str]:
    base = next(one for one in found if one["name"].startswith("faiss, all rows"))
    rows = [
        [
            one["name"],
            f"{one['size']:,}",
            f"{one['cost']:.4g}",
            f"{one['cost'] / base['cost']:.3f}",
            f"{100 * one['share']:.1f} %",
            f"{one['cpu']:.0f} s",
            f"{one['seconds']:.0f} s",
        ]
        for one in found
    ]
    heads = ["solver", "rows", "cost", "ratio", "of the variance", "processor", "elapsed"]
    return common.table(heads, rows)


def _read_lines(found: list[dict[str, Any]]) -> list[str]:
    rows = []
    for one in found:
        like = {each["name"]: each for each in found if each["kind"] == one["kind"]}
        bases = [like.get(name) for name in ("plain read", "plain read as float32")]
        ratios = ["" if base is None else f"{one['cpu'] / base['cpu']:.2f}" for base in bases]
        rows.append(
            [
                one["kind"],
                f"{one['rows']:,}",
                one["name"],
                f"{one['cpu']:.1f} s",
                *ratios,
                f"{one['seconds']:.1f} s",
                f"{one['peak'] / 1e9:.2f} GB",
                f"{one['whole'] / 1e9:.2f} GB",
            ]
        )
    heads = ["rows are", "rows", "job", "processor", "plain reads", "as float32", "elapsed",
             "peak beyond", "peak of the process"]  # fmt: skip
    return common.table(heads, rows)


def _section(title: str, words: list[str], table: list[str], part: dict[str, Any]) -> list[str]:
    return [f"## {title}", "", *words, "", *table, "", common.stamped(part), ""]


def report(data: dict[str, Any]) -> str:
    """Write the tables."""
    parts, lines = data["results"], ["# Clusters of embeddings", ""]
    if "soft" in parts:
        rows = []
        for one in parts["soft"]["found"]:
            kind = "forty rows apart" if one["apart"] else "soft clusters"
            mean, width = float(np.mean(one["excess"])), common.interval(one["excess"])
            rows.append([kind, one["name"], f"{common.cell(mean)} ± {common.cell(width)}"])
        words = [
            f"{SOFT_ROWS:,} rows of {SOFT_COLUMNS} columns in 50 clusters that run into one",
            "another, and the same with ten groups of four rows apart. Cost of the centers from",
            f"{SOFT_SIZE:,} points over all rows, in % above those from all rows, which end in",
            f"optima of their own; means of {SOFT_SEEDS} seeds with intervals of 95 %.",
        ]
        title = "What sensitivities gain"
        lines += _section(
            title, words, common.table(["rows", "points", "cost above, %"], rows), parts["soft"]
        )
    if "centers" in parts:
        words = [
            f"{parts['centers']['rows']:,} rows of 128 bytes. Cost over all rows, and its ratio to",
            "that of faiss on all rows. Lance publishes 13.84e9 for its streaming coresets and",
            f"13.28e9 for faiss on SIFT itself: a ratio of {LANCE[0] / LANCE[1]:.3f}.",
        ]
        title = f"{CENTERS:,} clusters of a stand-in for SIFT"
        lines += _section(title, words, _solver_lines(parts["centers"]["found"]), parts["centers"])
    if "many" in parts:
        words = [
            f"Of {parts['many']['rows']:,} such rows; faiss on all rows makes {FEW_STEPS} steps.",
        ]
        title = f"{MANY:,} clusters"
        lines += _section(title, words, _solver_lines(parts["many"]["found"]), parts["many"])
    if "rows" in parts:
        words = [
            "Shifted rows come from a table and cost next to nothing to make; drawn ones are",
            "normal numbers. A plain read adds up the columns, of float16 as they are or of",
            "float32, which all else has to make of them. Ratios of processor seconds; bytes",
            "beyond what the process held before, and all of it. Two threads.",
        ]
        title = f"Rows of {COLUMNS} float16 columns, made when they are read"
        lines += _section(title, words, _read_lines(parts["rows"]["found"]), parts["rows"])
    return "\n".join(lines)


def main() -> None:
    """Run and write the results."""
    parser = common.arguments(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rows", type=int, default=ROWS, help="of float16; a fiftieth are drawn")
    parser.add_argument("--kinds", nargs="+", choices=list(MAKERS), default=list(MAKERS))
    parser.add_argument("--sift", type=int, default=SIFT_ROWS, help="rows of the stand-in")
    parser.add_argument("--many", type=int, default=MANY_ROWS, help="rows of very many clusters")
    parser.add_argument("--clusters", nargs=2, type=int, default=[CENTERS, MANY])
    parser.add_argument("--peak-of", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak_of:
        kind, count, name = args.peak_of
        print(json.dumps(measure_peak(kind, int(count), name)))
        return
    known = args.out / f"{NAME}.json"
    results = common.read(NAME, args.out)["results"] if known.exists() else {}

    def save(part: str, rows: int, found: list[dict[str, Any]]) -> None:
        results[part] = {"stamp": common.stamp(), "rows": rows, "found": found}
        common.write(NAME, {"stamp": common.stamp(), "results": results}, args.out, report)

    for part in args.parts:
        with tempfile.TemporaryDirectory() as folder:
            if part == "soft":
                save(part, SOFT_ROWS, soft_part())
            elif part == "rows":
                before = results.get(part, {"found": []})["found"]
                kept = [one for one in before if one["kind"] not in args.kinds]
                rows_part(
                    args.rows,
                    args.kinds,
                    lambda found, kept=kept: save("rows", args.rows, kept + found),
                )
            elif part == "centers":
                save(part, args.sift, centers_part(args.sift, args.clusters[0], Path(folder)))
            else:
                k, size = args.clusters[1], min(MANY_SIZE, args.many // 3)
                save(part, args.many, many_part(args.many, k, size, Path(folder)))


if __name__ == "__main__":
    main()
