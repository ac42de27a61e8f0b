"""Installation: seconds, bytes and packages of a wheel of this tree, beside other libraries.

Each is installed alone into a fresh virtual environment, from files that pip has downloaded before.
Then processes of their own import it and solve k-means. The first one compiles and caches loops.

    python benchmarks/install.py
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import common

NAME = "install"

_CHILD = """
import json, time
start = time.perf_counter()
{imports}
imported = time.perf_counter() - start
import numpy as np
X = np.random.default_rng(0).standard_normal((10_000, 8))
start = time.perf_counter()
{work}
print(json.dumps([imported, time.perf_counter() - start]))
"""


class Library(NamedTuple):
    """What pip installs ("{wheel}" is that of the tree), what is imported, and its k-means."""

    targets: tuple[str, ...]
    imports: str
    work: str = "KMeans(8, random_state=0).fit(X)"


_OURS = "from daskcoreset.estimators import CoresetKMeans as KMeans"
LIBRARIES = {
    "daskcoreset": Library(("{wheel}",), _OURS),
    "daskcoreset[all]": Library(("{wheel}[all]",), _OURS),
    "dask-ml": Library(("dask-ml",), "from dask_ml.cluster import KMeans"),
    "scikit-learn": Library(("scikit-learn",), "from sklearn.cluster import KMeans"),
    "dask[array] and zarr": Library(("dask[array]", "zarr"), "import dask.array, zarr", ""),
}


def pip(*words: object) -> None:
    """Run pip."""
    command = [sys.executable, "-m", "pip", "--quiet", *map(str, words)]
    subprocess.run(command, check=True)


def seconds(python: Path, library: Library) -> list[float]:
    """Return the seconds of the import and of k-means, in a process of their own."""
    # A cache of compiled loops elsewhere would outlive the environment.
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    code = _CHILD.format(imports=library.imports, work=library.work)
    command = [python, "-Ic", code]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=kept)
    found: list[float] = json.loads(done.stdout)
    return found


def packages(environment: Path) -> dict[str, int]:
    """Return the bytes of each package of an environment, the largest first."""
    sizes = {}
    for package in importlib.metadata.distributions(path=map(str, environment.glob("lib/*/*"))):
        files = [Path(str(file.locate())) for file in package.files or ()]
        sizes[package.name] = sum(file.stat().st_size for file in files if file.exists())
    return dict(sorted(sizes.items(), key=lambda one: -one[1]))


def turn(library: Library, downloaded: Path, wheel: Path, later: int) -> dict[str, Any]:
    """Install a library into a fresh environment, measure it, and remove it."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder)
        python = Path(folder, "bin", "python")
        targets = [target.format(wheel=wheel) for target in library.targets]
        with common.timed() as clock:
            pip("--python", python, "install", "--no-index", "--find-links", downloaded, *targets)
        found = packages(Path(folder))
        first, *others = (seconds(python, library) for _ in range(1 + later))
    return {
        "install": clock.wall,
        "packages": found,
        "first": first,
        "later": [median(values) for values in zip(*others, strict=True)],
    }


def main() -> None:
    """Run the benchmark."""
    parser = common.arguments(__doc__)
    parser.add_argument("--turns", type=int, default=3, help="environments of each library")
    parser.add_argument("--later", type=int, default=3, help="imports after the first one")
    args = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        pip("wheel", "--no-deps", "--wheel-dir", folder, Path(__file__).parent.parent)
        (wheel,) = Path(folder).glob("*.whl")
        for name, library in LIBRARIES.items():
            downloaded = Path(folder, name)
            targets = [target.format(wheel=wheel) for target in library.targets]
            pip("download", "--dest", downloaded, *targets)
            turns = [turn(library, downloaded, wheel, args.later) for _ in range(args.turns)]
            results[name] = {
                "k-means": bool(library.work),
                "downloaded": sum(file.stat().st_size for file in downloaded.iterdir()),
                "packages": turns[0]["packages"],
                "install": median(one["install"] for one in turns),
                "first": [
                    median(two) for two in zip(*(one["first"] for one in turns), strict=True)
                ],
                "later": [
                    median(two) for two in zip(*(one["later"] for one in turns), strict=True)
                ],
            }
            common.printed(
                [name, *map(results[name].get, ("downloaded", "install", "first", "later"))]
            )
    made = common.stamp(turns=args.turns)
    common.write(NAME, {"stamp": made, "results": results}, args.out)


if __name__ == "__main__":
    main()
