"""Several coresets of the same data, built in shared passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.coreset import Coreset, freeze_record, thaw
from daskcoreset.core.messages import about_argument, no_array
from daskcoreset.core.tables import counted, short_seed, text_table
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import check_type
from daskcoreset.errors import InvalidInputError

if TYPE_CHECKING:
    from daskcoreset.storage.locations import Location


# Above this a covariance matrix (8 MiB) is not gathered from the blocks.
MAX_COLUMNS = 1024


@dataclass(frozen=True, eq=False, repr=False)
class DataSummary:
    r"""Moments of all rows, exact but for rounding.

    Attributes
    ----------
    count : int
        Rows of positive weight, without those that were dropped.
    weight : float
        Their total weight, W.
    mean : ndarray of shape (d,), float64
        Weighted means.
    scatter : ndarray of shape (d, d) or (d + 1, d + 1), float64
        :math:`\sum_i u_i (x_i - \mu)(x_i - \mu)^T`. With numbers as labels, y is the last column.
    y_mean : float or None
        Mean of the labels, where there is a number for every row.
    columns : tuple of str or None

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> portfolio = daskcoreset.build_many(X, methods=["uniform"], sizes=500)
    >>> bool(np.allclose(portfolio.moments.covariance, np.cov(X.T)))
    True
    """

    count: int
    weight: float
    mean: FloatArray
    scatter: FloatArray
    y_mean: float | None = None
    columns: tuple[str, ...] | None = None

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the columns, as ``numpy.cov`` of rows of equal weight: (d, d)."""
        d = len(self.mean)
        # n - 1 for weights of one, whatever their unit is.
        degrees = self.weight * (1.0 - 1.0 / self.count) if self.count > 1 else np.nan
        return self.scatter[:d, :d] / degrees

    def __repr__(self) -> str:
        return f"DataSummary({self.count:,} rows, {len(self.mean):,} columns)"

    def equals(self, other: object) -> bool:
        """Return whether all is the same, bit for bit."""
        return isinstance(other, DataSummary) and all(
            np.array_equal(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)
        )

    def __post_init__(self) -> None:
        d = len(self.mean)
        wide = d + (self.y_mean is not None)
        n_names = d if self.columns is None else len(self.columns)
        if (self.mean.shape, self.scatter.shape, n_names) != ((d,), (wide, wide), d):
            raise InvalidInputError(
                f"moments have means of shape {self.mean.shape}, a scatter of shape "
                f"{self.scatter.shape} and {n_names} columns",
                argument="moments",
                remedy="pass what build_many returned as moments",
            )


@dataclass(frozen=True, eq=False, repr=False)
class Portfolio(Mapping[str, Coreset]):
    """Coresets of the same data by name. `daskcoreset.build_many` returns it.

    It is a mapping of names to coresets. :doc:`/benchmarks/passes` compares it with separate
    builds.

    Parameters
    ----------
    members : mapping of str to Coreset
        At least one. All have the same features.
    provenance : mapping of str to JSON, default empty
        Facts about the passes that the members share. Each member also has its own provenance.
    moments : DataSummary, optional
        Exact moments of all rows. None for data of more than 1,024 columns.

    Raises
    ------
    InvalidInputError
        If `members` is empty, or features differ.
    InvalidTypeError
        If a name is not text, a member is not a coreset, or another argument has a wrong type.

    Examples
    --------
    >>> import numpy as np, daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> methods = {"means": "lightweight", "plain": "uniform"}
    >>> portfolio = daskcoreset.build_many(X, methods=methods, sizes=500, random_state=0)
    >>> list(portfolio), len(portfolio["means"]), portfolio.moments
    (['means', 'plain'], 500, DataSummary(20,000 rows, 3 columns))
    """

    members: Mapping[str, Coreset]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    moments: DataSummary | None = None

    def __post_init__(self) -> None:
        check_type("members", self.members, Mapping, "pass a mapping of names to coresets")
        if not self.members:
            raise InvalidInputError("members is empty", remedy="pass at least one coreset")
        for name, member in self.members.items():
            check_type("the name of a member", name, str, "pass text")
            check_type(f"member {name!r}", member, Coreset, "pass a Coreset")
        check_type("moments", self.moments, (DataSummary, NoneType), "pass a DataSummary or None")
        widths = {member.n_features for member in self.members.values()}
        widths |= set() if self.moments is None else {len(self.moments.mean)}
        if len(widths) > 1:
            raise InvalidInputError(
                f"members have {sorted(widths)} features", remedy="pass coresets of the same data"
            )
        object.__setattr__(self, "provenance", freeze_record(self.provenance))
        object.__setattr__(self, "members", MappingProxyType(dict(self.members)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, which makes mappings read-only again.
        return type(self), tuple(thaw(getattr(self, each.name)) for each in fields(self))

    def __getitem__(self, name: str) -> Coreset:
        """Return a member.

        Raises
        ------
        KeyError
            The name is unknown. The message lists those that there are.
        """
        try:
            return self.members[name]
        except KeyError:
            names = ", ".join(map(repr, self.members))
            raise KeyError(f"no member is named {name!r}; there are {names}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    __array__ = no_array("a Portfolio", "choose coreset = portfolio[name] and ")

    def __repr__(self) -> str:
        record = self.provenance
        of = f" of {counted(record['n'], 'row')}" if "n" in record else ""
        reads = f", {counted(record['passes'], 'read')}" if "passes" in record else ""
        seed = f", seed {short_seed(record['seed'])}" if record.get("seed") is not None else ""
        features = counted(next(iter(self.values())).n_features, "feature")
        title = f"Portfolio({counted(len(self), 'coreset')}{of}, {features}{reads}{seed})"
        table = [("name", "method", "rows", "total weight", "reads by itself")]
        for name, member in self.items():
            method, passes = (str(member.provenance.get(key, "")) for key in ("method", "passes"))
            table.append((name, method, f"{len(member):,}", f"{member.total_weight:.6g}", passes))
        lines = text_table(table, left_columns=(0, 1))
        return "\n".join([title, *(f"  {line}".rstrip() for line in lines)])

    def plot(self, X: Any = None, **options: Any) -> Any:
        """Plot the members beside each other, on the same axes and scale.

        Parameters
        ----------
        X : array-like of shape (n, d), or path, optional
            The data of the coresets, for the density in the background.
        **options
            ``axes``, ``sample_weight``, ``bins``, ``legend`` and ``on_invalid`` of
            `daskcoreset.plotting.plot_coresets`.

        Returns
        -------
        ndarray of matplotlib.axes.Axes
            One per member.

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed (extra "plot").
        """
        from daskcoreset.plotting import plot_coresets

        return plot_coresets(self, X, **options)

    def equals(self, other: object) -> bool:
        """Return whether all members, their names, their order and the shared facts are equal."""
        return (
            isinstance(other, Portfolio)
            and list(self) == list(other)
            and all(member.equals(other[name]) for name, member in self.items())
            and (self.moments.equals(other.moments) if self.moments else not other.moments)
            and bool(self.provenance == other.provenance)
        )

    @about_argument("store")
    def to_zarr(
        self,
        store: Location,
        *,
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Save all members in one Zarr version 3 group. The write is complete or not made.

        Parameters
        ----------
        store, storage_options
            As in `Coreset.to_zarr`.
        overwrite : bool, default=False
            Whether to replace a stored portfolio. Other data are never replaced.

        Raises
        ------
        StoreError
            If something is there already, or the disk or the object store refused.
        InvalidTypeError
            If `store` has an unknown type.

        Examples
        --------
        >>> import numpy as np, zarr
        >>> coreset = Coreset(np.ones((1, 2)), np.array([5.0]), np.array([3]))
        >>> store = zarr.storage.MemoryStore()
        >>> Portfolio({"one": coreset}).to_zarr(store)
        >>> list(Portfolio.from_zarr(store))
        ['one']
        """
        from daskcoreset.storage.coresets import save

        save(self, store, overwrite=overwrite, storage_options=storage_options)

    @classmethod
    @about_argument("store")
    def from_zarr(
        cls, store: Location, *, storage_options: Mapping[str, Any] | None = None
    ) -> Portfolio:
        """Load a portfolio that `to_zarr` saved.

        Parameters
        ----------
        store, storage_options
            As in `Coreset.from_zarr`.

        Returns
        -------
        Portfolio
            Equal to the one that was saved.

        Raises
        ------
        StoreError
            If it is missing, incomplete, damaged, of another version, or inconsistent.
        """
        from daskcoreset.storage.coresets import load_portfolio

        return load_portfolio(store, storage_options)
