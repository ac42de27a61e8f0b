"""The protocol of a sensitivity: what a construction must say, and all it must say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from daskcoreset.core.ordering import spatial_order
from daskcoreset.core.sampling import Calibrated

if TYPE_CHECKING:
    import numpy as np

    from daskcoreset.core.blocks import Block, InvalidRow
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
    from daskcoreset.objectives import Objective
    from daskcoreset.sensitivities.estimated_error import Fitted

__all__ = ["Sensitivity"]

S = TypeVar("S")


class Sensitivity(ABC, Generic[S]):
    r"""Upper bounds on the sensitivities of rows, made of a summary of the data.

    Subclasses are frozen dataclasses whose fields are their parameters. They see NumPy
    blocks; the library owns reading, folding, quotas, draws, weights and seeds.

    Attributes
    ----------
    name : str
        The name by which ``build(method=...)`` knows the construction.
    citation : str
        Key of the source in ``references.bib``, and the place in it.
    randomised : bool
        Whether `block_summary` or `finalize` draws random numbers.
    masses_are_exact : bool
        Whether `total_scores` gives the very sums of `scores`. Where it only estimates them,
        independent draws cost one more read, which adds the scores up.
    proposal_bound : float or None
        A bound c with :math:`q(x) \le c\, Q_i\, p_i(x)` for every row x of every block i,
        where p_i are the normalised scores by the block's own summary, q those by the
        global one and Q_i the block's share of q. With it draws from one read can be made
        exact by rejection. None where no bound is known.
    needs_labels : bool
        Whether rows must have labels.
    scores_early : bool
        Whether `scores` takes the settled summary of the last fold but one as well, as an
        estimate: candidates are drawn in the last fold then, and `pilot_total` says what all
        scores add up to. Only asked of constructions with more than one fold.
    """

    name: ClassVar[str]
    citation: ClassVar[str]
    randomised: ClassVar[bool] = False
    total_scores_exact: ClassVar[bool] = True
    proposal_bound: ClassVar[float | None] = None
    needs_labels: ClassVar[bool] = False
    scores_from_pilot: ClassVar[bool] = False

    @property
    @abstractmethod
    def objective(self) -> Objective[Any]:
        """The cost that the construction is made for, one of `daskcoreset.objectives`.

        Required, for `daskcoreset.audit` and ``size="auto"`` judge by it, and a coreset that is
        right for one cost may be far off for another. How many centers or components solutions
        have may be left open.
        """

    @property
    def n_folds(self) -> int:
        """Folds of `block_summary` that `scores` needs; each sees the settled summary before it."""
        return 1

    def too_much(self, n_rows: int, n_features: int) -> str | None:
        """Return why blocks of so many rows and columns are more than can be done, or None.

        Asked before anything is read; with what it would take, and what to do instead.
        """
        del n_rows, n_features
        return None

    def problem(self, block: Block) -> InvalidRow | None:
        """Return what makes the rows of a block unfit for the construction, or None.

        Asked of every block in the first read: the root turns the first problem of all into
        an error, with the row counted over all blocks.
        """
        del block
        return None

    @abstractmethod
    def block_summary(self, block: Block, previous: S | None, rng: np.random.Generator) -> S:
        """Summarise one block, which may be empty.

        Parameters
        ----------
        block : Block
        previous : S or None
            Settled summary of the fold before; None in the first.
        rng : numpy.random.Generator
            The block's own stream.
        """

    @abstractmethod
    def merge(self, first: S, second: S) -> S:
        """Summary of the union of two neighbouring, disjoint sets of rows; associative."""

    def check_early(self, summary: S) -> None:
        """Raise what the merged summary of the first fold tells already, before it is settled.

        For constructions whose `finalize` takes long; like `check` not asked about parts.
        """
        del summary

    def finalize(self, summary: S, rng: np.random.Generator) -> S:
        """Turn the merged summary into what `scores` and the next fold take; at the root."""
        del rng
        return summary

    def check(self, summary: S) -> None:
        """Raise what is wrong with all the data together, when a fold of a build has settled.

        Not asked about parts of the data, such as the nodes of a tree.
        """
        del summary

    def pilot_total(self, summary: S) -> float:
        """Estimated sum of `scores` over all data, where `scores_from_pilot` is set."""
        raise NotImplementedError

    @abstractmethod
    def scores(self, block: Block, summary: S) -> FloatArray:
        """Score rows: non-negative, the factor u included, by component of the mixture.

        Parameters
        ----------
        block : Block
            n rows.
        summary : S
            Summary of all the data, or of the block alone when it makes a proposal.

        Returns
        -------
        ndarray of shape (n_components, n), float64
            Their sum over components is the score; draws are made in proportion to it.
        """

    def proposal(self, block: Block, rng: np.random.Generator) -> tuple[S, FloatArray]:
        """Summarise one block, and score its rows by this summary alone.

        What a block of a single fold does in one read; to be overridden where a summary knows
        scores by the way.

        Returns
        -------
        local : S
            As of `block_summary`, with the same random numbers.
        scores : ndarray of shape (n,), float64
            Sums over the components.
        """
        local = self.block_summary(block, None, rng)
        return local, self.scores(block, local).sum(axis=0)

    @abstractmethod
    def total_scores(self, local: S, summary: S) -> FloatArray:
        """Sum of `scores` over a block, from its own summary; shape (n_components,)."""

    def order(self, rows: Block, summary: S, inclusion: FloatArray) -> IndexArray:
        """Order along which systematic draws go: the more alike neighbours are, the better.

        Parameters
        ----------
        rows : Block
            k rows.
        summary : S
            Settled summary of all the data.
        inclusion : ndarray of shape (k,), float64
            With what probability each of the rows is drawn.

        Returns
        -------
        ndarray of shape (k,), int64
            A permutation; by default that of `daskcoreset.core.ordering.spatial_order`.
        """
        del summary
        return spatial_order(rows.points, inclusion)

    def n_draws(self, size: int, summary: S) -> int:
        """Draws to be made for a coreset of `size` rows; that of the least `loss` is kept."""
        del size, summary
        return 1

    def loss(
        self,
        rows: Block,
        weights: FloatArray,
        others: Block,
        other_weights: FloatArray,
        summary: S,
    ) -> float:
        """Return how badly a draw does, where there are several `n_draws`.

        By default the cost, over all candidates, of the solution `fitted` on the rows drawn.

        Parameters
        ----------
        rows : Block
            The rows drawn.
        weights : ndarray of shape (m,), float64
            Theirs, calibrated.
        others : Block
            All the candidates.
        other_weights : ndarray of shape (k,), float64
            Theirs, with which they stand for all the data without bias.
        summary : S
            Settled summary of all the data.
        """
        found = self.fitted(rows, weights, others, summary, roughly=True)
        if found is None:
            raise NotImplementedError
        return found.constant + float(other_weights @ found.losses)

    def classes(self, summary: S) -> AnyArray | None:
        """Labels that must all have rows in the coreset, sorted; None where labels are no matter.

        Asked with settled summaries and, where there is one fold, with those of single blocks.
        """
        del summary
        return None

    def calibrate(
        self, rows: Block, weights: FloatArray, summary: S, attempt: int = 0
    ) -> Calibrated:
        """Adjust the weights of the final rows to what the summary knows of all the data.

        Parameters
        ----------
        rows : Block
            The m rows drawn, with their input weights u.
        weights : ndarray of shape (m,), float64
            Their unbiased weights.
        summary : S
            Settled summary of all the data.
        attempt : int, default=0
            Which of several `n_draws` it is, for those who calibrate in more than one way.

        Returns
        -------
        Calibrated
            Weights that are not negative, by default `weights` themselves, and what was done.
        """
        del rows, summary, attempt
        return Calibrated(weights)

    def fitted(
        self,
        rows: Block,
        weights: FloatArray,
        others: Block,
        summary: S,
        *,
        roughly: bool = False,
    ) -> Fitted | None:
        """Fit a solution on the rows drawn, and return its losses on all candidates.

        With them the root estimates how far its cost on the coreset is from that on the data;
        by default nothing is fitted, and nothing estimated.

        Parameters
        ----------
        rows : Block
            The rows drawn.
        weights : ndarray of shape (m,), float64
            Theirs, calibrated.
        others : Block
            All the candidates.
        summary : S
            Settled summary of all the data.
        roughly : bool, default=False
            Whether the solution is only compared with those of other draws.
        """
        del rows, weights, others, summary, roughly
        return None

    def describe(self, summary: S) -> dict[str, Any]:
        """Facts about the data that belong into the provenance; plain JSON values."""
        del summary
        return {}

    def warnings_for(self, summary: S, size: int) -> tuple[str, ...]:
        """Return what users should be warned of, given the data and the size of the coreset."""
        del summary, size
        return ()

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
