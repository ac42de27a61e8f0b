"""Audits: costs on a coreset against costs on all data, in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.coreset import CLASS_WEIGHT, Coreset
from daskcoreset.core.labels import MAX_CLASSES
from daskcoreset.core.messages import warn_user
from daskcoreset.core.random import RandomState, Stage, resolve_seed, stream
from daskcoreset.core.tables import counted, text_table
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.core.validation import as_float, as_int, check_type
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.metrics.costs import check_usable, data_of
from daskcoreset.metrics.intervals import (
    BASE,
    CostEstimates,
    Interval,
    SampleDesign,
    sample_costs,
)
from daskcoreset.objectives import (
    LeastSquaresCost,
    LinearCost,
    Objective,
    QuantizationError,
    objective_for,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def candidate_solutions(
    objective: Objective[Any], block: Block, solutions: Any, seed: int
) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Name and return the given solutions, or those that the objective proposes.

    Parameters
    ----------
    objective : Objective
    block : Block
        Rows of the coreset.
    solutions : object, sequence or mapping of such, or None
        As the objective reads them.
    seed : int

    Returns
    -------
    names : tuple of str
    solutions : tuple

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If a solution does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from daskcoreset.core.block import Block
    >>> from daskcoreset.objectives import QuantizationError
    >>> rows = Block(np.eye(2), np.ones(2))
    >>> candidate_solutions(QuantizationError(1), rows, {"origin": [[0, 0]]}, 0)[0]
    ('origin',)
    """
    if solutions is None:
        candidates = dict(_candidates(objective, block, stream(seed, Stage.AUDIT, 0, 1)))
        return tuple(candidates), tuple(candidates.values())
    if isinstance(solutions, Mapping):
        names, several = [str(name) for name in solutions], list(solutions.values())
    else:
        several = objective.several(solutions)
        names = [f"solution {i}" for i in range(len(several))]
    if not several:
        raise InvalidInputError(
            "solutions is empty", argument="solutions", remedy="pass at least one solution"
        )
    return tuple(names), tuple(_read(objective, one, block, "solutions") for one in several)


def _read(objective: Objective[Any], solution: Any, block: Block, name: str) -> Any:
    """Return the solution that was passed as the argument `name`, after checks."""
    read = objective.read(solution, int(block.points.shape[1]), name)
    return objective.labelled(read, block, name)


# Centers or components of the default solutions, if their number is unknown.
PARTS = (2, 8, 32)


def _candidates(
    objective: Objective[Any], block: Block, rng: np.random.Generator
) -> Iterator[tuple[str, Any]]:
    """Propose solutions, for several numbers of parts if the objective knows none."""
    if objective.n_parts is not None:
        yield from objective.candidates(block, rng)
        return
    for k in PARTS:
        for name, solution in objective.with_parts(k).candidates(block, rng):
            yield f"{name}, k={k}", solution


# Rows of the independent sample at least: what may be hidden from it shrinks with them.
_MIN_SAMPLE = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    r"""Costs on a coreset against costs on all data. `Coreset.audit` returns it.

    It prints as a table. :doc:`/guides/trust` explains how to read it.

    Attributes
    ----------
    objective : Objective
        The cost that was compared.
    names : tuple of str
        A name per solution.
    solutions : tuple
        Centers, ndarray of shape (k, d), or other solutions of the objective.
    on_coreset, on_data : ndarray of shape (n_solutions,), float64
        Exact costs :math:`\phi_C(Q)` and :math:`\phi_X(Q)`.
    coreset_weight, data_weight : float
        Total weights.
    n_rows : int
        Rows of the data.
    seed : int
        Seed of the solutions and of the independent sample.

    Examples
    --------
    >>> import daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> coreset = daskcoreset.build(X, size=500, n_clusters=3, random_state=0)
    >>> report = coreset.audit(X, random_state=0)
    >>> report.distortion < 0.2, report.names[:2]
    (True, ('k-means', 'k-means++ 1'))
    """

    objective: Objective[Any]
    names: tuple[str, ...]
    solutions: tuple[Any, ...]
    on_coreset: FloatArray
    on_data: FloatArray
    coreset_weight: float
    data_weight: float
    n_rows: int
    seed: int
    _estimates: CostEstimates = field(repr=False)

    @property
    def differences(self) -> FloatArray:
        r"""Signed relative differences :math:`(\phi_C(Q) - \phi_X(Q)) / \phi_X(Q)`."""
        return _quotient(self.on_coreset - self.on_data, self.on_data)

    @property
    def distortion(self) -> float:
        r"""Largest :math:`\max(\phi_C / \phi_X, \phi_X / \phi_C) - 1` over the solutions."""
        largest = np.maximum(self.on_coreset, self.on_data)
        smallest = np.minimum(self.on_coreset, self.on_data)
        return float(_quotient(largest - smallest, smallest).max())

    @property
    def sample_size(self) -> int:
        """Rows of the independent sample behind the intervals."""
        return len(self._estimates.sample.coins)

    def interval(self, solution: Any, *, confidence: float = 0.95) -> Interval:
        """Bound the cost of any solution on all data, without another pass.

        An audited solution has its exact cost. For another one, the bounds use rows that the audit
        drew independently of the coreset, and exact sums over cells of all rows. They hold for any
        number of rows, heavy tails and rare losses, because they do not assume normal errors. They
        are wide if rows that look alike can have very different costs.

        Parameters
        ----------
        solution : array-like of shape (k, d), or a mixture
            One solution of the audited kind. It must not depend on the sample of the audit. A
            solution fitted to the coreset or to all data is fine.
        confidence : float, default=0.95
            Least probability, over the draws of the sample, that the interval contains the true
            cost. It holds for each solution, not for all together.

        Returns
        -------
        Interval
            ``(estimate, low, high)``. The upper end is infinite for your own objective without
            `Objective.brackets`.

        Raises
        ------
        InvalidInputError
            If `solution` does not fit the data, or `confidence` is out of range.

        Examples
        --------
        >>> import daskcoreset
        >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
        >>> coreset = daskcoreset.build(X, size=500, random_state=0)
        >>> interval = audit(coreset, X, n_clusters=3, random_state=0).interval([[0, 1], [0, -1]])
        >>> true = daskcoreset.metrics.kmeans_cost(X, [[0, 1], [0, -1]])
        >>> bool(interval.low < true < interval.high)
        True
        """
        level = as_float("confidence", confidence, "0.95")
        checked = _read(self.objective, solution, self._estimates.coreset_rows, "solution")
        if isinstance(checked, np.ndarray):
            check_usable(Block(checked, np.ones(len(checked))), "solution")
        return self._estimates.interval(checked, level)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the relative difference of every audited solution, and of the total weight.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw into. Default: a new figure of pyplot.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed (extra "plot").

        Examples
        --------
        >>> import daskcoreset
        >>> from matplotlib.figure import Figure
        >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
        >>> coreset = daskcoreset.build(X, size=500, n_clusters=3, random_state=0)
        >>> ax = coreset.audit(X, random_state=0).plot(Figure().add_subplot())
        >>> [label.get_text() for label in ax.get_yticklabels()][:2]
        ['k-means', 'k-means++ 1']
        """
        from daskcoreset.plotting import plot_audit

        names, _, _, differences = self._with_weight()
        title = f"{self.objective.name}, over {counted(self.n_rows, 'row')}"
        return plot_audit(names, differences, title, ax)

    def _with_weight(self) -> tuple[list[str], FloatArray, FloatArray, FloatArray]:
        """Return names, both costs and differences, and those of the total weight last."""
        ours = np.append(self.on_coreset, self.coreset_weight)
        true = np.append(self.on_data, self.data_weight)
        return [*self.names, "total weight"], ours, true, _quotient(ours - true, true)

    def __repr__(self) -> str:
        shape = f"distortion {self.distortion:.2%}, over {counted(self.n_rows, 'row')}"
        lines = [("solution", "on coreset", "on all data", "difference")]
        for name, ours, true, gap in zip(*self._with_weight(), strict=True):
            lines.append((name, f"{ours:.6g}", f"{true:.6g}", f"{gap:+.2%}"))
        return "\n".join([f"Audit({self.objective.name}, {shape})", *text_table(lines)])


def audit(
    coreset: Coreset,
    X: Any,
    y: Any = None,
    *,
    solutions: Any = None,
    n_clusters: int | None = None,
    objective: Objective[Any] | None = None,
    sample_weight: Any = None,
    sample_size: int | None = None,
    random_state: RandomState = None,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: Literal["raise", "drop"] | None = None,
    progress: bool | None = None,
) -> Audit:
    """Compare costs on a coreset with costs on all data, in one pass.

    Parameters
    ----------
    coreset : Coreset
    X : array-like of shape (n, d), or path
        The data of the coreset, any X of `daskcoreset.build`.
    y : array-like of shape (n,), or str, optional
        Labels, if the cost depends on labels.
    solutions : array-like of shape (k, d), sequence or mapping of such, optional
        Solutions to compare: centers, fitted estimators, or mixtures. The keys of a mapping name
        them. Default: solutions fitted to the coreset, solutions fitted to few of its rows, and
        random ones.
    n_clusters : int, optional
        Centers or components of the default solutions. Default: those of the coreset's method, or
        2, 8 and 32 if it serves any number. The names of solutions contain the number.
    objective : Objective, optional
        The cost, one of `daskcoreset.objectives`. Default: the cost that the method is made for, or
        that of models of `y` if it is made for none.
    sample_weight : array-like of shape (n,), or str, optional
        Weights of the data, if the coreset was built with weights.
    sample_size : int, optional
        Expected rows of the sample for `Audit.interval`. Default: the size of the coreset, and at
        least 10,000.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the solutions and the sample. It may equal the seed of `build`.
    chunks, progress
        As in `daskcoreset.build`.
    on_invalid : {"raise", "drop"}, optional
        How to treat rows with NaN or infinity. Default: as in the build.

    Returns
    -------
    Audit
        The costs, their largest relative difference, and intervals for other solutions.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If an argument does not fit the coreset, or as `daskcoreset.build` raises.

    Warns
    -----
    CoresetWarning
        If X has other rows, weights or labels than the coreset was built from.

    Examples
    --------
    >>> import daskcoreset
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> coreset = daskcoreset.build(X, size=1000, random_state=0)
    >>> report = audit(coreset, X, random_state=0)
    >>> report.names[0], report.distortion < 0.2
    ('k-means, k=2', True)

    References
    ----------
    Schwiegelshohn and Sheikh-Omar (2022), section 4.
    """
    check_type("objective", objective, (Objective, NoneType), "pass Objective objects only")
    seed = resolve_seed(random_state)
    rows = rows_of(coreset)
    check_usable(rows)
    labelled = y is not None or getattr(X, "has_labels", False)  # blocks that were opened before
    if objective is None:
        objective = cost_for(coreset, n_clusters, labelled=labelled, solutions=solutions)
    names, candidates = candidate_solutions(objective, rows, solutions, seed)
    on_coreset = np.array([objective.cost(rows, solution) for solution in candidates])
    size = max(_MIN_SAMPLE, len(coreset))
    if sample_size is not None:
        size = as_int("sample_size", sample_size)
    if coreset.labels is not None and not labelled and isinstance(objective, LinearCost):
        raise InvalidInputError(
            f"y is missing, and the {objective.name} needs labels",
            argument="y",
            remedy="pass the labels of X",
        )
    blocks = data_of(coreset, X, y, sample_weight, chunks=chunks, on_invalid=on_invalid)
    blocks = _weighed(blocks, coreset)
    design = _design(rows, objective, candidates, size, seed)
    sample = sample_costs(blocks, design, progress=progress)
    n_rows, record = sample.n_rows, coreset.provenance
    if record.get("n", n_rows) != n_rows:
        warn_user(
            f"X has {counted(n_rows, 'row')}, but the coreset was built from "
            f"{record['n']:,}: the audit compares it with other "
            "data. Pass the data of the coreset. For held-out rows, use "
            "score() or the metrics of scikit-learn."
        )
    elif not np.isclose(sample.weight, built := record.get("total_weight", sample.weight), 1e-6):
        warn_user(
            f"the rows of X have the total weight {sample.weight:.6g}, but {built:.6g} "
            "when the coreset was built: the audit compares it with other "
            "weights. Pass the same sample_weight."
        )
    _check_labels(objective, sample.rows, rows)
    return Audit(
        objective=objective,
        names=names,
        solutions=candidates,
        on_coreset=on_coreset,
        on_data=sample.costs + [objective.constant(solution) for solution in candidates],
        coreset_weight=coreset.total_weight,
        data_weight=sample.weight,
        n_rows=n_rows,
        seed=seed,
        _estimates=CostEstimates(sample, design, rows),
    )


def cost_of_solutions(coreset: Coreset, solutions: Any, objective: Objective[Any] | None) -> Any:
    """Return costs of solutions on a coreset, as `Coreset.cost` says."""
    check_type("objective", objective, (Objective, NoneType), "pass an Objective")
    if solutions is None:
        raise InvalidTypeError(
            "solutions is None",
            argument="solutions",
            remedy="pass centers, or other solutions of the cost",
        )
    rows = rows_of(coreset)
    check_usable(rows)
    if objective is None:
        # Centers have a cost on any rows.
        n_clusters = 1 if coreset.provenance.get("objective") is None else None
        labelled = coreset.labels is not None
        objective = cost_for(coreset, n_clusters, labelled=labelled, solutions=solutions)
    _, several = candidate_solutions(objective, rows, solutions, 0)
    costs = np.array([objective.cost(rows, solution) for solution in several])
    single = not isinstance(solutions, Mapping) and objective.several(solutions)[0] is solutions
    return float(costs[0]) if single else costs


def cost_for(
    coreset: Coreset, n_clusters: int | None, *, labelled: bool, solutions: Any = None
) -> Objective[Any]:
    """Return the cost that a coreset is made for.

    If it is for any number of clusters, its labels say what the rows are for: the cost is that of
    models of the labels, unless `n_clusters` or solutions without coefficients are passed.

    Raises
    ------
    InvalidInputError
        Solutions are linear models, and the data or the coreset have no labels.
    """
    objective = objective_for(coreset.provenance, n_clusters, rows_of(coreset))
    several = list(solutions.values()) if isinstance(solutions, Mapping) else solutions
    several = several if isinstance(several, (list, tuple)) else [several]
    linear = any(hasattr(solution, "coef_") for solution in several)
    if objective != QuantizationError() or (solutions is not None and not linear):
        return objective
    if labelled and coreset.labels is not None:
        return LeastSquaresCost() if is_regression(coreset.labels) else LinearCost("logistic")
    if linear:
        raise InvalidInputError(
            "solutions are linear models, but labels are missing",
            argument="solutions",
            remedy="build the coreset with y, and pass the y of X",
        )
    return objective


def rows_of(coreset: Coreset) -> Block:
    """Return the rows of a coreset."""
    return Block(coreset.points, coreset.weights, coreset.labels)


def is_regression(labels: AnyArray) -> bool:
    """Whether labels are numbers to predict: floats, or too many integers for classes."""
    many = labels.dtype.kind in "iu" and len(np.unique(labels)) > MAX_CLASSES
    return labels.dtype.kind == "f" or many


def _check_labels(objective: Objective[Any], drawn: Block, rows: Block) -> None:
    """Warn where rows of the data have labels that no row of the coreset has."""
    if not isinstance(objective, LinearCost) or drawn.labels is None:
        return
    classes = np.unique(labels_of(rows))
    unknown = np.setdiff1d(labels_of(drawn), classes)
    if len(unknown):
        warn_user(
            f"y has the label {unknown[0].item()!r}, but the labels of the "
            f"coreset are {classes[:5].tolist()}. Rows of other labels count as "
            "the rest. Pass the labels of the build."
        )


def _weighed(blocks: RowBlocks, coreset: Coreset) -> RowBlocks:
    """Return blocks with the weights of classes that the coreset was drawn with."""
    factors = coreset.provenance.get(CLASS_WEIGHT)
    if not factors or blocks.schema.class_weight:  # an estimator has set them
        return blocks
    if not blocks.has_labels:
        raise InvalidInputError(
            "y is missing, and the weights of the coreset contain class_weight",
            argument="y",
            remedy="pass the labels of X",
        )
    known = tuple((label, factor) for label, factor in factors)
    return replace(blocks, schema=replace(blocks.schema, class_weight=known))


def _design(
    rows: Block, objective: Objective[Any], solutions: tuple[Any, ...], size: int, seed: int
) -> SampleDesign:
    sizes = [len(solution) for solution in solutions if isinstance(solution, np.ndarray)]
    k = max([*sizes, objective.n_parts or 1])
    cells = objective.cells(rows, k, stream(seed, Stage.AUDIT, 0, 2))
    cells = cells.scored(cells.sums(rows, cells.place(rows)), float(rows.weights.mean()))
    costs = np.array([objective.total(rows, solution) for solution in solutions])
    shares = np.divide(1.0 - BASE, len(costs) * costs, out=np.zeros_like(costs), where=costs > 0.0)
    weight = float(rows.weights.sum())
    return SampleDesign(objective, solutions, cells, shares, size, weight, seed)


def _quotient(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(numerator == 0, 0.0, numerator / denominator)
