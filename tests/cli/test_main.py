from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from sklearn.cluster import KMeans
from typer.testing import CliRunner

import daskcoreset
from daskcoreset import Coreset, datasets
from daskcoreset.cli import commands, convert, demo
from daskcoreset.cli.main import main
from daskcoreset.core.errors import (
    DataUnavailableError,
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
    StoreError,
)
from daskcoreset.execution.cluster import cluster_for
from daskcoreset.execution.lazy import active_client
from daskcoreset.metrics.costs import kmeans_cost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from daskcoreset.core.typing import AnyArray

Capture = pytest.CaptureFixture[str]

ROWS = 600


@pytest.fixture(scope="module")
def arrays() -> dict[str, AnyArray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 3)).astype(np.float32)
    return {"X": X, "y": np.arange(ROWS) % 7, "sample_weight": rng.uniform(1, 2, ROWS)}


@pytest.fixture
def npz(tmp_path: Path, arrays: Mapping[str, Any]) -> Path:
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.zarr"


def _main(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def _run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "daskcoreset", *map(str, arguments)]
    settings: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 600} | options
    return subprocess.run(command, check=False, **settings)


def _facts(text: str) -> dict[str, str]:
    """Read the lines of key, tab and value that a pipe gets."""
    lines = [line.split("\t") for line in text.splitlines()]
    assert all(len(line) == 2 for line in lines), text
    return dict(lines)


def _error_line(capsys: Capture) -> str:
    """Return what was said on the error stream, which must be one line and all."""
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith("\n")
    assert printed.err.count("\n") == 1
    return printed.err.rstrip()


# --- build -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "uniform", "passes": 2},
        {"sampling": "multinomial"},
        {"chunks": 100},
        {"on_invalid": "drop"},
    ],
)
def test_build__saves_what_the_function_returns(
    npz: Path, out: Path, options: dict[str, Any]
) -> None:
    given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    members = ["--labels", "y", "--weights", "sample_weight"]
    assert _main("build", npz, out, "--size", 50, "--seed", 3, *members, *given) == 0
    expected = daskcoreset.build(
        npz, "y", size=50, sample_weight="sample_weight", random_state=3, **options
    )
    saved = Coreset.from_zarr(out)
    assert saved.equals(expected)
    assert saved.labels is not None
    for name, value in options.items():
        assert saved.provenance.get(name, value) == value


def test_build__takes_a_relative_path_and_keeps_it_absolute(
    npz: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(npz.parent)
    assert _main("build", npz.name, out.name, "--size", 10) == 0
    assert Coreset.from_zarr(out).provenance["source"] == str(npz)


def test_build__prints_keys_and_values_in_a_pipe(npz: Path, out: Path, capsys: Capture) -> None:
    assert _main("build", npz, out, "--size", 50, "--seed", 3, "--labels", "y") == 0
    printed = capsys.readouterr()
    facts = _facts(printed.out)
    coreset = Coreset.from_zarr(out)
    assert facts["store"] == str(out)
    assert (facts["rows"], facts["n"], facts["seed"]) == ("50", str(ROWS), "3")
    assert facts["labels"] == "int64"
    assert float(facts["weight"]) == coreset.total_weight
    assert printed.err == ""


def test_build__prints_a_table_on_a_terminal(
    npz: Path, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    assert _main("build", npz, out, "--size", 50, "--labels", "y", "--chunks", 7) == 0
    text = capsys.readouterr().out
    assert "┃" in text or "│" in text
    assert "\t" not in text
    assert str(out) in text
    assert "lightweight" in text


def test_build__warns_in_one_line_when_nothing_is_reduced(
    npz: Path, out: Path, capsys: Capture
) -> None:
    assert _main("build", npz, out, "--size", ROWS) == 0
    error = capsys.readouterr().err
    assert error.startswith(f"warning: size={ROWS} is not below")
    assert error.count("\n") == 1


def test_build__refuses_what_exists_before_it_reads(
    npz: Path, out: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert _main("build", npz, out, "--size", 50, "--seed", 0) == 0
    before = Coreset.from_zarr(out)
    capsys.readouterr()
    # A missing input would be the first thing to be found.
    assert _main("build", tmp_path / "missing.npz", out, "--size", 20) == 1
    assert _error_line(capsys) == (f"error: {out} exists; pass --overwrite or choose another path")
    assert Coreset.from_zarr(out).equals(before)


def test_build__overwrites_a_coreset_when_told_to(npz: Path, out: Path) -> None:
    for size in (50, 20):
        assert _main("build", npz, out, "--size", size, "--overwrite") == 0
    assert len(Coreset.from_zarr(out)) == 20


@pytest.mark.parametrize("kind", ["folder", "file", "store"])
def test_build__never_overwrites_anything_else(
    npz: Path, out: Path, capsys: Capture, arrays: Mapping[str, Any], kind: str
) -> None:
    if kind == "folder":
        out.mkdir()
        (out / "mine.txt").touch()
    elif kind == "file":
        out.touch()
    else:
        convert.write_store(arrays["X"], out)
    before = sorted(out.rglob("*"))
    assert _main("build", npz, out, "--size", 20, "--overwrite") == 1
    assert "is not a coreset, so it is never overwritten" in _error_line(capsys)
    assert sorted(out.rglob("*")) == before


def test_build__fills_an_empty_folder_and_makes_parents(npz: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "a" / "b" / "out.zarr"):
        assert _main("build", npz, path, "--size", 20) == 0
        assert len(Coreset.from_zarr(path)) == 20


def test_build__refuses_a_place_that_cannot_be_written(
    npz: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _main("build", npz.parent / "missing", npz / "out.zarr", "--size", 20) == 1
    assert "nothing can be written in" in _error_line(capsys)
    # Permissions do not stop the superuser, who may be running this.
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    assert _main("build", npz.parent / "missing", npz.parent / "out", "--size", 20) == 1
    assert "nothing can be written in" in _error_line(capsys)


def test_build__saves_to_a_url(npz: Path) -> None:
    pytest.importorskip("fsspec")
    url = "memory://test-cli/out.zarr"
    assert _main("build", npz, url, "--size", 20) == 0
    assert len(Coreset.from_zarr(url)) == 20


def test_build__shows_the_plan_of_a_dry_run(npz: Path, out: Path, capsys: Capture) -> None:
    assert _main("build", npz, out, "--size", 20, "--passes", 2, "--chunks", 100, "--dry-run") == 0
    facts = _facts(capsys.readouterr().out)
    assert (facts["reads"], facts["n_blocks"], facts["n_rows"]) == ("2", "6", str(ROWS))
    assert not out.exists()


# --- where it runs -----------------------------------------------------------------------


@pytest.mark.distributed
@pytest.mark.nightly
def test_build__gives_the_same_bits_on_worker_processes(npz: Path, out: Path) -> None:
    pytest.importorskip("distributed")
    asked = ("--size", 50, "--seed", 0, "--chunks", 100)
    done = _run("build", npz, out, *asked, "--workers", 2)
    assert (done.returncode, done.stderr) == (0, "")
    assert _facts(done.stdout)["rows"] == "50"
    assert Coreset.from_zarr(out).equals(
        daskcoreset.build(npz, size=50, random_state=0, chunks=100)
    )


@pytest.mark.distributed
def test_build__starts_no_process_for_wrong_input(
    npz: Path, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "LocalCluster", lambda **_: pytest.fail("started"))
    asked = ("--size", 5, "--workers", 2, "--labels", "nope")
    assert _main("build", npz, out, *asked) == 1
    assert "'nope'" in _error_line(capsys)


@pytest.mark.distributed
def test_build__starts_the_processes_asked_for_and_ends_them(
    npz: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    started: list[Any] = []

    start = distributed.LocalCluster

    def watched(**options: Any) -> Any:
        started.append(start(**options))
        return started[-1]

    monkeypatch.setattr(distributed, "LocalCluster", watched)
    assert _main("build", npz, out, "--size", 20, "--chunks", 100, "--workers", 1) == 0
    (cluster,) = started
    assert cluster.status == distributed.Status.closed
    with pytest.raises(ValueError, match="No global client"):
        distributed.get_client()


@pytest.mark.nightly
@pytest.mark.distributed
def test_build__runs_on_a_cluster_that_is_there(npz: Path, out: Path, cluster: Any) -> None:
    asked = ("--size", 50, "--seed", 0, "--chunks", 100)
    assert _main("build", npz, out, *asked, "--scheduler", cluster.scheduler_address) == 0
    assert Coreset.from_zarr(out).equals(
        daskcoreset.build(npz, size=50, random_state=0, chunks=100)
    )


@pytest.mark.distributed
def test_build__says_which_scheduler_does_not_answer(npz: Path, out: Path, capsys: Capture) -> None:
    pytest.importorskip("distributed")
    address = "tcp://127.0.0.1:1"
    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}):
        assert _main("build", npz, out, "--size", 5, "--scheduler", address) == 1
    assert _error_line(capsys).startswith(f"error: no scheduler answers at {address!r}")


def test_build__names_the_extra_for_a_cluster(
    npz: Path, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert _main("build", npz, out, "--size", 5, "--workers", 2) == 1
    assert 'pip install "daskcoreset[distributed]"' in _error_line(capsys)


@pytest.mark.distributed
def test_working_on__starts_processes_outside_the_main_thread() -> None:
    pytest.importorskip("distributed")
    counts = []

    def work() -> None:
        with cluster_for(None, 1):
            counts.append(len(active_client().nthreads()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(timeout=600)
    assert counts == [1]


@pytest.mark.distributed
@pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups of this kind")
def test_build__ends_processes_quietly_when_interrupted(tmp_path: Path, out: Path) -> None:
    pytest.importorskip("distributed")
    store = tmp_path / "many.zarr"
    convert.write_store(np.random.default_rng(0).normal(size=(2_000, 4)), store)
    # Workers that take a second a block cannot be done before they are interrupted.
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import time, zarr\n"
        "def slowed(read):\n"
        "    return lambda *given: time.sleep(1) or read(*given)\n"
        "zarr.Array.__getitem__ = slowed(zarr.Array.__getitem__)\n"
    )
    arguments = ["build", store, out, "--size=9", "--chunks=10", "--workers=2", "--progress"]
    # Children of a background job of a shell ignore interrupts, and their children do as well.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        [sys.executable, "-m", "daskcoreset", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {"DASK_DISTRIBUTED__WORKER__PRELOAD": str(slow)},
    ) as process:
        signal.signal(signal.SIGINT, before)
        assert process.stderr is not None
        drawn = process.stderr.read(20)  # the bar: the work has begun
        # Python loses an interrupt that comes while it collects garbage: press until it hears.
        for _ in range(10):
            # As a terminal does at Ctrl-C, to every process of the group.
            os.killpg(process.pid, signal.SIGINT)
            try:
                printed, rest = process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                continue
            break
    drawn += rest
    assert (process.returncode, printed) == (130, b"")
    assert drawn.strip().startswith(b"daskcoreset: ")
    assert drawn.endswith(b"\rerror: interrupted\n")
    assert drawn.count(b"\n") == 1
    assert not out.exists()


# --- errors and ends ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ((), "Missing command; see: daskcoreset --help"),
        (("nope",), "nope"),
        (("--nope",), "--nope"),
        (("build",), "'IN'"),
        (("build", "in", "out", "--size", "0"), "--size"),
        (("build", "in", "out", "--size", "x"), "--size"),
        (("build", "in", "out", "--size=1", "--method=k"), "'k' is not one of lightweight"),
        (("build", "in", "out", "--size=1", "--sampling=k"), "not one of systematic, multinomial"),
        (("build", "in", "out", "--size=1", "--passes=3"), "--passes"),
        (("build", "in", "out", "--size=1", "--on-invalid=k"), "not one of raise, drop"),
        (("build", "in", "out", "--size=1", "--workers=2", "--scheduler=a"), "exclude each other"),
    ],
)
def test_main__says_wrong_usage_in_one_line_with_code_2(
    capsys: Capture, arguments: tuple[str, ...], found: str
) -> None:
    assert _main(*arguments) == 2
    line = _error_line(capsys)
    assert line.startswith("error: ")
    assert found in line
    assert line.endswith(" --help")


def test_main__says_a_failure_in_one_line_with_code_1(
    tmp_path: Path, out: Path, capsys: Capture
) -> None:
    assert _main("build", tmp_path / "missing.npz", out, "--size", 5) == 1
    assert _error_line(capsys).startswith("error: X names no file or folder")


def test_main__names_errors_that_are_not_ours(
    npz: Path, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("first\nsecond")

    monkeypatch.setattr(daskcoreset, "build", fail)
    assert _main("build", npz, out, "--size", 5) == 1
    assert _error_line(capsys).startswith("error: KeyError: ")


@pytest.mark.parametrize("place", [0, 1, 5])
def test_main__shows_the_traceback_wherever_debug_stands(
    tmp_path: Path, out: Path, capsys: Capture, place: int
) -> None:
    arguments: list[object] = ["build", tmp_path / "missing.npz", out, "--size", 5]
    arguments.insert(place, "--debug")
    assert _main(*arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("Traceback (most recent call last)")
    assert "InvalidInputError: X names no file" in error


def test_main__ends_an_interruption_with_code_130(
    npz: Path, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(daskcoreset, "build", interrupt)
    assert _main("build", npz, out, "--size", 5) == 130
    assert _error_line(capsys) == "error: interrupted"
    assert not out.exists()


def test_main__ends_quietly_when_nobody_reads(npz: Path, out: Path) -> None:
    assert _main("build", npz, out, "--size", 50) == 0
    reader, writer = os.pipe()
    os.close(reader)
    done = _run("info", out, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_main__ends_quietly_when_the_output_cannot_be_exchanged(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(sys.stdout, "flush", fail)
    monkeypatch.setattr(os, "dup2", fail)
    assert _main("--version") == 1
    monkeypatch.undo()
    assert capsys.readouterr().err == ""


def test_main__needs_no_streams(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert _main("build", tmp_path / "missing", out, "--size", 5) == 1
    monkeypatch.setattr(sys, "stdout", None)
    assert _main("--version") == 0


def test_main__reads_the_arguments_of_the_process(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["daskcoreset", "--version"])
    assert main() == 0
    assert capsys.readouterr().out == f"daskcoreset {daskcoreset.__version__}\n"


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_main__names_the_extra_for_the_command_line(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert _main("--version") == 1
    line = _error_line(capsys)
    assert package in line
    assert 'pip install "daskcoreset[cli]"' in line


@pytest.mark.nightly
def test_module__is_silent_in_a_pipe_and_says_errors_in_one_line(npz: Path, out: Path) -> None:
    done = _run("build", npz, out, "--size", 20)
    assert (done.returncode, done.stderr) == (0, "")
    assert _facts(done.stdout)["rows"] == "20"
    again = _run("build", npz, out, "--size", 20)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == f"error: {out} exists; pass --overwrite or choose another path\n"
    wrong = _run("build", npz)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)


def test_module__does_nothing_when_a_worker_imports_it() -> None:
    importlib.import_module("daskcoreset.__main__")


@pytest.mark.parametrize("command", ["", "build", "store", "info", "demo"])
def test_app__explains_every_command(command: str) -> None:
    result = CliRunner().invoke(commands.app, [*command.split(), "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.output


# --- store -------------------------------------------------------------------------------


def _write(kind: str, folder: Path, arrays: Mapping[str, Any]) -> tuple[Path, bool]:
    """Write the arrays as a file of some kind; also say whether it names its members."""
    path = folder / f"data.{kind}"
    if kind == "npz":
        np.savez(path, **arrays)
    elif kind == "npy":
        np.save(path, arrays["X"])
        return path, False
    elif kind == "h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    elif kind == "parquet":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame(arrays["X"], columns=["a", "b", "c"]).to_parquet(path)
        return path, False
    else:
        group = zarr.create_group(path)
        for name, array in arrays.items():
            group[name] = array
    return path, True


@pytest.mark.parametrize("kind", ["npz", "npy", "h5", "parquet", "zarr"])
def test_store__holds_the_rows_of_every_kind_of_file(
    tmp_path: Path, out: Path, arrays: Mapping[str, Any], capsys: Capture, kind: str
) -> None:
    path, named = _write(kind, tmp_path, arrays)
    assert _main("store", path, out, "--chunks", 250) == 0
    group: Any = zarr.open_group(out, mode="r")
    expected = ["X", "sample_weight", "y"] if named else ["X"]
    assert sorted(group.array_keys()) == expected
    for name in expected:
        np.testing.assert_array_equal(group[name][:], arrays[name])
        assert group[name].dtype == arrays[name].dtype
        assert group[name].chunks[0] == 250
    assert group["X"].chunks == (250, 3)
    facts = _facts(capsys.readouterr().out)
    assert (facts["store"], facts["X"]) == (str(out), f"{ROWS} x 3")


def test_store__names_members_when_told_to(
    tmp_path: Path, out: Path, arrays: Mapping[str, Any]
) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, X=arrays["X"], kind=arrays["y"], mass=arrays["sample_weight"])
    assert _main("store", path, out, "--labels", "kind", "--weights", "mass") == 0
    group: Any = zarr.open_group(out, mode="r")
    np.testing.assert_array_equal(group["y"][:], arrays["y"])
    np.testing.assert_array_equal(group["sample_weight"][:], arrays["sample_weight"])


@pytest.mark.parametrize("name", ["digits", "cod_rna", "a9a"])
def test_store_build_info__take_real_data_from_a_file_to_a_saved_coreset(
    tmp_path: Path, out: Path, capsys: Capture, name: str
) -> None:
    if name in datasets.BUNDLED:
        dataset = datasets.load_bundled(name)
        path = tmp_path / f"{name}.npz"
        np.savez(path, X=dataset.X, y=np.asarray(dataset.y))
    elif name in datasets.available():
        dataset = datasets.load(name)
        path = Path(os.environ["DASKCORESET_DATA"]) / f"{name}.npz"
    else:
        pytest.skip(f"{name} is not in the folder that DASKCORESET_DATA names")
    store = tmp_path / f"{name}.zarr"
    assert _main("store", path, store) == 0
    assert _main("build", store, out, "--size", 500, "--labels", "y", "--seed", 0) == 0
    capsys.readouterr()
    assert _main("info", out, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    n, d = dataset.X.shape
    assert (facts["rows"], facts["n"], facts["features"]) == (500, n, d)
    assert facts["source"].rstrip("/X").endswith(f"{name}.zarr")
    coreset = Coreset.from_zarr(out)
    rows = dataset.X[coreset.indices]
    dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
    np.testing.assert_array_equal(coreset.points, dense)
    assert dataset.y is not None
    np.testing.assert_array_equal(coreset.labels, dataset.y[coreset.indices])
    assert facts["weight"] == pytest.approx(n, rel=0.2)


def test_write_store__writes_chunks_of_good_size(out: Path) -> None:
    convert.write_store(np.zeros((5_000_000, 2), np.float32), out, progress=False)
    (chunk_rows, width) = zarr.open_array(out / "X", mode="r").chunks
    assert width == 2
    assert 8e6 < chunk_rows * width * 4 < 32e6


class Watched:
    """Rows that are only made when they are read; some of them cannot be."""

    shape = (1000, 2)
    dtype = np.dtype(np.float64)

    def __init__(self, broken: int = 2000) -> None:
        self.broken = broken
        self.read: list[tuple[int, int]] = []

    def __getitem__(self, rows: slice) -> AnyArray:
        self.read.append((rows.start, rows.stop))
        if rows.stop > self.broken:
            raise OSError("bad sector")
        return np.repeat(np.arange(rows.start, rows.stop, dtype=np.float64)[:, None], 2, axis=1)


def test_write_store__reads_every_block_once(out: Path) -> None:
    X = Watched()
    convert.write_store(X, out, rows_per_chunk=300)
    assert X.read == [(0, 300), (300, 600), (600, 900), (900, 1000)]
    np.testing.assert_array_equal(zarr.open_array(out / "X", mode="r")[:, 1], np.arange(1000))


def test_write_store__writes_sparse_rows_dense(out: Path, arrays: Mapping[str, Any]) -> None:
    sparse = sp.csr_array(np.where(arrays["X"] > 1, arrays["X"], 0))
    convert.write_store(sparse, out, rows_per_chunk=250)
    np.testing.assert_array_equal(zarr.open_array(out / "X", mode="r")[:], sparse.toarray())


def test_write_store__leaves_nothing_of_a_failure(out: Path) -> None:
    with pytest.raises(StoreError, match="bad sector"):
        convert.write_store(Watched(broken=700), out, rows_per_chunk=300)
    assert list(out.parent.iterdir()) == []


def test_write_store__refuses_what_appears_meanwhile(out: Path) -> None:
    class Late(Watched):
        def __getitem__(self, rows: slice) -> AnyArray:
            (out / "mine").mkdir(parents=True, exist_ok=True)
            return super().__getitem__(rows)

    with pytest.raises(StoreError, match="exists"):
        convert.write_store(Late(), out)
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.parametrize("kind", ["U", "O"])
def test_write_store__keeps_labels_that_are_text(
    tmp_path: Path, out: Path, arrays: Mapping[str, Any], kind: str
) -> None:
    names = np.array(["red", "green", "blue"])[arrays["y"] % 3].astype(kind)
    store = tmp_path / "text.zarr"
    convert.write_store(arrays["X"], store, y=names)
    assert _main("build", store, out, "--size", 50, "--labels", "y") == 0
    coreset = Coreset.from_zarr(out)
    assert coreset.labels is not None
    assert coreset.labels.tolist() == names[coreset.indices].tolist()


@pytest.mark.parametrize(
    ("options", "error", "found"),
    [
        ({"store": "s3://bucket/x.zarr"}, InvalidInputError, "URL"),
        ({"rows_per_chunk": 0}, InvalidInputError, "at least 1"),
        ({"X": da.zeros((4, 2))}, InvalidTypeError, "Dask"),
        ({"y": np.zeros(3)}, InvalidInputError, "3"),
    ],
)
def test_write_store__refuses_wrong_arguments(
    out: Path, options: dict[str, Any], error: type[Exception], found: str
) -> None:
    arguments: dict[str, Any] = {"X": np.zeros((4, 2)), "store": out} | options
    with pytest.raises(error, match=found):
        convert.write_store(**arguments)
    assert not out.exists()


def test_store__refuses_what_exists(npz: Path, out: Path, capsys: Capture) -> None:
    out.touch()
    assert _main("store", npz, out) == 1
    assert _error_line(capsys) == f"error: {out} exists; remove it or choose another path"


def test_find_members__finds_none_in_what_has_no_names(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "array.zarr", shape=(3,), dtype="f4")
    (tmp_path / "damaged.npz").write_text("no archive")
    (tmp_path / "damaged.zarr").mkdir()
    (tmp_path / "damaged.zarr" / "zarr.json").write_text("{")
    for name in ("array.zarr", "damaged.npz", "damaged.zarr", "missing.h5", "missing.npy"):
        assert convert.find_members(tmp_path / name) == ()


# --- info --------------------------------------------------------------------------------


def test_info__says_what_the_store_holds(npz: Path, out: Path, capsys: Capture) -> None:
    assert _main("build", npz, out, "--size", 50, "--seed", 3, "--weights", "sample_weight") == 0
    capsys.readouterr()
    assert _main("info", out) == 0
    lines = _facts(capsys.readouterr().out)
    assert _main("info", "--json", out) == 0
    facts = json.loads(capsys.readouterr().out)
    coreset = Coreset.from_zarr(out)
    assert facts["store"] == str(out)
    assert (facts["rows"], facts["features"], facts["dtype"]) == (50, 3, "float32")
    assert facts["labels"] is None
    assert facts["weight"] == coreset.total_weight
    assert facts["total_weight"] == coreset.provenance["total_weight"]
    assert facts["versions"]["numpy"] == np.__version__
    assert lines.keys() == facts.keys()
    assert lines["seed"] == "3"


def test_info__is_a_table_on_a_terminal(
    npz: Path, out: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _main("build", npz, out, "--size", 50) == 0
    capsys.readouterr()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    assert _main("info", out) == 0
    text = capsys.readouterr().out
    assert "total weight" in text
    assert "none" in text


@pytest.mark.parametrize("made", [False, True])
def test_info__refuses_what_is_no_coreset(
    out: Path, capsys: Capture, arrays: Mapping[str, Any], made: bool
) -> None:
    if made:
        convert.write_store(arrays["X"], out)
    assert _main("info", out) == 1
    assert str(out) in _error_line(capsys)


# --- demo --------------------------------------------------------------------------------


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DASKCORESET_DATA", raising=False)


@pytest.mark.usefixtures("no_data")
@pytest.mark.nightly
def test_demo__prints_a_table_and_saves_a_picture(tmp_path: Path) -> None:
    done = _run("demo", "--quick", "--data", "digits", "--folder", tmp_path / "new")
    assert (done.returncode, done.stderr) == (0, "")
    assert "k-means with 30 clusters on digits, 1,797 x 64" in done.stdout
    assert all(contender.name in done.stdout for contender in demo.CONTENDERS)
    assert max(map(len, done.stdout.splitlines())) <= max(80, len(str(tmp_path)) + 40)
    picture = Path(done.stdout.splitlines()[-1].removeprefix("picture\t"))
    assert picture == tmp_path / "new" / "digits.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("no_data")
def test_run_demo__measures_what_it_says(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(tmp_path))
    compared = demo.run_demo("digits", quick=True, seed=5)
    X = datasets.load_bundled("digits").X
    stored: Any = zarr.open_array(tmp_path / "digits.zarr" / "X", mode="r")
    np.testing.assert_array_equal(stored[:], X)
    assert stored.nchunks > 1
    # Sizes near the number of rows are left out.
    assert [cell.size for cell in compared.cells] == [250] * 4
    assert compared.full_seconds > 0
    full = KMeans(30, n_init=1, random_state=5).fit(X).inertia_
    assert compared.full_error == pytest.approx(full / compared.best - 1, abs=1e-4)
    assert min(compared.full_error, *(cell.errors.min() for cell in compared.cells)) == 0
    for cell in compared.cells:
        for seed, error in zip((5, 6, 7), cell.errors, strict=True):
            options: dict[str, Any] = {
                "size": 250,
                "chunks": stored.chunks[0],
                "random_state": seed,
            }
            options |= cell.contender.options
            if options["method"] == "kmeans":
                options["n_clusters"] = 30
            coreset = daskcoreset.build(str(tmp_path / "digits.zarr"), **options)
            model = KMeans(30, n_init=8, random_state=seed)
            centers = model.fit(coreset.points, sample_weight=coreset.weights).cluster_centers_
            assert error == pytest.approx(kmeans_cost(X, centers) / compared.best - 1, abs=1e-4)
        assert (cell.build_seconds > 0).all()
        assert (cell.solve_seconds > 0).all()
    assert "all rows" in capsys.readouterr().out


@pytest.mark.usefixtures("no_data")
def test_run_demo__shows_what_the_product_is_for(tmp_path: Path) -> None:
    compared = demo.run_demo(quick=True, folder=str(tmp_path), progress=False)
    stored: Any = zarr.open_array(tmp_path / "scales.zarr" / "X", mode="r")
    assert stored.nchunks >= 12
    found = {(cell.size, cell.contender.name): cell.errors for cell in compared.cells}
    for size in demo.QUICK.sizes:
        # No seed of the one comes near any seed of the other.
        for ours in ("lightweight, default", "strong"):
            assert 10 * found[size, ours].max() < found[size, "uniform"].min()
        assert found[size, "strong"].max() < found[size, "lightweight, paper"].mean()


def test_draw__shows_errors_that_have_no_logarithm() -> None:
    line, three = demo.CONTENDERS[0], np.ones(3)
    errors = [np.array([0.1, 0.2, 0.3]), np.zeros(3)]
    cells = [
        demo.Cell(size, line, error, three, three)
        for size, error in zip((100, 200), errors, strict=True)
    ]
    scale = demo.Scale((100, 200), 3, 8, 999)
    figure = demo._draw(demo.Comparison("named", (999, 4), scale, 5.0, 0.1, 1.0, cells))
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel() == "rows in the coreset"
    assert "named: 999 x 4" in axes.get_title()
    shown = axes.containers[0][0].get_ydata()
    np.testing.assert_allclose(shown, [0.2, 1e-6])


def test_load__knows_stored_and_bundled_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrays: Mapping[str, Any]
) -> None:
    for name in ("covtype", "other"):
        np.savez(tmp_path / f"{name}.npz", X=arrays["X"])
    monkeypatch.setenv("DASKCORESET_DATA", str(tmp_path))
    assert demo._load("other", demo.QUICK).name == "other"
    assert demo._load("iris", demo.QUICK).name == "iris"
    with pytest.raises(DataUnavailableError, match="covtype, other"):
        demo._load("nope", demo.QUICK)


@pytest.mark.usefixtures("no_data")
def test_load__says_what_there_is_without_a_folder() -> None:
    with pytest.raises(DataUnavailableError, match=r"china.*DASKCORESET_DATA is not set"):
        demo._load("cod_rna", demo.QUICK)


def test_demo__refuses_a_set_that_is_too_small(tmp_path: Path, capsys: Capture) -> None:
    assert _main("demo", "--data", "iris", "--folder", tmp_path / "new") == 1
    assert "'iris' has 150 rows" in _error_line(capsys)
    assert not (tmp_path / "new").exists()


def test_run_demo__names_the_extra_for_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"daskcoreset\[plot\]"):
        demo.run_demo("iris")
