"""The recipes for clusters: those that can run do, and job scripts are made and read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import daskcoreset
from tests.acceptance.tools.cluster_harness import PATIENCE, ROOT, RealCluster, until

PAGE = ROOT / "docs" / "guide" / "clusters.md"


def code(name: str) -> str:
    """Return the block of code that follows a marker."""
    found = re.search(rf"<!-- test:{name} -->\n```\w+\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None, name
    return found.group(1)


def run(name: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(code(name), f"clusters.md, {name}", "exec"), names)  # noqa: S102 - of the page
    return names


def test_python__of_all_recipes_compiles() -> None:
    blocks = re.findall(r"```python\n(?!>>>)(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 8
    for block in blocks:
        compile(block, "clusters.md", "exec")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("slurm", ["#SBATCH --mem=16G", "#SBATCH --cpus-per-task=4", "#SBATCH -t 01:00:00"]),
        ("pbs", ["#PBS -l select=1:ncpus=4:mem=16gb", "#PBS -l walltime=01:00:00"]),
    ],
)
@pytest.mark.filterwarnings("ignore")  # of jobqueue, about a port that is taken
def test_job_scripts__ask_for_what_the_recipe_says(name: str, said: list[str]) -> None:
    pytest.importorskip("dask_jobqueue")
    cluster = run(name)["cluster"]
    try:
        script = cluster.job_script()
    finally:
        cluster.close()
    expected = [
        *said, "export OMP_NUM_THREADS=1", "--memory-limit 16.00GiB", "--lifetime 55m",
        "--death-timeout 120", "--nthreads 4",
    ]  # fmt: skip
    for line in expected:
        assert line in script, script


@pytest.mark.distributed
@pytest.mark.slow
def test_processes__by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed")
    store = tmp_path / "X.zarr"
    array = zarr.create_array(store, shape=(4000, 3), chunks=(500, 3), dtype="f8")
    array[:] = np.arange(12_000.0).reshape(4000, 3)
    monkeypatch.chdir(tmp_path)
    lines = [shlex.split(line) for line in code("processes").splitlines()]
    assert [line[0] for line in lines] == ["dask", "dask"]
    file = tmp_path / "scheduler.json"
    with RealCluster(tmp_path) as cluster:
        for name, line in zip(("scheduler", "worker"), lines, strict=True):
            words = [str(file) if word == file.name else word for word in line[1:]]
            cluster._start(name, words)
            until(lambda: file.is_file() and file.read_text().endswith("}"), "it starts", PATIENCE)
        with run("client")["connected"]() as client:
            coreset = run("build")["work"](client, str(store))
            assert len(client.nthreads()) == 1
    local = daskcoreset.build(str(store), size=1000, random_state=0)
    assert coreset.weights.tobytes() == local.weights.tobytes()
    assert "1 read of 4,000 rows" in capsys.readouterr().out
