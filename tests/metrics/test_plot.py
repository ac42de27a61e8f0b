"""Pictures: what is drawn where, in axes that a user passes or that are made."""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib import pyplot as plt
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import daskcoreset
from daskcoreset import Coreset
from daskcoreset.core.errors import InvalidInputError, MissingDependencyError
from daskcoreset.metrics import plot_density as marks
from daskcoreset.metrics.plot import plot_coreset, plot_coresets

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
    assert ax.get_ylabel().endswith(" % of variance)")
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
    free = (sizes > marks._SMALLEST) & (sizes < marks._LARGEST)
    ratio = sizes / np.sort(CORESET.weights)[::-1]
    np.testing.assert_allclose(ratio[free], ratio[free][0])
    assert free.mean() > 0.8


def test_plot__every_row_lies_on_the_histogram() -> None:
    ax: Any = CORESET.plot(X, ax=new_axes())
    corners = mesh_of(ax).get_coordinates()
    offsets = np.asarray(rows_of(ax).get_offsets())
    assert (offsets >= corners.min(axis=(0, 1))).all()
    assert (offsets <= corners.max(axis=(0, 1))).all()


def test_plot__two_columns_are_shown_as_they_are() -> None:
    coreset = daskcoreset.build(X[:, :2], size=100, random_state=0)
    ax: Any = coreset.plot(X[:, :2], ax=new_axes())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x1")
    offsets = np.asarray(rows_of(ax).get_offsets())
    np.testing.assert_allclose(np.sort(offsets[:, 0]), np.sort(coreset.points[:, 0]))


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
    areas = np.clip(coreset.weights * marks.area_scale(coreset.weights), 2.0, 350.0)
    order = np.argsort(-areas, kind="stable")
    colors = rows_of(ax).get_facecolors()
    assert coreset.labels is not None
    right = coreset.labels[order] == "right"
    assert len(np.unique(colors[right], axis=0)) == len(np.unique(colors[~right], axis=0)) == 1
    assert (colors[right][0] != colors[~right][0]).any()


def test_plot__many_numbers_get_a_scale_and_of_many_words_the_heaviest_a_colour() -> None:
    coreset = daskcoreset.build(X, X[:, 1], size=100, random_state=0)
    ax: Any = coreset.plot(ax=new_axes())
    assert [one.get_ylabel() for one in ax.figure.axes[1:]] == ["label"]
    coreset = daskcoreset.build(X, np.arange(len(X)).astype(str), size=100, random_state=0)
    ax = coreset.plot(ax=new_axes())
    assert len(ax.figure.axes) == 1
    heaviest = np.asarray(coreset.labels)[np.argsort(-coreset.weights, kind="stable")[:9]]
    assert texts_of(ax)[:10] == [*sorted(heaviest), "91 others"]
    colors, counts = np.unique(rows_of(ax).get_facecolors(), axis=0, return_counts=True)
    assert sorted(counts) == [1] * 9 + [91], colors
    # Without colours they are told apart by their markers.
    outlines = [path.vertices.tobytes() for path in rows_of(ax).get_paths()]
    assert sorted(outlines.count(one) for one in set(outlines)) == [1] * 9 + [91]
    handles = ax.get_legend().legend_handles[:10]
    assert len({str(handle.get_marker()) for handle in handles}) == 10


def test_plot__style_of_the_user_wins() -> None:
    coreset = daskcoreset.build(X, X[:, 0] > 1e3, size=100, random_state=0)
    ax: Any = coreset.plot(ax=new_axes(), color="red", alpha=0.5, legend=False)
    np.testing.assert_allclose(rows_of(ax).get_facecolors(), np.array([[1.0, 0.0, 0.0, 0.5]]))
    assert ax.get_legend() is None


def test_plot__long_legend_has_room_beside_the_rows() -> None:
    coreset = daskcoreset.build(X, np.arange(len(X)) % 9, size=100, random_state=0)
    ax: Any = coreset.plot(ax=new_axes())
    ax.figure.canvas.draw()
    left = ax.transData.inverted().transform(ax.get_legend().get_window_extent().get_points())
    assert np.asarray(rows_of(ax).get_offsets())[:, 0].max() < left[0, 0]


def test_plot__legend_covers_neither_rows_nor_the_density_of_a_rare_class() -> None:
    rng = np.random.default_rng(0)
    parts = rng.choice(4, 20_000, p=[0.7, 0.25, 0.045, 0.005])
    rows = np.array([[0.0, 0], [8, 0], [0, 9], [30, 30]])[parts] + rng.normal(size=(20_000, 2))
    labels = np.array(["often", "rare", "very rare", "seldom and called at length"])[parts]
    options: dict[str, Any] = {"size": 100, "random_state": 0}
    one = daskcoreset.build(rows, labels, method="logistic", **options)
    plain = daskcoreset.build(rows, labels, method="uniform", **options)
    assert (plain.points < 20).all()  # of the rare class the data alone are drawn
    own: Any = plot_coresets({"plain": plain, "one": one}, rows)
    for axes in ([one.plot(rows, ax=new_axes())], own):
        ax = axes[0]
        ax.figure.canvas.draw()
        box = ax.get_legend().get_window_extent()
        assert not box.contains(*ax.transData.transform([30, 30]))
        places = np.vstack([rows_of(each).get_offsets() for each in axes])
        assert not any(box.contains(*place) for place in ax.transData.transform(places))
        assert ax.get_xlim()[1] < 40


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


def test_plot__data_outside_the_picture_are_left_out() -> None:
    ax: Any = CORESET.plot(X + np.array([1e6, 0, 0, 0]), ax=new_axes())
    assert not [one for one in ax.collections if isinstance(one, QuadMesh)]


@pytest.mark.parametrize("n_features", [1, 2, 4])
def test_plot__a_single_row_lies_over_all_of_the_data(n_features: int) -> None:
    rows = np.random.default_rng(0).normal(5.0, 20.0, (2000, n_features))
    ax = daskcoreset.build(rows, size=1, random_state=0).plot(rows, ax=Figure().add_subplot())
    low, high = ax.get_xlim()
    assert high - low > 100.0


def test_plots__say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "daskcoreset\[plot\]"'):
        CORESET.plot()


def test_plot_coreset__of_a_portfolio_has_the_axes_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 4)) * [5.0, 3.0, 1.0, 0.1]
    portfolio = daskcoreset.build(
        X, size=300, method=["lightweight"], summaries=["sample"], random_state=0
    )
    coreset = portfolio["lightweight"]
    found, expected = (
        plot_coreset(coreset, data, ax=Figure().add_subplot()) for data in (portfolio, X)
    )
    assert found.get_xlabel() == expected.get_xlabel()
    marks = [np.asarray(ax.collections[-1].get_offsets()) for ax in (found, expected)]
    np.testing.assert_allclose(marks[0], marks[1], atol=1e-9)
    other = daskcoreset.build(X[:, :3], size=300, method="uniform")
    with pytest.raises(InvalidInputError, match="4 columns and the coreset has 3"):
        plot_coreset(other, portfolio)


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
    assert axes[1].get_legend() is None


def test_plot_coresets__one_look_for_a_label_in_all_panels() -> None:
    def labelled(names: str) -> Coreset:
        return Coreset(X[:4], np.ones(4), np.arange(4), np.array(list(names)))

    axes: Any = plot_coresets({"a": labelled("xyxy"), "b": labelled("yzyz")})
    assert texts_of(axes[0])[:3] == ["x", "y", "z"]
    (x, y, *_), (again, z, *_) = (rows_of(ax).get_facecolors() for ax in axes)
    np.testing.assert_array_equal(y, again)
    assert len({tuple(color) for color in (x, y, z)}) == 3
    numbers = [Coreset(X[:20], np.ones(20), np.arange(20), np.arange(20.0) + i) for i in (0, 5)]
    limits = [rows_of(ax).get_clim() for ax in plot_coresets(dict(zip("ab", numbers, strict=True)))]
    assert limits == [(0.0, 24.0), (0.0, 24.0)]


@pytest.mark.parametrize("heavy", [1.0, 50.0, 1e12])
def test_plot_coresets__legend_is_of_all_panels_and_as_large_as_the_markers(heavy: float) -> None:
    few = Coreset(X[:30], np.append(np.ones(29), heavy) * 40, np.arange(30))
    many = Coreset(X[:900], np.ones(900), np.arange(900))
    axes: Any = plot_coresets({"few": few, "many": many})
    legend = axes[0].get_legend()
    drawn = np.concatenate([rows_of(ax).get_sizes() for ax in axes])
    # The largest are drawn first.
    weights = np.concatenate([np.sort(one.weights)[::-1] for one in (few, many)])
    legend.figure.canvas.draw()
    box, scale = legend.get_window_extent(), 72 / legend.figure.dpi
    named = [text.get_text() for text in legend.get_texts()]
    assert named[0] == "weight 1"  # of the other panel
    marks = [mark for mark in legend.findobj(Line2D) if mark.get_marker() == "o"]
    assert len(marks) == len(named) >= 2
    for mark, name in zip(marks, named, strict=True):
        weight = float(name.removeprefix("weight ").replace(",", ""))
        area = drawn[np.argmin(abs(weights - weight))]
        assert mark.get_markersize() == pytest.approx(max(3.0, np.sqrt(area)), rel=0.05)
        # Within the frame, and beside the words.
        center = mark.get_transform().transform(np.transpose(mark.get_data()))[0]
        reach = mark.get_markersize() / scale / 2
        assert box.x0 <= center[0] - reach
        assert box.y0 <= center[1] - reach
        assert center[1] + reach <= box.y1
        assert center[0] + reach <= min(one.get_window_extent().x0 for one in legend.get_texts())


@pytest.mark.parametrize(("n", "rows"), [(2, 1), (3, 1), (4, 2), (5, 2), (7, 3)])
def test_plot_coresets__panels_fill_their_rows_and_name_axes_once(n: int, rows: int) -> None:
    axes: Any = plot_coresets({str(i): CORESET for i in range(n)})
    assert axes[0].get_gridspec().get_geometry() == (rows, -(-n // rows))
    wide = -(-n // rows)
    assert [bool(ax.get_ylabel()) for ax in axes] == [i % wide == 0 for i in range(n)]
    assert [bool(ax.get_xlabel()) for ax in axes] == [i >= n - wide for i in range(n)]


def test_plot_coresets__lowest_panels_name_the_axis() -> None:
    axes: Any = plot_coresets({str(i): CORESET for i in range(5)})
    axes[0].figure.canvas.draw()
    shown = [any(one.label1.get_visible() for one in ax.xaxis.get_major_ticks()) for ax in axes]
    assert shown == [False, False, True, True, True]


def test_plot__rows_whose_label_is_no_number_are_drawn() -> None:
    labels = np.where(np.arange(60) % 3, np.arange(60.0), np.nan)
    coreset = Coreset(X[:60], np.ones(60), np.arange(60), labels)
    ax: Any = coreset.plot(ax=new_axes())
    ax.figure.canvas.draw()
    assert "no number" in texts_of(ax)
    assert len(rows_of(ax).get_offsets()) == 60
    assert (np.asarray(rows_of(ax).get_facecolors())[:, 3] > 0).all()
    own: Any = coreset.plot(ax=new_axes(), norm=mpl.colors.Normalize(0, 9))
    assert rows_of(own).get_clim() == (0, 9)


def test_plot__one_huge_weight_leaves_the_others_visible() -> None:
    weights = np.append(np.ones(199), 1e12)
    ax: Any = Coreset(X[:200], weights, np.arange(200)).plot(ax=new_axes())
    assert np.median(rows_of(ax).get_sizes()) > 3 * marks._SMALLEST


def test_plot__equal_rows_lie_in_the_middle_of_a_cell() -> None:
    ones = np.ones((20, 2))
    ax: Any = Coreset(ones, np.ones(20), np.arange(20)).plot(ones, ax=new_axes())
    corners = mesh_of(ax).get_coordinates()[:, :, 0][0]
    cell = np.searchsorted(corners, 1.0)
    assert corners[cell - 1 : cell + 1].mean() == pytest.approx(1.0)


def test_plot__words_fit_small_axes(tmp_path: Any) -> None:
    names = [f"a_name_of_sixty_letters_{'x' * 30}_{i:05}" for i in range(2)]
    small = pd.DataFrame(X[:, :2], columns=names)
    for coreset in (CORESET, daskcoreset.build(small, size=50, random_state=0)):
        figure = Figure(figsize=(3.2, 2.6), layout="constrained")
        ax: Any = coreset.plot(ax=figure.add_subplot())
        figure.savefig(tmp_path / "small.png")
        for word in (ax.xaxis.label, ax.yaxis.label):
            box = word.get_window_extent()
            assert figure.bbox.x0 <= box.x0
            assert box.x1 <= figure.bbox.x1
            assert figure.bbox.y0 <= box.y0
            assert box.y1 <= figure.bbox.y1
    assert ax.get_xlabel().endswith("00000")  # what tells the names apart
    assert ax.get_ylabel().endswith("00001")


def test_plot_coresets__of_a_portfolio_without_a_read() -> None:
    methods = {"a": "lightweight", "b": "uniform", "c": "uniform", "d": "uniform"}
    found = daskcoreset.build(X, size=50, method=methods, random_state=0)
    axes: Any = found.plot()
    assert len(axes) == 4
    assert sum(ax.get_visible() for ax in axes[0].figure.axes) == 4
    known = daskcoreset.build(
        X, size=50, method=["uniform"], summaries=["moments", "sample"], random_state=0
    )
    assert mesh_of(known.plot()[0]) is not None


def test_plot__labels_have_markers_of_their_own() -> None:
    y = np.where(X[:, 0] > 1e3, "right", "left")
    coreset = daskcoreset.build(X, y, size=100, random_state=0)
    paths = rows_of(coreset.plot(ax=new_axes())).get_paths()
    assert len({path.vertices.tobytes() for path in paths}) == 2
    own = rows_of(coreset.plot(ax=new_axes(), marker="x")).get_paths()
    assert len(own) == 1


def test_plot__names_that_are_formulas_or_long_are_drawn_as_text(tmp_path: Any) -> None:
    frame = pd.DataFrame(X[:, :2], columns=["$\\frac$", "long " * 99])
    labels = np.where(X[:, 0] > 1e3, "$x_", "<b>")
    ax: Any = daskcoreset.build(frame, labels, size=60, random_state=0).plot()
    ax.figure.savefig(tmp_path / "picture.png")
    assert len(ax.get_ylabel()) <= 60


@pytest.mark.parametrize("ground", ["white", "black"])
def test_plot__is_read_on_any_ground(ground: str) -> None:
    """Words and marks of a clear picture differ from the page that it lies on."""
    ax: Any = CORESET.plot(X)
    assert ax.figure.get_facecolor()[3] == 0.0
    level = 1.0 if ground == "white" else 0.0
    words = [*ax.get_legend().get_texts(), ax.xaxis.label, *ax.get_xticklabels()]
    for word in words:
        shade = np.mean(mpl.colors.to_rgb(word.get_color()))
        assert abs(shade - level) > 0.4
