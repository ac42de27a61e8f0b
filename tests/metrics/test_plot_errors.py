"""Pictures of errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from daskcoreset.metrics.plot_errors import plot_audit, plot_error

pytestmark = pytest.mark.usefixtures("agg")


def new_axes() -> Any:
    return Figure().add_subplot()


def test_plot_error__means_and_intervals_at_their_sizes() -> None:
    errors = {"a": {5000: [0.1, 0.2, 0.3], 1000: [0.4, 0.6]}, "b": {1000: [0.5]}}
    ax: Any = plot_error(errors, new_axes())
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    first = ax.containers[0]
    x, y = first.lines[0].get_data()
    np.testing.assert_allclose(y, [0.5, 0.2])
    np.testing.assert_allclose(x, [1000, 5000], rtol=0.05)
    bars = first.lines[2][0].get_segments()
    np.testing.assert_allclose(np.ptp(bars[1][:, 1]) / 2, 4.302653 * 0.1 / np.sqrt(3), rtol=1e-5)
    ax.figure.canvas.draw()
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1,000", "5,000"]
    assert "50 %" in [tick.get_text() for tick in ax.get_yticklabels()]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_plot_audit__what_is_infinite_or_unknown_is_said() -> None:
    differences = np.array([np.inf, -np.inf, np.nan, 1e14, -0.0, 0.1])
    ax: Any = plot_audit(list("abcdef"), differences, "t" * 200, new_axes())
    words = [text.get_text() for text in ax.texts]
    assert words == ["∞", "-∞", "unknown", "+1e+16 %", "0.00 %", "+10.00 %"]
    assert len(ax.get_title()) <= 60
    ax.figure.canvas.draw()
    box = ax.get_window_extent()
    assert all(text.get_window_extent().x1 <= box.x1 for text in ax.texts)


def test_plot_error__nothing_above_zero_is_drawn_on_the_edge(tmp_path: Any) -> None:
    ax: Any = plot_error({"uniform": {100: [-0.1, -0.2], 200: [-1.0]}}, new_axes())
    ax.figure.savefig(tmp_path / "picture.png")
    assert [text.get_text() for text in ax.texts] == ["≤ 0", "≤ 0"]
