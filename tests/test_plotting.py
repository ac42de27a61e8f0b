"""Pictures: what is drawn where, in axes that a user passes or that are made."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib import pyplot as plt
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure

import daskcoreset
from daskcoreset import plotting
from daskcoreset.errors import InvalidInputError, MissingDependencyError
from daskcoreset.plotting import plot_audit, plot_coreset, plot_coresets

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 4)) * [5.0, 1.0, 3.0, 0.5] + [1e3, 0.0, 0.0, -7.0]


CORESET = daskcoreset.build(X, size=150, random_state=0)


pytestmark = pytest.mark.usefixtures("agg")


def new_axes() -> Any:
    return Figure().add_subplot()


def rows_of(ax: Any) -> Any:
    (found,) = [one for one in ax.collections if isinstance(one, PathCollection)]
    return found


def mesh_of(ax: Any) -> Any:
    (found,) = [one for one in ax.collections if isinstance(one, QuadMesh)]
    return found


def texts_of(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


# --- a coreset ---------------------------------------------------------------------------


def test_plot__draws_into_the_axes_given_and_nowhere_else() -> None:
    ax = new_axes()
    assert CORESET.plot(X, ax=ax) is ax
    assert not plt.get_fignums()
    assert ax.get_xlabel().startswith("principal axis 1 (7")
    assert ax.get_ylabel().endswith("% of variance)")
    assert len(rows_of(ax).get_offsets()) == len(CORESET)
    assert float(mesh_of(ax).get_array().sum()) == pytest.approx(len(X), rel=0.02)


def test_plot__without_axes_makes_a_figure_of_pyplot() -> None:
    ax: Any = CORESET.plot()
    assert plt.gcf() is ax.figure
    assert not [one for one in ax.collections if isinstance(one, QuadMesh)]


def test_plot__area_is_weight_and_small_rows_come_last() -> None:
    ax: Any = CORESET.plot(ax=new_axes())
    sizes = rows_of(ax).get_sizes()
    assert (np.diff(sizes) <= 0).all()
    free = (sizes > plotting._SMALLEST) & (sizes < plotting._LARGEST)
    ratio = sizes / np.sort(CORESET.weights)[::-1]
    np.testing.assert_allclose(ratio[free], ratio[free][0])
    assert free.mean() > 0.8


@pytest.mark.parametrize("given", [True, False])
def test_plot__one_column_is_a_density_over_its_rows(given: bool) -> None:
    coreset = daskcoreset.build(X[:, :1], size=100, random_state=0)
    ax: Any = coreset.plot(X[:, :1] if given else None, ax=new_axes())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "density")
    assert len(ax.patches) == 1 + given
    for patch in ax.patches:
        values, edges, _ = patch.get_data()
        assert float((values * np.diff(edges)).sum()) == pytest.approx(1.0)
    assert (np.asarray(rows_of(ax).get_offsets())[:, 1] < 0).all()


def test_plot__columns_by_name_and_input_out_of_core(tmp_path: Any) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :2], columns=["length", "width"])
    coreset = daskcoreset.build(frame, size=50, random_state=0)
    np.save(tmp_path / "rows.npy", X[:, :2])
    ax: Any = coreset.plot(str(tmp_path / "rows.npy"), ax=new_axes(), bins=10)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length", "width")
    assert mesh_of(ax).get_array().size == 100


def test_plot__few_labels_are_named_in_colours() -> None:
    y = np.where(X[:, 0] > 1e3, "right", "left")
    coreset = daskcoreset.build(X, y, size=100, random_state=0)
    ax: Any = coreset.plot(ax=new_axes())
    assert texts_of(ax)[:2] == ["left", "right"]
    drawn: Any = [one for one in ax.collections if isinstance(one, PathCollection)]
    left, right = drawn
    assert (left.get_facecolors()[0] != right.get_facecolors()[0]).any()
    assert coreset.labels is not None
    assert len(right.get_offsets()) == (coreset.labels == "right").sum()


def test_plot__many_labels_are_one_colour() -> None:
    words = np.array([f"w{i % 20}" for i in range(len(X))])
    ax: Any = daskcoreset.build(X, words, size=300, random_state=0).plot(ax=new_axes())
    assert len(rows_of(ax).get_offsets()) == 300
    assert len(texts_of(ax)) == 3


def test_plot__sparse_rows_rows_dropped_and_equal_rows() -> None:
    coreset = daskcoreset.build(sp.csr_array(np.maximum(X, 0)), size=60, random_state=0)
    assert len(rows_of(coreset.plot(sp.csr_array(np.maximum(X, 0)), ax=new_axes())).get_sizes()) > 1
    holed = X.copy()
    holed[5] = np.nan
    dropped = daskcoreset.build(holed, size=60, on_invalid="drop", random_state=0)
    assert dropped.plot(holed, ax=new_axes()) is not None
    assert CORESET.plot(holed, ax=new_axes(), on_invalid="drop") is not None
    with pytest.raises(InvalidInputError, match=r"NaN .* row 5"):
        CORESET.plot(holed, ax=new_axes())
    equal = daskcoreset.build(np.ones((50, 3)), size=5, random_state=0)
    assert equal.plot(np.ones((50, 3)), ax=new_axes()) is not None


def test_plots__say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "daskcoreset\[plot\]"'):
        CORESET.plot()


# --- several coresets --------------------------------------------------------------------


def test_plot_coresets__share_axes_density_and_sizes() -> None:
    plain = daskcoreset.build(X, size=80, method="uniform", random_state=0)
    figure = Figure()
    axes: Any = plot_coresets({"ours": CORESET, "<$plain$>": plain}, X, axes=figure.subplots(1, 2))
    assert [ax.get_title() for ax in axes] == ["ours: 150 rows", r"<\$plain\$>: 80 rows"]
    ours, theirs = (mesh_of(ax).get_array() for ax in axes)
    np.testing.assert_array_equal(ours, theirs)
    # Areas in proportion to weights, by one factor.
    factors = [
        np.median(np.sort(rows_of(ax).get_sizes()) / np.sort(one.weights))
        for ax, one in zip(axes, (CORESET, plain), strict=True)
    ]
    assert factors[0] == pytest.approx(factors[1])


def test_plot__names_that_are_formulas_or_long_are_drawn_as_text(tmp_path: Any) -> None:
    frame = pd.DataFrame(X[:, :2], columns=["$\\frac$", "long " * 99])
    labels = np.where(X[:, 0] > 1e3, "$x_", "<b>")
    ax: Any = daskcoreset.build(frame, labels, size=60, random_state=0).plot()
    ax.figure.savefig(tmp_path / "picture.png")
    assert len(ax.get_ylabel()) <= 60


def test_plot_audit__infinite_and_unknown_differences() -> None:
    ax: Any = plot_audit(
        list("abcd"), np.array([np.inf, -np.inf, np.nan, 0.1]), "title", new_axes()
    )
    assert [text.get_text() for text in ax.texts] == ["+inf %", "-inf %", "+nan %", "+10.00 %"]
    assert [label.get_text() for label in ax.get_yticklabels()] == list("abcd")
    ax.figure.canvas.draw()


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"bins": 0}, "bins"),
        ({"bins": 10**9}, "bins"),
        ({"legend": 1}, "legend"),
        ({"ax": 3}, "ax"),
        ({"X": X[:, :2]}, "X"),
    ],
)
def test_plot_coreset__errors_name_the_argument(wrong: Any, argument: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{argument} "):
        plot_coreset(CORESET, **wrong)


def test_plot_coresets__refuses_what_is_no_mapping_of_coresets() -> None:
    other = daskcoreset.build(X[:, :2], size=10, random_state=0)
    for wrong in (CORESET, {}, {"a": 3}, {"a": CORESET, "b": other}):
        with pytest.raises((ValueError, TypeError), match=r"^coresets "):
            plot_coresets(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"^axes "):
        plot_coresets({"a": CORESET}, axes=[new_axes(), new_axes()])
