"""The watch: what it says of a build that does not go on."""

from __future__ import annotations

import pickle
import re
from typing import Any

import dask
import pytest

from daskcoreset.execution.watch import Standing


def worker(**facts: Any) -> dict[str, Any]:
    return {
        "address": "tcp://10.0.0.1:1", "status": "running", "memory": 2**20, "limit": 2**30,
        "silence": 0.5,
    } | facts  # fmt: skip


STATES = {"memory": 2, "forgotten": 3, "processing": 1, "waiting": 4}


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ([worker()], "5 of 10 tasks are done, with 1 worker"),
        ([], "with 0 workers; no worker has come: start some"),
        (
            [worker(), worker(status="paused")],
            r"1 paused for want of memory \(tcp://10.0.0.1:1 with 1.00 MiB of 1.00 GiB\): give",
        ),
        ([worker(silence=44.4)], "1 without a word for 44 s .*worker-ttl"),
        ([worker(status="paused", limit=0)] * 5, r"5 paused .*with 1.00 MiB, .*, \.\.\.\)"),
    ],
)
def test_standing__names_the_reason_and_what_to_do(workers: list[Any], said: str) -> None:
    standing = Standing(STATES, (), tuple(workers))
    with dask.config.set({"distributed.scheduler.worker-ttl": "5 minutes"}):
        assert re.search(said, str(standing))
    assert pickle.loads(pickle.dumps(standing)) == standing
