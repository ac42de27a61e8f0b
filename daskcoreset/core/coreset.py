"""The result of a build: weighted rows that represent all the data, and their provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.coordinates import (
    check_coordinates,
    same_coordinates,
    union_of_coordinates,
)
from daskcoreset.core.messages import about_argument, import_optional, no_array
from daskcoreset.core.points import WeightedPoints, concatenate, to_arrays
from daskcoreset.core.random import RandomState
from daskcoreset.core.tables import counted, kind_of_values, short_seed
from daskcoreset.core.typing import AnyArray, Metric
from daskcoreset.core.validation import a_type, check_type, is_int, shown, unused_name
from daskcoreset.errors import InvalidInputError, InvalidTypeError, MissingPathError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from daskcoreset.solvers.centroids import Centroids
    from daskcoreset.storage.locations import Location


def freeze(value: Any, name: str = "provenance") -> Any:
    """Return a read-only copy of JSON values: mappings as proxies, sequences as tuples.

    Examples
    --------
    >>> freeze({"seed": np.int64(7), "columns": ["a", "b"]})
    mappingproxy({'seed': 7, 'columns': ('a', 'b')})
    """
    try:
        plain = json.loads(json.dumps(value, allow_nan=False, default=_plain))
    except (TypeError, ValueError, RecursionError) as error:
        kind = InvalidTypeError if isinstance(error, TypeError) else InvalidInputError
        raise kind(
            f"{name} is not plain JSON ({error})",
            argument=name,
            remedy="use text, finite numbers, lists and mappings of these",
        ) from error
    return _frozen(plain)


def freeze_record(provenance: Any) -> Mapping[str, Any]:
    """Return a read-only copy of a provenance."""
    check_type("provenance", provenance, Mapping, "pass a mapping")
    frozen: Mapping[str, Any] = freeze(provenance)
    return frozen


def _plain(value: Any) -> Any:
    """Return what JSON says of a NumPy scalar or of a read-only mapping."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds {a_type(value)}")


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType({key: _frozen(item) for key, item in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def thaw(value: Any) -> Any:
    """Return a writable copy of frozen values: proxies as dicts, tuples as lists.

    Examples
    --------
    >>> thaw(freeze({"columns": ["a", "b"]}))
    {'columns': ['a', 'b']}
    """
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    return list(map(thaw, value)) if isinstance(value, tuple) else value


def _check_provenance(record: Mapping[str, Any], m: int, d: int) -> None:
    """Check that ``m``, ``d``, ``n`` and ``columns`` of a record agree with the rows."""
    n, columns = record.get("n", 1), record.get("columns")
    agrees = {
        "m": record.get("m", m) == m,
        "d": record.get("d", d) == d,
        "n": isinstance(n, int) and n > 0,
        "columns": columns is None
        or (isinstance(columns, tuple) and [type(name) for name in columns] == [str] * d),
    }
    for key, fits in agrees.items():
        if not fits:
            raise InvalidInputError(
                f"provenance[{key!r}] is {shown(record[key])}, for {m} rows of {d} features",
                argument="provenance",
                remedy="correct either",
            )


def merge_provenance(
    records: Sequence[Mapping[str, Any]], offsets: Sequence[int], m: int, d: int
) -> dict[str, Any]:
    """Return the provenance of the union of coresets of different data.

    Parameters
    ----------
    records : sequence of mappings
        One record per part. A part that is itself a merge is replaced by its parts, so merging in
        a loop gives a flat list.
    offsets : sequence of int
        The numbers added to the row numbers of each part.
    m, d : int
        Rows and features of the union.

    Returns
    -------
    dict
        ``size``, ``n`` and ``total_weight`` are sums, if every part has them. ``columns`` are those
        of the parts that name them, and ``objective`` is that of all of them.

    Raises
    ------
    InvalidInputError
        If two parts name their columns differently, use different metrics, or contain different
        class weights.

    Examples
    --------
    >>> merged = merge_provenance([{"n": 5}, {"n": 6}], [0, 5], m=4, d=2)
    >>> merged["n"], [part["offset"] for part in merged["parts"]]
    (11, [0, 5])
    """
    parts: list[dict[str, Any]] = []
    for record, offset in zip(records, offsets, strict=True):
        nested = record.get("parts") if record.get("method") == "merge" else None
        for part in nested or [{"offset": 0, "provenance": record}]:
            parts += [{**part, "offset": part["offset"] + offset}]
    merged: dict[str, Any] = {"method": "merge", "m": m, "d": d, "parts": parts}
    for key in ("size", "n", "total_weight"):
        values = [record.get(key) for record in records]
        if all(isinstance(value, int | float) for value in values):
            merged[key] = sum(value for value in values if value is not None)
    costs = [record.get("objective") for record in records]
    if costs[0] is not None and all(cost == costs[0] for cost in costs):
        merged["objective"] = costs[0]
    alike: dict[str, list[Any]] = {
        "columns": [record["columns"] for record in records if record.get("columns")],
        "metric": [record.get("metric", "euclidean") for record in records],
        CLASS_WEIGHT: [frozenset(map(tuple, one.get(CLASS_WEIGHT) or ())) for one in records],
    }
    for key, values in alike.items():
        if len(set(values)) > 1:
            problem = f"parts have different {key}: {shown(values)}"
            raise InvalidInputError(problem, argument="others", remedy="build all of them alike")
        if named := [record[key] for record in records if record.get(key)]:
            merged[key] = named[0]
    return merged


# Numbers that are added to row numbers: a sum beyond int64 is negative, which is refused.
_MAX_OFFSET = 2**62

CLASS_WEIGHT = "class_weight"
"""Where the provenance has the labels and factors that weights of rows contain."""


@dataclass(frozen=True, eq=False, repr=False)
class Coreset(WeightedPoints):
    """A weighted subset of the data that represents all of it. `daskcoreset.build` returns it.

    Pass ``coreset.points`` and ``coreset.weights`` to any solver with ``sample_weight``. Predict on
    the original data with the fitted model. The :doc:`/start` page shows a first coreset.

    Parameters
    ----------
    points, weights, indices, labels
        As in `WeightedPoints`, with at least one row.
    provenance : mapping of str to JSON, default empty
        How the coreset was made, such as ``method``, ``seed``, ``n`` and ``versions``. A read-only
        copy is kept.
    coordinates : mapping of str to ndarray of shape (m,), default empty
        Position of each row in labelled data, such as its time, latitude and longitude. Numbers,
        dates (those of cftime too), text, None, and periods, intervals and times of pandas.

    Raises
    ------
    InvalidInputError
        As in `WeightedPoints`. Also if rows are missing, or if ``m``, ``n``, ``d`` or ``columns``
        of the provenance contradict the arrays.
    InvalidTypeError
        As in `WeightedPoints`. Also if the provenance is not plain JSON.

    Notes
    -----
    A coreset may have NaN as labels and values above 1e146, whose squares overflow. Methods that
    compute costs, such as `audit`, refuse them.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> coreset = daskcoreset.build(X, size=200, random_state=0)
    >>> coreset
    Coreset(lightweight: 200 of 20,000 rows, 3 features, no labels, seed 0)
    >>> from sklearn.cluster import KMeans
    >>> model = KMeans(4, n_init=1).fit(coreset.points, sample_weight=coreset.weights)
    >>> model.predict(X).shape
    (20000,)
    """

    provenance: Mapping[str, Any] = field(default_factory=dict)
    coordinates: Mapping[str, AnyArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        placed = check_coordinates(self.coordinates, len(self))
        object.__setattr__(self, "coordinates", placed)
        if not len(self):
            raise InvalidInputError(
                "points has no rows", argument="points", remedy="pass at least one row"
            )
        frozen = freeze_record(self.provenance)
        _check_provenance(frozen, len(self), self.n_features)
        object.__setattr__(self, "provenance", frozen)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(thaw(getattr(self, each.name)) for each in fields(self))

    __array__ = no_array("a Coreset")

    def __repr__(self) -> str:
        record = self.provenance
        whole = ", nothing reduced" if record.get("complete") else ""
        method = f"{record['method']}{whole}: " if "method" in record else ""
        of = f" of {record['n']:,}" if "n" in record else ""
        seed = "" if record.get("seed") is None else f", seed {short_seed(record['seed'])}"
        labels = "no labels" if self.labels is None else f"labels {kind_of_values(self.labels)}"
        return (
            f"{type(self).__name__}({method}{len(self):,}{of} rows, "
            f"{counted(self.n_features, 'feature')}, {labels}{seed})"
        )

    def equals(self, other: WeightedPoints) -> bool:
        """Return whether all arrays have the same bits, and the provenances are equal.

        Parameters
        ----------
        other : WeightedPoints
            Plain points have no provenance, so they never equal a coreset.
            ``WeightedPoints.equals(a, b)`` compares the arrays alone.

        Returns
        -------
        bool
        """
        return (
            isinstance(other, Coreset)
            and super().equals(other)
            and bool(self.provenance == other.provenance)
            and same_coordinates(self.coordinates, other.coordinates)
        )

    @property
    def metric(self) -> Metric:
        """Whether rows were divided by their lengths ("cosine") or not ("euclidean")."""
        return "cosine" if self.provenance.get("metric") == "cosine" else "euclidean"

    def merge(self, *others: Coreset, offsets: Sequence[int] | None = None) -> Coreset:
        """Combine coresets of different parts of the data into a coreset of all of it.

        The cost on all data is the sum of the costs on the parts, so the relative error stays the
        same. The parts must not overlap: rows in two parts would count twice.

        Parameters
        ----------
        *others : Coreset
            Coresets of other parts with the same features. All or none have labels.
        offsets : sequence of int, optional
            Numbers to add to the row numbers of each coreset, this one first. If the parts are
            stored one after the other, pass the number of rows before each. By default, row numbers
            stay as each part counted them, so they may repeat.

        Returns
        -------
        Coreset
            Rows in the order of the arguments, with unchanged weights. The provenance lists the
            parts.

        Raises
        ------
        InvalidInputError
            If features, labels, columns or offsets do not fit together.

        Examples
        --------
        >>> import numpy as np
        >>> half = Coreset(np.ones((1, 2)), np.array([5.0]), np.array([3]))
        >>> half.merge(half, offsets=[0, 5]).indices
        array([3, 8])
        """
        parts = (self, *others)
        for other in others:
            check_type("others", other, Coreset, "pass coresets of other data")
        moves = [0] * len(parts)
        if offsets is not None:
            moves = np.array(offsets, dtype=object).ravel().tolist()
        if len(moves) != len(parts) or not all(
            is_int(move) and 0 <= move < _MAX_OFFSET for move in moves
        ):
            raise InvalidInputError(
                f"offsets is {shown(offsets)} for {len(parts)} coresets",
                argument="offsets",
                remedy="pass a number of rows for each",
            )
        moves = [int(move) for move in moves]
        union = concatenate([part.moved(move) for part, move in zip(parts, moves, strict=True)])
        records = [part.provenance for part in parts]
        record = merge_provenance(records, moves, len(union), union.n_features)
        together = union_of_coordinates([part.coordinates for part in parts])
        return Coreset(union.points, union.weights, union.indices, union.labels, record, together)

    def cost(self, solutions: Any, objective: Any = None) -> Any:
        """Estimate the cost of solutions on the data, from the rows of this coreset alone.

        The estimate is the weighted sum of the losses of the rows. It is unbiased for solutions
        that do not depend on the draw, if weights are neither normalized nor calibrated. For
        solutions that were fitted to this coreset it is too low on average. `audit` measures by how
        much.

        Parameters
        ----------
        solutions : array-like of shape (k, d), estimator with ``coef_``, or sequence of such
            Centers, or other solutions of the objective.
        objective : Objective, optional
            The cost, for example one of `daskcoreset.objectives`. Default: the cost that the method
            of the coreset is made for.

        Returns
        -------
        float, or ndarray of shape (n_solutions,), float64
            One cost for one solution, else one per solution.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If a solution does not fit, or if `objective` is needed.

        Examples
        --------
        >>> import numpy as np, daskcoreset
        >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
        >>> coreset = daskcoreset.build(X, size=1000, random_state=0)
        >>> on_all = daskcoreset.metrics.kmeans_cost(X, X[:5])
        >>> bool(abs(coreset.cost(X[:5]) / on_all - 1) < 0.1)
        True
        """
        from daskcoreset.metrics.audit import cost_of_solutions

        return cost_of_solutions(self, solutions, objective)

    def compress(
        self, n_points: int, n_clusters: int, random_state: RandomState = None
    ) -> Centroids:
        """Replace the rows by fewer weighted centroids, for k-means with `n_clusters` centers.

        A centroid is the mean of a small cell of rows, and has their total weight. Use it for
        storage or with slow solvers. With ten centroids per cluster, the best centers cost nearly
        the same as the best centers of the rows.

        Parameters
        ----------
        n_points : int
            Number of centroids, at least `n_clusters`. You get fewer if fewer rows are distinct.
        n_clusters : int
            Number of centers that you will look for.
        random_state : int, Generator, RandomState or None, default=None
            Seed.

        Returns
        -------
        Centroids
            `WeightedPoints` in float64, without labels. ``indices`` has the number of a row of the
            data near each centroid. ``constant`` is the cost inside the cells. The k-means cost on
            the rows is at most the cost on the centroids plus `constant`, and equal to it for one
            center.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If a number is out of range.

        Examples
        --------
        >>> import numpy as np, daskcoreset
        >>> X = np.random.default_rng(0).normal(size=(50_000, 3))
        >>> coreset = daskcoreset.build(X, size=20_000, n_clusters=10, random_state=0)
        >>> small = coreset.compress(100, 10, random_state=0)
        >>> len(small), bool(small.constant > 0)
        (100, True)
        """
        from daskcoreset.solvers.centroids import compress

        return compress(self, n_points, n_clusters, random_state)

    def audit(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Compare costs on this coreset with costs on all data, in one pass over the data.

        :doc:`/guides/trust` explains the result.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            The data of the coreset.
        y : array-like of shape (n,), optional
            Labels, if the cost depends on labels.
        **options
            ``solutions``, ``n_clusters``, ``objective``, ``sample_weight``, ``sample_size``,
            ``random_state``, ``chunks``, ``on_invalid`` and ``progress``. By default, solutions are
            fitted to the coreset.

        Returns
        -------
        Audit
            Costs, intervals for any other solution, and the distortion: the largest factor between
            the two costs, minus one.

        Raises
        ------
        InvalidInputError, InvalidTypeError
            If an argument cannot be used, or X has other columns than the coreset.

        Examples
        --------
        >>> import numpy as np, daskcoreset
        >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
        >>> coreset = daskcoreset.build(X, size=1000, random_state=0)
        >>> coreset.audit(X, n_clusters=5, random_state=0).distortion < 0.2
        True
        """
        from daskcoreset.metrics.audit import audit

        return audit(self, X, y, **options)

    def plot(self, X: Any = None, **options: Any) -> Any:
        """Plot the rows of this coreset, sized by weight, over a density of the data.

        Parameters
        ----------
        X : array-like of shape (n, d), or path, optional
            The data of the coreset, for the density in the background.
        **options
            ``ax``, ``sample_weight``, ``bins``, ``legend``, ``on_invalid`` and options of the
            markers, as in `daskcoreset.plotting.plot_coreset`.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed (extra "plot").
        """
        from daskcoreset.plotting import plot_coreset

        return plot_coreset(self, X, **options)

    def source_rows(self, positions: Any = None, X: Any = None) -> Any:
        """Return the original data rows behind rows of this coreset.

        Only the chunks or row groups that contain these rows are read.

        Parameters
        ----------
        positions : int, slice, sequence of int, optional
            Rows of the coreset, from 0. Default: all.
        X : array-like of shape (n, d), or path, optional
            The data of the coreset. Default: the path in the provenance.

        Returns
        -------
        pandas.DataFrame, or ndarray of shape (r, d), or csr_array
            For data frames and Parquet files, all columns, also those that are not features. Select
            columns with `open_rows`.

        Raises
        ------
        InvalidInputError
            If a position is out of range, or data to read from are missing.

        Examples
        --------
        >>> import numpy as np
        >>> half = Coreset(np.ones((1, 2)), np.array([5.0]), np.array([3]))
        >>> half.source_rows(0, np.arange(8.0).reshape(4, 2))
        array([[6., 7.]])
        """
        try:
            numbers = self.indices[slice(None) if positions is None else positions]
        except (IndexError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"positions is {shown(positions)}",
                argument="positions",
                remedy=f"pass numbers of rows of the coreset, from 0 to {len(self) - 1}",
            ) from error
        source = self.provenance.get("source") if X is None else X
        if source is None or (X is None and "leaves" in self.provenance):
            raise InvalidInputError(
                "the provenance has no path of the data", argument="X", remedy="pass the data as X"
            )
        from daskcoreset.inputs.take import take_rows

        try:
            return take_rows(source, np.atleast_1d(numbers))
        except MissingPathError as error:
            if X is not None:
                raise
            raise InvalidInputError(
                f"the name of the data in the provenance cannot be opened ({error})",
                argument="X",
                remedy="pass the data as X",
            ) from None

    @about_argument("store")
    def to_zarr(
        self,
        store: Location,
        *,
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Save the coreset as a Zarr version 3 group. The write is complete or not made.

        Parameters
        ----------
        store : str, path-like, zarr Store or StorePath
            A path, a URL such as ``s3://bucket/folder``, ``gs://...`` or ``az://...``, another URL
            of fsspec, or a Zarr store.
        overwrite : bool, default=False
            Whether to replace a stored coreset. Other data are never replaced. On a local disk the
            old coreset stays until the new one is complete. Elsewhere an interruption leaves an
            incomplete one, which `from_zarr` refuses until you write it again.
        storage_options : mapping, optional
            Keys, endpoint and region of a URL, by the names of obstore or of fsspec, such as
            ``{"key": ..., "secret": ..., "endpoint_url": ...}``. Default: from the environment.
            They are never stored.

        Raises
        ------
        StoreError
            If something is there already, or the disk or the object store refused.
        InvalidTypeError
            If `store` has an unknown type.

        Examples
        --------
        >>> import numpy as np, zarr
        >>> store = zarr.storage.MemoryStore()
        >>> coreset = Coreset(np.ones((1, 2)), np.array([5.0]), np.array([3]))
        >>> coreset.to_zarr(store)
        >>> Coreset.from_zarr(store).equals(coreset)
        True
        """
        from daskcoreset.storage.coresets import save

        save(self, store, overwrite=overwrite, storage_options=storage_options)

    @classmethod
    @about_argument("store")
    def from_zarr(
        cls, store: Location, *, storage_options: Mapping[str, Any] | None = None
    ) -> Coreset:
        """Load a coreset that `to_zarr` saved.

        Parameters
        ----------
        store : str, path-like, zarr Store or StorePath
            As in `to_zarr`. A URL may also begin with ``https://``.
        storage_options : mapping, optional
            As in `to_zarr`.

        Returns
        -------
        Coreset
            Equal to the one that was saved.

        Raises
        ------
        StoreError
            If it is missing, incomplete, damaged, of another version, or inconsistent.
        """
        from daskcoreset.storage.coresets import load_coreset

        return load_coreset(store, storage_options)

    def to_xarray(self) -> xr.Dataset:
        """Convert to a Dataset with dimensions ``row`` and ``feature``, without copying.

        Returns
        -------
        xarray.Dataset
            ``points``, ``weights``, ``indices`` and, if there are any, ``labels``. The provenance
            is a JSON text among the attributes. `coordinates` are coordinates of the rows, and
            column names are coordinates of the features. Sparse points become the three vectors of
            their CSR form, because xarray has no sparse matrix.

        Raises
        ------
        MissingDependencyError
            If xarray is not installed.
        """
        xarray = import_optional("xarray")
        arrays, dims, attributes = to_arrays(self)
        columns = self.provenance.get("columns")
        coords: dict[str, Any] = {} if columns is None else {"feature": list(columns)}
        taken = {*arrays, "feature", "row"}
        for name, values in self.coordinates.items():
            coords[unused_name(name, taken | coords.keys())] = ("row", values)
        dataset: xr.Dataset = xarray.Dataset(
            {name: (dims[name], array) for name, array in arrays.items()},
            coords=coords,
            attrs={**attributes, "provenance": json.dumps(thaw(self.provenance))},
        )
        return dataset

    def to_dataframe(self) -> pd.DataFrame:
        """Convert to a writable DataFrame.

        Returns
        -------
        pandas.DataFrame
            One line per row. Features have the names in ``provenance["columns"]``, or ``x0``,
            ``x1``, …. Then come ``weight``, ``index`` and, if there are labels, ``label``, with
            underscores after names that are taken. Sparse points become sparse columns.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> coreset = Coreset(np.ones((1, 2)), np.array([5.0]), np.array([3]))
        >>> coreset.to_dataframe().columns.tolist()
        ['x0', 'x1', 'weight', 'index']
        """
        pandas = import_optional("pandas")
        columns = list(self.provenance.get("columns") or (f"x{j}" for j in range(self.n_features)))
        if isinstance(self.points, np.ndarray):
            frame: pd.DataFrame = pandas.DataFrame(self.points, columns=columns, copy=True)
        else:
            frame = pandas.DataFrame.sparse.from_spmatrix(self.points, columns=columns)
        added = {"weight": self.weights, "index": self.indices, "label": self.labels}
        for name, vector in added.items():
            if vector is not None:
                frame[unused_name(name, frame.columns)] = vector
        return frame
