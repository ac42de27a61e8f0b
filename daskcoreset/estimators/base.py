"""What all estimators share: a coreset instead of the data, and lazy answers for all rows."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from daskcoreset.build import build
from daskcoreset.core.blocks import Block, find_missing_label, find_unusable_row
from daskcoreset.core.errors import CoresetWarning, InvalidInputError
from daskcoreset.execution.fold import map_rows
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.sensitivities import resolve_method, takes_parts

if TYPE_CHECKING:
    from daskcoreset.core.coreset import Coreset
    from daskcoreset.core.typing import AnyArray, FloatArray, Points
    from daskcoreset.inputs.blocks import RowBlocks
    from daskcoreset.sensitivities import Sensitivity

__all__ = ["CoresetModel", "InMemoryData", "auto_starts", "is_in_memory", "solver_seed"]


FLOATS = [np.float64, np.float32]

_SOLVER = 2**31

"""Spawn key of the solver's numbers; those of a build have two, a stage and a block."""


def solver_seed(seed: int) -> int:
    """Return the seed of the solver that belongs to the seed of a fit.

    Parameters
    ----------
    seed : int
        Seed of the coreset; as in `daskcoreset.core.random.resolve_seed`.

    Returns
    -------
    int
        Below 2**32, the most that scikit-learn takes; independent of the draws of rows.
    """
    return int(np.random.SeedSequence(seed, spawn_key=(_SOLVER,)).generate_state(1)[0])


def is_in_memory(*parts: Any) -> bool:
    """Whether all parts are in memory, of kinds that scikit-learn itself takes.

    Dask, Zarr, HDF5 and xarray objects, memory maps and paths are not, and None counts as
    in memory.

    Examples
    --------
    >>> is_in_memory([[1.0], [2.0]], None), is_in_memory("data.zarr")
    (True, False)
    """
    return all(_is_in_memory(part) for part in parts)


def _is_in_memory(part: Any) -> bool:
    # A Delayed object claims to have every attribute, so that Dask is asked for first.
    if isinstance(part, np.memmap) or hasattr(part, "__dask_graph__"):
        return False
    if part is None or isinstance(part, (np.ndarray, list, tuple, numbers.Number)):
        return True
    if hasattr(type(part), "iloc") or hasattr(part, "tocsr"):
        return True
    # An array of another library, unless its dtype is NumPy's: then it is likely on disk.
    return hasattr(part, "__array__") and not isinstance(getattr(part, "dtype", None), np.dtype)


def refuse_missing(y: Any) -> None:
    """Refuse labels in memory that are missing in pandas' way, which scikit-learn compares."""
    labels = np.asarray(y)
    if labels.dtype.kind == "O" and labels.ndim == 1:
        problem = find_missing_label(
            Block(np.empty((len(labels), 0)), np.ones(len(labels)), labels)
        )
        if problem is not None:
            raise problem.error(0)


@dataclass(frozen=True, eq=False)
class InMemoryData:
    """Data in memory after scikit-learn's checks.

    Attributes
    ----------
    X : ndarray of shape (n, d) or scipy sparse, float32 or float64
    y : ndarray of shape (n,) or None
    sample_weight : ndarray of shape (n,), float64, or None
    """

    X: Any
    y: AnyArray | None
    sample_weight: FloatArray | None


class CoresetModel(BaseEstimator):  # type: ignore[misc] # scikit-learn has no annotations
    """Base of the estimators: builds the coreset, and maps what is fitted over any input.

    Data in memory of the kinds that scikit-learn takes pass its own checks, and answers come
    back at once; everything else goes to `daskcoreset.build` and is answered by Dask arrays.
    A subclass has the parameters `size`, `sampling` and `passes` and solves on what
    `_coreset_of` returns.

    Attributes
    ----------
    coreset_ : Coreset
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.
    """

    coreset_: Coreset
    n_features_in_: int
    feature_names_in_: AnyArray
    sampling: Any
    passes: Any

    def _hold(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> InMemoryData | None:
        """Check data in memory as scikit-learn does; None for everything else."""
        if not is_in_memory(X, y, sample_weight):
            return None
        tags = self.__sklearn_tags__()
        fits = checks.get("reset", True)
        target = {} if y is None and not (fits and tags.target_tags.required) else {"y": y}
        sparse = "csr" if tags.input_tags.sparse else False
        refuse_missing(y)
        checked = validate_data(self, X, **target, dtype=FLOATS, accept_sparse=sparse, **checks)
        X, y = checked if target else (checked, None)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        problem = find_unusable_row(
            X, np.ones(X.shape[0]) if sample_weight is None else sample_weight
        )
        if problem is not None:
            raise problem.error(0)
        return InMemoryData(X, y, sample_weight)

    def _coreset_of(
        self,
        data: InMemoryData | tuple[Any, Any, Any],
        *,
        size: int,
        method: str | Sensitivity[Any],
        seed: int,
        n_clusters: int | None = None,
    ) -> Coreset:
        """Build the coreset, and set what is known of the features.

        It remembers `n_clusters` where the construction does not say for how many it is.
        """
        construction = resolve_method(method)
        if n_clusters is not None and not takes_parts(construction, n_clusters):
            n_clusters = None
        parts = (data.X, data.y, data.sample_weight) if isinstance(data, InMemoryData) else data
        with warnings.catch_warnings():
            # That few rows are all taken is what a user of an estimator wants.
            warnings.filterwarnings("ignore", r"size=.* is not below", CoresetWarning)
            # Classifiers say it themselves, by the names of the classes.
            warnings.filterwarnings("ignore", r"the coreset has no row of", CoresetWarning)
            coreset = build(
                parts[0],
                parts[1],
                size=size,
                method=construction,
                n_clusters=n_clusters,
                sample_weight=parts[2],
                random_state=seed,
                sampling=self.sampling,
                passes=self.passes,
                normalize=True,
            )
        if not isinstance(data, InMemoryData):
            self._note_features(parts[0], coreset)
        elif hasattr(self, "feature_names_in_"):  # lost where scikit-learn made an array
            columns = [str(name) for name in self.feature_names_in_]
            coreset = replace(coreset, provenance={**coreset.provenance, "columns": columns})
        return coreset

    def _count_features(self, held: InMemoryData | None, X: Any) -> int:
        """Columns of X, before it is read."""
        return int(held.X.shape[1] if held else row_blocks(X).rules.n_features)

    def _note_features(self, X: Any, coreset: Coreset) -> None:
        self._note_names(X, coreset.n_features, coreset.provenance.get("columns"))

    def _note_columns(self, X: Any, blocks: RowBlocks) -> None:
        """Set what is known of the features of data out of core."""
        self._note_names(X, blocks.rules.n_features, blocks.columns)

    def _note_names(self, X: Any, n_features: int, columns: Sequence[str] | None) -> None:
        self.n_features_in_ = n_features
        # Like scikit-learn: numbers that stand above columns are no names.
        given = getattr(X, "columns", None)
        named = given is None or all(isinstance(name, str) for name in given)
        if columns is not None and named:
            self.feature_names_in_ = np.array(columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit

    def _map(
        self,
        X: Any,
        function: Callable[[Block], Any],
        here: Callable[[Points], Any],
        shape: Callable[[np.dtype[Any]], tuple[Any, int | None]],
    ) -> Any:
        """Apply what is fitted to every row: at once in memory and in memory maps, else lazily.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        function : callable
            ``function(block)``, picklable, for blocks out of core.
        here : callable
            ``here(X)`` for data in memory.
        shape : callable
            ``shape(dtype)`` gives the dtype and the columns, None for a vector, of what is
            returned for rows of `dtype`.
        """
        if is_in_memory(X):
            held = self._hold(X, None, None, reset=False)
            return here(held.X)  # type: ignore[union-attr] # it is in memory
        blocks = self._open(X)
        dtype, columns = shape(blocks.rules.dtype)
        result = map_rows(blocks, function, dtype=dtype, columns=columns)
        if isinstance(X, np.memmap):  # an ndarray, for which an ndarray is expected
            return result.compute()
        chunks = getattr(X, "chunks", None) if hasattr(X, "__dask_graph__") else None
        if blocks.sizes is not None and chunks:
            # Chunks that were grouped or split for the work are none of the user's business.
            result = result.rechunk({0: chunks[0]}, method="tasks")
        return result

    def _open(self, X: Any, y: Any = None, sample_weight: Any = None) -> RowBlocks:
        """Open data out of core, and compare its columns with those of the fit."""
        blocks = row_blocks(X, y, sample_weight)
        found, wanted, name = blocks.rules.n_features, self.n_features_in_, type(self).__name__
        if found != wanted:
            raise InvalidInputError(
                f"X has {found} features, but {name} is expecting {wanted} features as input; "
                f"pass the columns it was fitted on."
            )
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is not None and blocks.columns is not None and list(fitted) != [*blocks.columns]:
            raise InvalidInputError(
                f"The feature names should match those that were passed during fit: X has the "
                f"columns {list(blocks.columns)}, and {name} was fitted on {list(fitted)}; select "
                f"these, in this order."
            )
        return blocks

    @staticmethod
    def _refuse_frames(estimator: Any) -> None:
        """Refuse to hold in memory, as a frame, what was asked for lazily."""
        from sklearn import get_config

        own = getattr(estimator, "_sklearn_output_config", {}).get("transform")
        wanted = own or get_config()["transform_output"]
        if wanted != "default":
            raise InvalidInputError(
                f"set_output(transform={wanted!r}) makes a frame in memory, but X is out of core; "
                f'call set_output(transform="default") and get a Dask array.'
            )


def auto_starts(n_clusters: int) -> int:
    """Return the runs of k-means for ``n_init="auto"``.

    Measured on coresets of uneven mixtures, by the cost over all data: with 10 clusters the best
    of ten runs gains 2.4 % on one; with 100 clusters in one to a thousand, single runs lie 2
    to 9 % above the best of three; with 500 three gain 0.2 %. A run on a coreset takes a
    fraction of a read, so that three at least cost little; many clusters average their luck.

    Parameters
    ----------
    n_clusters : int

    Returns
    -------
    int

    Examples
    --------
    >>> [auto_starts(k) for k in (2, 8, 30, 100, 500)]
    [10, 10, 10, 5, 3]
    """
    return min(10, max(3, 500 // n_clusters))
