"""Pictures of margins, and of the gap as it closes."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from daskcoreset.constructions.margin.max_margin import MaxMarginCoreset
from daskcoreset.constructions.margin.plot import plot_gap, plot_margins
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.estimators import MaxMarginClassifier, StructuredMaxMargin
from tests.tools.margins import rows


def test_plot_margins__of_an_estimator() -> None:
    X, y = rows(18, 2000, 20, 0.02)
    model = MaxMarginClassifier(violators=1).fit(X, y)
    drawn = plot_margins(model, Figure().add_subplot())
    expected = plot_margins(model.core_, Figure().add_subplot())
    for line, other in zip(drawn.get_lines(), expected.get_lines(), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), other.get_xydata())
    many = StructuredMaxMargin().fit([[0.0, 0], [0, 9], [9, 0]], [0, 1, 2])
    for wrong in (MaxMarginClassifier(), many, X):
        with pytest.raises(InvalidTypeError, match="without one core set of two classes; pass"):
            plot_margins(wrong)


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
