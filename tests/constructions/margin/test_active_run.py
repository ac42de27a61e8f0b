"""Runs of active learning: no label is lost, come what may."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from daskcoreset.constructions.margin.active import ActiveMaxMargin
from daskcoreset.constructions.margin.active_run import OracleError
from daskcoreset.constructions.margin.plot import plot_labels
from daskcoreset.constructions.margin.separators import InseparableError
from daskcoreset.core.errors import InvalidInputError, StoreError
from tests.tools.active_pools import B, W, above, looked_up, same, separable


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (lambda rows: np.zeros(len(rows) + 1), "give one label for each row"),
        (lambda rows: np.zeros((len(rows), 2)), "give one label for each row"),
        (lambda _: [None], "which is no class"),
        (lambda _: [math.nan], "which is no class"),
        (lambda _: ["maybe"], "the two classes"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
    ],
    ids=["too many", "a matrix", "none", "nan", "third class", "raises"],
)
def test_oracle__what_cannot_be_used_leaves_the_state(answer: Any, match: str) -> None:
    X, calls = separable(), []

    def oracle(rows: np.ndarray[Any, Any]) -> Any:
        calls.append(len(rows))
        return above(rows) if len(calls) < 9 else answer(rows)

    with pytest.raises(OracleError, match=match) as caught:
        ActiveMaxMargin(oracle, random_state=0, classes=("no", "yes")).run(X)
    asking = caught.value.asking
    assert asking is not None
    assert asking.n_labels == 8
    assert "asking.run(oracle)" in str(caught.value)
    mended = asking.run(above)
    whole = ActiveMaxMargin(above, random_state=0, classes=("no", "yes")).run(X)
    assert same(mended, whole)


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


@pytest.mark.nightly
def test_report__shows_the_gap_closing() -> None:
    steps: list[Any] = []
    found = ActiveMaxMargin(above, random_state=0).run(separable(), report=steps.append)
    assert tuple(steps) == found.trace
    looked = [step for step in steps if not math.isnan(step.closest)]
    margins = [step.margin for step in looked]
    assert margins == sorted(margins, reverse=True)
    assert looked[-1].closest >= 0.9 * looked[-1].margin
    assert found.reads == len(looked)
    ax = plot_labels(found, Figure().add_subplot(), accuracy={2: 0.5, found.n_labels: 1.0})
    legend = ax.get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["margin on the core set", "closest row of the pool", "accuracy"]
    none = ActiveMaxMargin().start(separable()).result()
    with pytest.raises(InvalidInputError, match="no margin yet"):
        plot_labels(none)
    with pytest.raises(InvalidInputError, match="no label"):
        none.predict(separable())


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", ["pool", "stream"])
def test_store__a_run_goes_on_where_it_stopped(tmp_path: Path, strategy: Any) -> None:
    X, store = separable(), tmp_path / "labels.zarr"
    learner = ActiveMaxMargin(above, batch=12, strategy=strategy, random_state=0)
    whole = learner.run(X, chunks=900)
    asking = learner.start(X, store=store, chunks=900)
    for turn in range(1000):
        wanted = asking.ask()
        if wanted is None:
            break
        if turn % 3 == 0:  # asked, not told, and gone
            asking = ActiveMaxMargin.resume(store, X, chunks=900)
            again = asking.ask()
            assert again is not None
            assert np.array_equal(again.rows, wanted.rows)
        asking.tell(above(wanted.rows))
    resumed = ActiveMaxMargin.resume(store, X, chunks=900)
    assert resumed.done
    assert same(resumed.result(), whole)
    assert len(resumed.result().trace) == len(whole.trace)
    with pytest.raises(StoreError, match="exists"):
        learner.start(X, store=store)
    with pytest.raises(InvalidInputError, match="is not the pool"):
        ActiveMaxMargin.resume(store, X[::-1])
    with pytest.raises(InvalidInputError, match="is not the pool"):
        ActiveMaxMargin.resume(store, X[1:])


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
