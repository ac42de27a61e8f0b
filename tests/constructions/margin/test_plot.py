"""Pictures of margins, and of the gap as it closes."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from daskcoreset.constructions.margin.max_margin import MaxMarginCoreset
from daskcoreset.constructions.margin.plot import plot_gap, plot_margins
from daskcoreset.core.errors import InvalidInputError, MissingDependencyError
from tests.tools.margins import rows


def test_plot_margins__draws_both_and_marks_errors() -> None:
    X, y = rows(18, 2000, 20, 0.02)
    found = MaxMarginCoreset(violators=1, chunks=500).run(X, y)
    ax = plot_margins(found, Figure().add_subplot())
    labels = {line.get_label(): line for line in ax.get_lines()}
    assert set(labels) == {
        "on the core set",
        "0.9 of it, as promised",
        "on all data",
        "errs on the data",
    }
    core = np.asarray(labels["on the core set"].get_ydata(), dtype=float)
    assert core == pytest.approx([one.core_margin for one in found.trace])
    single = plot_gap([1, 2], [3.0, 2.0], [1.0, -1.0], ax=Figure().add_subplot())
    assert len(single.get_lines()) == 3
    # What is known of the largest margin: from the best on all data up to the core set.
    (strip,) = single.collections
    corners = {tuple(corner) for corner in strip.get_paths()[0].vertices.tolist()}  # type: ignore[union-attr]
    assert corners == {(1.0, 1.0), (1.0, 3.0), (2.0, 1.0), (2.0, 2.0)}
    assert len(plot_gap([1], [2.0], [1.0], ax=Figure().add_subplot()).get_lines()) == 2
    with pytest.raises(InvalidInputError, match="as many of each"):
        plot_gap([1, 2], [1.0], [1.0])
    plt.switch_backend("Agg")
    assert plot_gap([1, 2], [2.0, 1.0], [-1.0, -1.0]).get_ylim()[1] == pytest.approx(1.8)
    plt.close("all")


def test_plot__needs_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match="daskcoreset\\[plot\\]"):
        plot_gap([1], [1.0], [1.0])
