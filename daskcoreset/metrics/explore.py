"""`Coreset.explore`: what a page about a coreset shows, of which rows, and how sure it is."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daskcoreset.core.atomic import new_file
from daskcoreset.core.coreset import Coreset, n_clusters_of
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.linalg import dense
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.core.tables import percent
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.core.validation import as_int, is_int, shown
from daskcoreset.metrics.explore_contents import OTHERS, Clusters, Contents
from daskcoreset.metrics.explore_page import need_bokeh, page_of
from daskcoreset.metrics.plot_density import rows_frame
from daskcoreset.solvers import kmeans

# Of a page, beside 1.66 MB of the library that draws it: two megabytes are what a mail takes.
_DATA_BYTES = 240_000

# Rows drawn at most: more hide one another.
_MAX_ROWS = 4_000

# Columns to choose from at most: a list that one can read.
_MAX_COLUMNS = 30

# Categories that colours and markers tell apart.
_MAX_CLASSES = 10

# Numbers of clusters to choose from, and at most; and at first where the coreset says none.
_CLUSTERS, _MAX_CLUSTERS, _FIRST = 10, 20, 4

# Numbers in the rows up to which k-means starts several times, and runs to its end.
_FEW = 1_000_000

# Half the width of an interval that holds the value nineteen times in twenty.
_WIDTH = 1.96


@dataclass(frozen=True, eq=False)
class Exploration:
    """A page on which one looks around in a coreset, complete in one file.

    Attributes
    ----------
    html : str
        The page, with all that it needs: it asks for nothing from the network.
    """

    html: str

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, in place of what is there, and return its path.

        Raises
        ------
        StoreError
            The disk refused.
        """
        target = Path(path)
        with new_file(target) as scratch:
            scratch.write_text(self.html, encoding="utf-8")
        return target

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.html) / 1e6:.2f} MB; save(path) writes it)"

    def _repr_html_(self) -> str:
        inside = self.html.replace("&", "&amp;").replace('"', "&quot;")
        style = "width:100%;height:900px;border:0"
        return f'<iframe title="coreset" style="{style}" srcdoc="{inside}"></iframe>'


def explore(
    coreset: Coreset,
    path: str | os.PathLike[str] | None = None,
    *,
    max_clusters: int | None = None,
    columns: Sequence[str | int] | None = None,
    title: str = "",
    random_state: RandomState = 0,
) -> Exploration:
    """Make a page on which one looks around in a coreset; see `daskcoreset.Coreset.explore`.

    Parameters
    ----------
    coreset : Coreset
    path : path or None, default=None
        Where to write it; None writes nothing.
    max_clusters : int or None, default=None
        The page shows k-means for every number of clusters from 1 to this one; 20 at most. None
        takes 10, or as many as the coreset was built for where these are more. The page opens
        with as many as it was built for, or with four where it does not say.
    columns : sequence of str or int, or None, default=None
        Columns to choose from, by name or number; None takes those with most variance, as many
        as two megabytes have room for, thirty at most.
    title : str, default=""
    random_state : int, Generator, RandomState or None, default=0
        Of k-means.

    Returns
    -------
    Exploration

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument cannot be used.
    MissingDependencyError
        bokeh is not installed; the extra is "explore".
    StoreError
        The disk refused.

    Examples
    --------
    >>> import daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> page = explore(daskcoreset.build(X, size=200, random_state=0))
    >>> len(page.html) < 2_000_000
    True
    """
    if not isinstance(coreset, Coreset):
        raise InvalidTypeError(f"coreset is {shown(coreset)}; pass a Coreset.")
    if not isinstance(title, str):
        raise InvalidTypeError(f"title is {shown(title)}; pass text.")
    wanted = _clusters_wanted(coreset)
    most = max(_CLUSTERS, wanted) if max_clusters is None else as_int("max_clusters", max_clusters)
    if most > _MAX_CLUSTERS:
        raise InvalidInputError(f"max_clusters is {most}; the page has room for {_MAX_CLUSTERS}.")
    seed = resolve_seed(random_state)
    need_bokeh()
    contents = _contents(coreset, most, columns, seed, wanted)
    exploration = Exploration(page_of(contents, title or _title(coreset)))
    if path is not None:
        exploration.save(path)
    return exploration


def clusters_of(
    points: Any, weights: FloatArray, values: FloatArray, k: int, seed: int, *, whole: bool = False
) -> Clusters:
    r"""Cluster weighted rows, and say how far shares and means may be off.

    A share or mean is a ratio of two weighted sums over the rows that were drawn. To first order
    its variance is that of the sum of :math:`w_i (v_i - \bar v) / W` over independent draws,
    with W the weight of the cluster (of all rows, for a share): the clusters themselves are held
    fixed. Rows that are drawn in strata, or systematically, vary less.

    Parameters
    ----------
    points : ndarray or csr_array of shape (m, d)
    weights : ndarray of shape (m,), float64
    values : ndarray of shape (m, c), float64
        Whose means are wanted.
    k : int
        Clusters wanted; fewer where fewer rows differ.
    seed : int
    whole : bool, default=False
        Whether nothing was drawn: all rows are there, and nothing is uncertain.

    Returns
    -------
    Clusters
    """
    from sklearn.exceptions import ConvergenceWarning

    numbers = points.shape[0] * points.shape[1]
    work: dict[str, Any] = {
        "n_init": 4 if numbers <= _FEW else 1,
        "max_iter": 100 if numbers <= _FEW else 10,
    }
    with warnings.catch_warnings():  # fewer rows that differ are fewer clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        solved = kmeans.solve(points, weights, k, init="k-means++", tol=1e-4, seed=seed, **work)
    labels, _ = kmeans.assign(points, solved.centers)
    # The heaviest first, and none that is empty.
    heavy = np.argsort(-np.bincount(labels, weights, k), kind="stable")
    labels = np.unique(np.argsort(heavy)[labels], return_inverse=True)[1]
    k = int(labels.max()) + 1
    member = np.zeros((len(weights), k))
    member[np.arange(len(weights)), labels] = weights
    sums, total = member.sum(axis=0), weights.sum()
    used = np.maximum(sums, np.finfo(float).tiny)
    shares = sums / total
    means = member.T @ values / used[:, np.newaxis]
    n = len(weights)
    off = member - weights[:, np.newaxis] * shares
    share_errors = np.sqrt((off**2).sum(axis=0) * n / max(1, n - 1)) / total
    counts = np.bincount(labels, minlength=k)
    away = (weights[:, np.newaxis] * (values - means[labels])) ** 2
    squares = np.stack([np.bincount(labels, column, minlength=k) for column in away.T], axis=1)
    inflate = counts / np.maximum(1, counts - 1)
    mean_errors = np.sqrt(squares * inflate[:, np.newaxis]) / used[:, np.newaxis]
    factor = 0.0 if whole else _WIDTH
    return Clusters(labels, shares, factor * share_errors, means, factor * mean_errors)


def _clusters_wanted(coreset: Coreset) -> int:
    """Return the number of clusters that a coreset was built for, or a usual one."""
    return min(n_clusters_of(coreset) or _FIRST, _MAX_CLUSTERS)


def _contents(
    coreset: Coreset,
    most: int,
    columns: Sequence[str | int] | None,
    seed: int,
    first: int = _FIRST,
) -> Contents:
    points, weights = coreset.points, coreset.weights
    if not (weights > 0).any():
        raise InvalidInputError("coreset has no row of positive weight; there is nothing to show.")
    n_rows = min(len(coreset), _MAX_ROWS)
    classes, labels = _classes(coreset.labels)
    rare = _rare(coreset.labels, classes, labels)
    # Index, position, weight, label, principal axes, clusters, and the text of coordinates and of
    # rare labels.
    beside = 8 + 4 + 4 + 4 + 8 + most + 24 * len(coreset.coordinates)
    beside += sum(len(json.dumps(label)) for label in rare) // len(coreset)
    room = int(np.clip(_DATA_BYTES // (4 * n_rows) - beside // 4, 2, _MAX_COLUMNS))
    chosen = _chosen_columns(coreset, columns, room)
    n_rows = min(n_rows, max(100, _DATA_BYTES // (beside + 4 * len(chosen))))
    values, names = dense(points[:, chosen]), [_column_name(coreset, j) for j in chosen]
    frame = rows_frame(points, weights)
    if frame.shares is not None:
        values = np.hstack([frame.of(points), values])
        shares = [
            f"principal axis {i} ({percent(share)})" for i, share in enumerate(frame.shares, 1)
        ]
        names = [*shares, *names]
    whole = bool(coreset.provenance.get("complete"))
    clusters = [
        clusters_of(points, weights, values, k, seed, whole=whole)
        for k in range(1, min(most, len(coreset)) + 1)
    ]
    positions = np.arange(len(coreset))
    if n_rows < len(coreset):
        rng = np.random.default_rng(seed)
        positions = np.sort(rng.choice(len(coreset), n_rows, replace=False))
    facts = {
        "n": coreset.provenance.get("n"),
        "m": len(coreset),
        "weight": coreset.total_weight,
        "method": str(coreset.provenance.get("method", "")),
        "whole": whole,
        "k": min(first, len(clusters)),
    }
    return Contents(
        names,
        positions,
        values[positions],
        weights[positions],
        coreset.indices[positions],
        classes,
        None if labels is None else labels[positions],
        [one._replace(labels=one.labels[positions]) for one in clusters],
        _places(coreset, positions),
        [rare[i] for i in positions] if rare else [],
        facts,
    )


def _chosen_columns(coreset: Coreset, columns: Sequence[str | int] | None, room: int) -> list[int]:
    d, names = coreset.n_features, list(coreset.provenance.get("columns") or ())
    if columns is None:
        weights = coreset.weights / coreset.weights.sum()
        squares = (
            coreset.points * coreset.points
            if isinstance(coreset.points, np.ndarray)
            else coreset.points.multiply(coreset.points)
        )
        means = np.asarray(weights @ coreset.points, dtype=np.float64)
        variances = np.asarray(weights @ squares, dtype=np.float64) - means**2
        most = np.argsort(-variances, kind="stable")[:room]
        return [int(j) for j in np.sort(most)]
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise InvalidTypeError(f"columns is {shown(columns)}; pass a list of names or numbers.")
    found = []
    for column in columns:
        position = names.index(column) if isinstance(column, str) and column in names else column
        if not is_int(position) or not 0 <= int(position) < d:
            known = f"the columns {names}" if names else f"columns 0 to {d - 1}"
            raise InvalidInputError(f"columns has {column!r}, and the coreset has {known}.")
        found.append(int(position))
    if not found or len(set(found)) < len(found):
        raise InvalidInputError("columns is empty or names one twice; name each column once.")
    if len(found) > 10 * _MAX_COLUMNS:
        raise InvalidInputError(
            f"columns has {len(found)} columns, and the page has room for {10 * _MAX_COLUMNS}."
        )
    return found


def _column_name(coreset: Coreset, j: int) -> str:
    names = coreset.provenance.get("columns")
    name = f"x{j}" if names is None else str(names[j])
    return name if len(name) <= 80 else f"{name[:79]}…"


def _classes(labels: AnyArray | None) -> tuple[list[str], AnyArray | None]:
    if labels is None:
        return [], None
    values, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(values) > _MAX_CLASSES and labels.dtype.kind in "fiu":
        return [], labels.astype(np.float32)
    order = np.argsort(-counts, kind="stable")
    place = np.empty(len(values), dtype=np.int64)
    place[order] = np.arange(len(values))
    names = [str(values[i])[:80] for i in order]
    if len(names) > _MAX_CLASSES:
        names = [*names[: _MAX_CLASSES - 1], OTHERS]
    return names, np.minimum(place[codes], len(names) - 1).astype(np.uint8)


def _rare(labels: AnyArray | None, classes: list[str], codes: AnyArray | None) -> list[str | None]:
    """Return the labels of rows whose class is of many labels, None for other rows."""
    if labels is None or codes is None or classes[-1:] != [OTHERS]:
        return []
    last = len(classes) - 1
    pairs = zip(labels.tolist(), codes.tolist(), strict=True)
    return [str(label)[:80] if code == last else None for label, code in pairs]


def _places(coreset: Coreset, positions: IndexArray) -> list[str]:
    """Return the coordinates of rows as text."""
    if not coreset.coordinates:
        return []
    columns = [
        [f"{name} {str(value)[:19]}" for value in values[positions]]
        for name, values in coreset.coordinates.items()
    ]
    return [", ".join(row) for row in zip(*columns, strict=True)]


def _title(coreset: Coreset) -> str:
    n = coreset.provenance.get("n")
    of = f" of {n:,}" if n else ""
    method = coreset.provenance.get("method")
    return f"{len(coreset):,}{of} rows" + (f", chosen by {method}" if method else "")
