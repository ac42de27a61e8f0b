"""Runs of active learning: no label is lost, come what may."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskcoreset.constructions.margin.active import ActiveMaxMargin
from daskcoreset.constructions.margin.active_run import OracleError
from daskcoreset.constructions.margin.separators import InseparableError
from daskcoreset.core.errors import InvalidInputError
from tests.tools.active_pools import B, W, above, looked_up, same, separable


def test_oracle__that_contradicts_itself_is_told_which_rows() -> None:
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]], [1, 30, 1], axis=0)
    y = np.array([-1, *[1, -1] * 15, 1])
    with pytest.raises(OracleError, match="are the same row with two labels") as caught:
        ActiveMaxMargin(looked_up(y), random_state=0).run(X)
    cause = caught.value.__cause__
    assert isinstance(cause, InseparableError)
    assert len(cause.indices) == 2
    assert y[cause.indices].sum() == 0
    assert np.isclose(cause.coefficients.sum(), 2.0)


@pytest.mark.nightly
def test_correct__a_slip_is_mended_and_no_label_lost() -> None:
    X = separable()
    slip = int((X @ W + B).argmax())  # by far on the other side
    asking = ActiveMaxMargin(random_state=0).start(X, known=([slip], ["no"]))
    with pytest.raises(OracleError, match="contradict") as caught:
        asking.run(above)
    assert slip in caught.value.__cause__.indices  # type: ignore[union-attr] # of the evidence
    before = asking.n_labels
    asking.correct({slip: "yes"})
    assert asking.n_labels == before
    proved = asking.result().certificate
    assert (proved.verified, proved.error) == (0, 1.0)  # of another separator, nothing is known
    found = asking.run(above)
    assert found.labels[found.indices.tolist().index(slip)] == "yes"
    assert (found.predict(X) == above(X)).all()
    with pytest.raises(InvalidInputError, match="has no label yet"):
        asking.correct({int(np.setdiff1d(np.arange(len(X)), asking.result().indices)[0]): "no"})


KILLED = """
import sys, time
import numpy as np
from daskcoreset.constructions.margin.active import ActiveMaxMargin

X = np.load(sys.argv[1])
asking = ActiveMaxMargin(random_state=0, max_labels=25).start(X, store=sys.argv[2])
while (wanted := asking.ask()) is not None:
    asking.tell(np.where(wanted.rows[:, 0] > 0, "yes", "no"))
    print(asking.n_labels, *wanted.indices, flush=True)
"""


@pytest.mark.nightly
def test_store__survives_sigkill(tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 3))
    np.save(tmp_path / "X.npy", X)
    store = tmp_path / "labels.zarr"
    command = [sys.executable, "-c", KILLED, str(tmp_path / "X.npy"), str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(8)]
        time.sleep(0.02)  # anywhere within a later question or write
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout.readlines()
    told = [int(line.split()[1]) for line in lines if line.endswith("\n")]
    asking = ActiveMaxMargin.resume(store, X)
    kept = asking.result().indices.tolist()
    assert kept[: len(told)] == told
    assert len(kept) - len(told) in {0, 1}  # told and kept, and killed before it was printed

    def oracle(rows: np.ndarray[Any, Any]) -> Any:
        return np.where(rows[:, 0] > 0, "yes", "no")

    assert same(asking.run(oracle), ActiveMaxMargin(oracle, random_state=0, max_labels=25).run(X))
