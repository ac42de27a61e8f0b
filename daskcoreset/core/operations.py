"""Methods of a coreset whose work is done by layers above it.

A coreset lies at the bottom, where nothing may know of reading data or of drawing. What is
above it supplies the functions, once, when the package is imported: `supply`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from daskcoreset.metrics.audit import Audit
    from daskcoreset.objectives import Objective
    from daskcoreset.core.random import RandomState

__all__ = ["Operations", "supply"]

_supplied: dict[str, Callable[..., Any]] = {}


def supply(**functions: Callable[..., Any]) -> None:
    """Say which functions do the work of the methods of these names.

    Parameters
    ----------
    **functions : callable
        Each takes the coreset first and then what its method takes.
    """
    _supplied.update(functions)


class Operations:
    """The methods; a base class of `Coreset`, without data of its own."""

    def audit(
        self,
        X: Any,
        y: Any = None,
        *,
        solutions: Any = None,
        n_clusters: int | None = None,
        objective: Objective[Any] | None = None,
        sample_weight: Any = None,
        sample_size: int | None = None,
        random_state: RandomState = None,
        confidence: float = 0.95,
        chunks: int | Literal["auto"] = "auto",
        on_invalid: Literal["raise", "drop"] | None = None,
        progress: bool | None = None,
    ) -> Audit:
        """Hold the costs on this coreset against those of all data, in one read.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            The data that it is of.
        y : array-like of shape (n,), optional
            Its labels, where the cost is about labels.
        solutions, n_clusters, objective, sample_weight, sample_size, random_state, confidence,
        chunks, on_invalid, progress
            As in `daskcoreset.audit`, which does the work.

        Returns
        -------
        Audit
            Costs, the largest relative difference, and intervals for any other solution.

        Examples
        --------
        >>> import numpy as np, daskcoreset
        >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
        >>> coreset = daskcoreset.build(X, size=1000, random_state=0)
        >>> coreset.audit(X, n_clusters=5, random_state=0).distortion < 0.2
        True
        """
        found: Audit = _supplied["audit"](
            self,
            X,
            y,
            solutions=solutions,
            n_clusters=n_clusters,
            objective=objective,
            sample_weight=sample_weight,
            sample_size=sample_size,
            random_state=random_state,
            confidence=confidence,
            chunks=chunks,
            on_invalid=on_invalid,
            progress=progress,
        )
        return found

    def plot(
        self,
        X: Any = None,
        *,
        ax: Axes | None = None,
        sample_weight: Any = None,
        bins: int | None = None,
        legend: bool = True,
        on_invalid: Literal["raise", "drop"] | None = None,
        **style: Any,
    ) -> Axes:
        """Draw the rows of this coreset, sized by weight, over a density of the data.

        Parameters
        ----------
        X, ax, sample_weight, bins, legend, on_invalid, **style
            As in `daskcoreset.plotting.plot_coreset`, which does the work.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        axes: Axes = _supplied["plot"](
            self,
            X,
            ax=ax,
            sample_weight=sample_weight,
            bins=bins,
            legend=legend,
            on_invalid=on_invalid,
            **style,
        )
        return axes
