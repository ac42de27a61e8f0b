"""The page of `explore`: widgets and pictures of bokeh in one file, which needs no network."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np

from daskcoreset.core.looks import CLASSES, INK
from daskcoreset.core.optional import import_optional
from daskcoreset.metrics.explore_contents import OTHERS, Contents

# The markers of matplotlib by the names of bokeh.
_MARKERS = {
    "o": "circle", "^": "triangle", "s": "square", "D": "diamond", "v": "inverted_triangle",
    "P": "plus", "X": "x", "*": "star", "<": "hex", ">": "square_pin",
}  # fmt: skip


def need_bokeh(module: str = "bokeh") -> Any:
    """Import bokeh, or a module of it, or say which extra brings it."""
    problem = 'exploring needs bokeh; pip install "daskcoreset[explore]" brings it.'
    return import_optional(module, problem)


def page_of(contents: Contents, title: str) -> str:
    """Return the page as HTML."""
    template = files("daskcoreset.metrics").joinpath("explore.html").read_text(encoding="utf-8")
    html: str = need_bokeh("bokeh.embed").file_html(
        _document(contents),
        need_bokeh("bokeh.resources").INLINE,
        title=title,
        template=template,
        template_variables={"facts": _sentence(contents)},
    )
    return html


def _sentence(contents: Contents) -> str:
    facts = contents.facts
    n = f"{facts['n']:,}" if facts["n"] else "all"
    drawn = len(contents.positions)
    text = (
        f"Each point is a row of the data, and stands for as many rows as its weight; together "
        f"they stand for {n} rows."
    )
    if drawn < facts["m"]:
        text += f" Drawn are {drawn:,} of {facts['m']:,} rows of the coreset; figures are of all."
    if facts["whole"]:
        return f"{text} All rows are there, so that nothing is uncertain."
    return f"{text} Whiskers: 95 % intervals, by the variance of the draw, of clusters as they are."


def _document(contents: Contents) -> Any:
    """Return widgets and plots, whose names are those of their places on the page."""
    models = need_bokeh("bokeh.models")
    rows, clusters = _sources(contents)
    widgets = _widgets(contents)
    scatter, bars, drawn = _plots()
    words = {
        name: models.Div(name=name, sizing_mode="stretch_width") for name in ("details", "legend")
    }
    code = files("daskcoreset.metrics").joinpath("explore.js").read_text(encoding="utf-8")
    config = {
        "names": contents.names,
        "classes": contents.classes,
        "others": len(contents.classes) - 1 if contents.classes[-1:] == [OTHERS] else None,
        "rare": contents.rare,
        "hasLabels": contents.labels is not None,
        "where": contents.where,
        "ink": INK,
        "palette": [color for color, _ in CLASSES],
        "markers": [_MARKERS[marker] for _, marker in CLASSES],
        "weight": contents.facts["weight"],
        "largest": float(contents.weights.max()),
        "whole": contents.facts["whole"],
    }
    arguments = {**widgets, **drawn, **words, "rows": rows, "clusters": clusters, "config": config}
    change = models.CustomJS(args=arguments, code=code)
    for widget in widgets.values():
        widget.js_on_change("value", change)
    drawn["shown"].selected.js_on_change("indices", change)
    document = need_bokeh("bokeh.document").Document()
    for root in (*widgets.values(), scatter, bars, *words.values()):
        document.add_root(root)
    document.js_on_event("document_ready", change)  # the first picture
    return document


def _widgets(contents: Contents) -> dict[str, Any]:
    models = need_bokeh("bokeh.models")
    values = [(str(i), name) for i, name in enumerate(contents.names)]
    colors = [("cluster", "cluster"), ("weight", "weight"), *values]
    if contents.labels is not None:
        colors.insert(1, ("label", "label"))
    most = len(contents.clusters)
    steps = {"start": 1, "end": max(2, most), "step": 1, "value": contents.facts["k"]}
    return {
        "k": models.Slider(title="clusters", name="k", disabled=most < 2, **steps, **_WIDE),
        "x": _choice("across", "x", "0", values),
        "y": _choice("up", "y", "1" if len(values) > 1 else "0", values),
        "color": _choice("colour", "color", "cluster", colors),
    }


_WIDE = {"sizing_mode": "stretch_width", "min_width": 120}


def _choice(title: str, name: str, value: str, options: list[tuple[str, str]]) -> Any:
    return need_bokeh("bokeh.models").Select(
        title=title, name=name, value=value, options=options, **_WIDE
    )


def _plots() -> tuple[Any, Any, dict[str, Any]]:
    """Return the plot of rows, the plot of shares, and what the script changes in them."""
    figure = need_bokeh("bokeh.plotting").figure
    shown = _blank("x", "y", "color", "marker", "size", "row", "weight")
    centers = _blank("x", "y", "x0", "x1", "y0", "y1", "color", "name")
    shares = _blank("x", "top", "low", "high", "color")
    scatter = figure(
        name="scatter", height=480, sizing_mode="stretch_width", output_backend="canvas",
        tools="pan,wheel_zoom,box_select,lasso_select,tap,reset,save", active_drag="box_select",
    )  # fmt: skip
    points = scatter.scatter(
        "x", "y", source=shown, color="color", marker="marker", size="size",
        fill_alpha=0.65, line_alpha=0.9, nonselection_fill_alpha=0.15, nonselection_line_alpha=0.2,
    )  # fmt: skip
    tips = [("row of the data", "@row{0,0}"), ("weight", "@weight{0,0.[00]}")]
    hover = need_bokeh("bokeh.models").HoverTool(renderers=[points], tooltips=tips)
    scatter.add_tools(hover)
    bar = {"line_color": INK, "line_width": 2.5}
    scatter.segment("x0", "y", "x1", "y", source=centers, **bar)
    scatter.segment("x", "y0", "x", "y1", source=centers, **bar)
    heart = {"fill_color": "color", "line_color": "white", "line_width": 1.5}
    scatter.scatter("x", "y", source=centers, marker="circle", size=16, **heart)
    word = {"text_color": "white", "text_align": "center", "text_baseline": "middle"}
    scatter.text("x", "y", "name", source=centers, text_font_size="10px", **word)
    beside = {"tools": "", "toolbar_location": None}
    bars = figure(name="bars", height=230, sizing_mode="stretch_width", **beside)
    bars.vbar("x", 0.7, "top", source=shares, color="color", alpha=0.8)
    bars.segment("x", "low", "x", "high", source=shares, **bar)
    bars.y_range.start = 0
    bars.xaxis.ticker.desired_num_ticks = 20
    bars.xaxis.ticker.min_interval = 1
    bars.xaxis.axis_label, bars.yaxis.axis_label = "cluster", "share of all rows"
    bars.yaxis.formatter.use_scientific = False
    for plot in (scatter, bars):
        _restyle(plot)
    models = {
        "shown": shown, "centers": centers, "shares": shares,
        "across": scatter.xaxis[0], "up": scatter.yaxis[0],
    }  # fmt: skip
    return scatter, bars, models


def _blank(*names: str) -> Any:
    """Return a table of one row that is not seen, until the script has filled it.

    Of no row at all bokeh finds no ranges, and warns of that again and again.
    """
    texts = {"color": None, "marker": "circle", "name": ""}
    return need_bokeh("bokeh.models").ColumnDataSource({n: [texts.get(n, 0.0)] for n in names})


def _restyle(plot: Any) -> None:
    """Make a plot clear, with ink that is read on white and on black."""
    plot.background_fill_alpha = plot.border_fill_alpha = 0.0
    plot.outline_line_color = plot.axis.minor_tick_line_color = None
    plot.axis.axis_line_color = plot.axis.major_tick_line_color = INK
    plot.axis.major_label_text_color = plot.axis.axis_label_text_color = INK
    plot.axis.axis_label_text_font_style = "normal"
    plot.grid.grid_line_color, plot.grid.grid_line_alpha = INK, 0.2


def _sources(contents: Contents) -> tuple[Any, Any]:
    table = need_bokeh("bokeh.models").ColumnDataSource
    rows: dict[str, Any] = {
        f"v{i}": column.astype(np.float32) for i, column in enumerate(contents.values.T)
    }
    rows["weight"] = contents.weights.astype(np.float32)
    rows["index"] = contents.indices.astype(np.float64)
    rows["position"] = contents.positions.astype(np.int32)
    for k, found in enumerate(contents.clusters, 1):
        rows[f"k{k}"] = found.labels.astype(np.uint8)
    if contents.labels is not None:
        rows["label"] = contents.labels
    clusters: dict[str, Any] = {
        "k": np.repeat(
            np.arange(1, len(contents.clusters) + 1), [len(one.shares) for one in contents.clusters]
        ).astype(np.int32),
        "share": np.concatenate([one.shares for one in contents.clusters]),
        "share_error": np.concatenate([one.share_errors for one in contents.clusters]),
    }
    means = np.concatenate([one.means for one in contents.clusters])
    errors = np.concatenate([one.mean_errors for one in contents.clusters])
    for i in range(len(contents.names)):
        clusters[f"v{i}"] = means[:, i].astype(np.float32)
        clusters[f"e{i}"] = errors[:, i].astype(np.float32)
    return table(rows, name="rows"), table(clusters, name="clusters")
