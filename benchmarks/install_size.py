"""What an installation takes on the disk, with no extra, with each one and with all of them.

Every form is installed by pip into a virtual environment of its own; counted are the files below
its ``site-packages``, before anything is compiled, without pip.

    python benchmarks/install_size.py

Results are written to ``results/install_size.json`` and ``results/install_size.md``.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import tomllib
import venv
from pathlib import Path

import common

NAME = "install_size"
ROOT = Path(__file__).parent.parent
LARGEST = 6  # packages named in a row


def installed(extra: str | None) -> dict[str, int]:
    """Install the package with an extra; return the bytes of each folder of site-packages."""
    requirement = f"{ROOT}[{extra}]" if extra else str(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--no-compile", requirement]
        subprocess.run(pip, check=True, stdin=subprocess.DEVNULL)
        where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        packages = Path(subprocess.check_output(where, text=True).strip())
        sizes: dict[str, int] = {}
        for path in packages.rglob("*"):
            if path.is_file() and not path.is_symlink():
                # NumPy and SciPy keep their libraries in folders of their own.
                name = path.relative_to(packages).parts[0].removesuffix(".libs")
                sizes[name] = sizes.get(name, 0) + path.stat().st_size
    return {name: size for name, size in sizes.items() if not name.startswith("pip")}


def report(data: dict[str, object]) -> str:
    """Return the table of the results."""
    sizes: dict[str, dict[str, int]] = data["results"]  # type: ignore[assignment]
    rows = []
    for extra, found in sizes.items():
        added = {
            name: size - sizes["none"].get(name, 0) if extra != "none" else size
            for name, size in found.items()
        }
        largest = sorted(added, key=lambda name: -added[name])[:LARGEST]
        large = [f"{name} {added[name] / 1e6:.0f}" for name in largest if added[name] > 5e5]
        rows.append((extra, f"{sum(found.values()) / 1e6:.0f}", ", ".join(large) or "-"))
    heads = ("extra", "MB", "largest packages that it adds, MB")
    return "\n".join([*common.table(heads, rows), "", common.stamped(data), ""])


def main() -> None:
    """Install every form."""
    parser = common.arguments(__doc__)
    parser.add_argument("--extras", nargs="+", help="these alone; others stay as they are known")
    options = parser.parse_args()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    developers = ("test", "docs", "bench")
    names = [name for name in extras["optional-dependencies"] if name not in developers]
    known = common.read(NAME, options.out)["results"] if options.extras else {}
    results = {
        name or "none": known[name or "none"]
        if options.extras and name not in options.extras
        else installed(name)
        for name in (None, *names)
    }
    common.write(NAME, {"stamp": common.stamp(), "results": results}, options.out, report)


if __name__ == "__main__":
    main()
