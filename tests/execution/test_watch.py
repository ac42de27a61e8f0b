"""The watch: what it says of a build that does not go on, and when."""

from __future__ import annotations

import logging
import pickle
import re
import time
from typing import Any

import dask
import pytest

from daskcoreset.execution.watch import Standing, Watch


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


@pytest.mark.nightly
def test_watch__tells_ever_more_rarely_and_only_what_stands(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    watch = Watch()
    caplog.set_level(logging.WARNING, "daskcoreset")
    told: list[int] = []
    for second in range(500):
        now[0] += 1.0
        watch.hear(Standing(STATES, (), (worker(),)))
        watch.tell()
        if len(caplog.records) > len(told):
            told.append(second)
    assert told == [61, 123, 247, 495]
    assert caplog.messages[0].startswith("no task of the build has finished for 61 s: 5 of 10")
    watch.hear(Standing({"memory": 10}, (), (worker(),)))
    now[0] += 59.0
    watch.tell()
    assert len(caplog.records) == len(told)
