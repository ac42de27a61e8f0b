"""Memory limits of workers, beside what blocks take."""

from __future__ import annotations

import warnings
from typing import Any

import dask
import dask.array as da
import pytest

from daskcoreset.build import build
from daskcoreset.core.errors import ClusterError, CoresetWarning
from daskcoreset.estimators import CoresetKMeans
from daskcoreset.execution.room import judge
from daskcoreset.inputs.blocks import row_blocks

MIB = 2**20


distributed = pytest.importorskip("distributed")  # whose settings say what happens at which share


def chunks_of(mib: int, count: int = 6) -> Any:
    rows = mib * MIB // 160
    return da.zeros((count * rows, 20), chunks=(rows, 20))


def worker(limit: int, threads: int = 1, nanny: str | None = "tcp://nanny") -> dict[str, Any]:
    return {"memory_limit": limit * MIB, "nthreads": threads, "nanny": nanny}


@pytest.mark.parametrize(
    ("chunk", "workers", "said"),
    [
        (305, [worker(500)], r"1 of 1 workers .* take 305 MiB: w0 has 1 of .* 555 MiB and .* 500"),
        (305, [worker(500)], r" at 400 MiB.* smaller chunks, of 150 MiB or less, or give workers"),
        (100, [worker(1000, 4), worker(8000, 4)], r"1 of 2 .* w0 has 4 .* 383,\d+ rows or fewer"),
        (100, [worker(200)], r"needs at least 485 MiB .* in smaller chunks, or give"),
        (600, [worker(500, nanny=None)], "take 600 MiB"),  # spills, and is not ended
    ],
)
def test_judge__warns_of_blocks_beyond_the_memory(
    chunk: int, workers: list[Any], said: str
) -> None:
    named = {f"w{i}": one for i, one in enumerate(workers)}
    with pytest.warns(CoresetWarning, match=said):
        judge(row_blocks(chunks_of(chunk)), named)


@pytest.mark.nightly
def test_judge__refuses_what_no_worker_can_hold() -> None:
    with pytest.raises(ClusterError, match=r"take 600 MiB.* limit of 500 MiB at most.* Pass X in"):
        judge(row_blocks(chunks_of(600)), {"a": worker(500), "b": worker(400)})


@pytest.mark.nightly
@pytest.mark.distributed
def test_build_and_fit__warn_once_before_anything_is_read() -> None:
    X = da.random.default_rng(0).random(size=(330_000, 20), chunks=(110_000, 20))
    # It is never paused: all that is tested is what it says.
    actions = ("target", "spill", "pause", "terminate")
    never = {f"distributed.worker.memory.{action}": False for action in actions}
    with (
        dask.config.set(never),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=4, processes=False, memory_limit="350MiB",
            dashboard_address=":0",
        ) as few,
    ):  # fmt: skip
        with distributed.Client(few):
            with pytest.warns(CoresetWarning, match="3 of them at a time"):
                build(X, size=9, compute=False)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                build(X, size=9, dry_run=True)
                build(X, size=9)
        with distributed.Client(few), pytest.warns(CoresetWarning, match="have little memory"):
            CoresetKMeans(2, size=20, random_state=0).fit(X)
        with distributed.Client(few), pytest.warns(CoresetWarning, match="have little memory"):
            build(X, size=9)
