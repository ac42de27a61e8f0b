"""The scripts of the guide to clusters: they run, or their job scripts are made and read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import daskcoreset
from tests.acceptance.tools.cluster_harness import ROOT

PAGE = ROOT / "docs" / "guides" / "machines.md"


def code(name: str) -> str:
    """Return the block of code that follows a marker."""
    found = re.search(rf"<!-- test:{name} -->\n```\w+\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None, name
    return found.group(1)


def test_python__of_all_recipes_compiles() -> None:
    blocks = re.findall(r"```python\n(?!>>>)(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 7
    for block in blocks:
        compile(block, PAGE.name, "exec")


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
    names: dict[str, Any] = {"__name__": "recipe"}
    block = code(name).replace("    cluster.adapt(minimum_jobs=1, maximum_jobs=20)\n", "")
    exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102 - of the page
    cluster = names["make_cluster"]()
    try:
        script = cluster.job_script()
    finally:
        cluster.close()
    expected = [
        *said, "export OMP_NUM_THREADS=1", "--memory-limit 16.00GiB", "--lifetime=55m",
        "--death-timeout 120", "--nthreads 4",
    ]  # fmt: skip
    for line in expected:
        assert line in script, script


@pytest.mark.nightly
@pytest.mark.distributed
@pytest.mark.slow
def test_sbatch__with_a_stand_in_for_srun(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    array = zarr.create_array(tmp_path / "X.zarr", shape=(20_000, 3), chunks=(5000, 3), dtype="f8")
    array[:] = np.random.default_rng(0).normal(size=(20_000, 3))
    for name, text in (
        ("job.sh", code("sbatch")),
        ("work.py", code("work")),
        ("srun", '#!/bin/bash\nshift\n"$@"\n'),  # without --cpus-per-task
    ):
        here = text.replace("source /shared/env/bin/activate\n", "").replace("15GiB", "2GiB")
        (tmp_path / name).write_text(here.replace("/shared/", f"{tmp_path}/"))
    (tmp_path / "srun").chmod(0o700)
    folders = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": folders, "PYTHONPATH": str(ROOT), "SLURM_JOB_ID": "1"}
    done = subprocess.run(
        ["/bin/bash", "job.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert "10,000 of 20,000 rows" in done.stdout, done.stderr
    assert done.returncode == 0, done.stderr
    coreset = daskcoreset.Coreset.from_zarr(tmp_path / "coreset.zarr")
    local = daskcoreset.build(tmp_path / "X.zarr", size=10_000, random_state=0)
    assert coreset.weights.tobytes() == local.weights.tobytes()
