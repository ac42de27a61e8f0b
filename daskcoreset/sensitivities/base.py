"""The protocols of a sensitivity and of the design of its draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from daskcoreset.core.blocks import Block, InvalidRow
from daskcoreset.core.ordering import spatial_order
from daskcoreset.core.sampling import Calibrated
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.objectives import Objective
from daskcoreset.sensitivities.estimated_error import Fitted
from daskcoreset.solvers.divergences import plain_fields

if TYPE_CHECKING:
    import numpy as np

S = TypeVar("S")


class SamplingDesign(Generic[S]):
    """Strata, order and calibration of the draw of a construction; by default none.

    A construction with a design of its own returns it as `Sensitivity.design`. In all methods
    `summary` is the finalized summary of all the data.

    Attributes
    ----------
    scores_from_pilot : bool
        Whether `Sensitivity.scores` takes the finalized summary of the last fold but one as well,
        as an estimate: candidates are drawn in the last fold then, and `pilot_total` says what
        all scores add up to. Only of use to constructions with more than one fold.
    """

    scores_from_pilot: ClassVar[bool] = False

    def pilot_total(self, summary: S) -> float:
        """Estimate the sum of all scores, where `scores_from_pilot` is set."""
        raise NotImplementedError

    def classes(self, summary: S) -> AnyArray | None:
        """Return the labels that must all have rows in the coreset, sorted; None without any.

        Asked with finalized summaries and, where there is one fold, with those of single blocks.
        """
        del summary
        return None

    def order(self, rows: Block, summary: S, inclusion: FloatArray) -> IndexArray:
        """Return the order in which systematic draws go: the more alike neighbours are, the better.

        Parameters
        ----------
        rows : Block
            k rows.
        summary : S
        inclusion : ndarray of shape (k,), float64
            With what probability each of the rows is drawn.

        Returns
        -------
        ndarray of shape (k,), int64
            A permutation; by default that of `daskcoreset.core.ordering.spatial_order`.
        """
        del summary
        return spatial_order(rows.points, inclusion)

    def final_scores(
        self, rows: Block, first: FloatArray, scores: FloatArray, summary: S, size: int
    ) -> FloatArray:
        """Return the scores by which rows are drawn from candidates; by default `scores`.

        For what can be known only of all candidates together, or depends on how many rows are to
        be drawn. Not used by independent draws.

        Parameters
        ----------
        rows : Block
            k candidates.
        first : ndarray of shape (k,), float64
            Probabilities with which they became candidates.
        scores : ndarray of shape (k,), float64
            Their `Sensitivity.row_scores`. A share of them is kept, or their bounds are lost.
        summary : S
        size : int
            Rows to be drawn.

        Returns
        -------
        ndarray of shape (k,), float64
        """
        del rows, first, summary, size
        return scores

    def n_draws(self, size: int, summary: S) -> int:
        """Draws to be made for a coreset of `size` rows; that of the least `draw_loss` is kept."""
        del size, summary
        return 1

    def adjust(  # noqa: PLR0917 - all of them are always given
        self,
        rows: Block,
        first: FloatArray,
        second: FloatArray,
        chosen: IndexArray,
        weights: FloatArray,
        summary: S,
    ) -> FloatArray:
        """Return weights of the rows drawn that bring sums nearer to those over all candidates.

        Asked before `calibrate`, for what only the candidates know; by default `weights`. Not used
        by independent draws.

        Parameters
        ----------
        rows : Block
            k candidates.
        first, second : ndarray of shape (k,), float64
            Probabilities with which they became candidates, and are drawn then.
        chosen : ndarray of shape (m,), int64
            Places of the rows drawn among them.
        weights : ndarray of shape (m,), float64
            Their unbiased weights.
        summary : S

        Returns
        -------
        ndarray of shape (m,), float64
            Weights that are not negative.
        """
        del rows, first, second, chosen, summary
        return weights

    def calibrate(
        self, rows: Block, weights: FloatArray, summary: S, draw_index: int = 0
    ) -> Calibrated:
        """Adjust the weights of the rows drawn to sums over all the data in the summary.

        Parameters
        ----------
        rows : Block
            The m rows drawn, with their input weights u.
        weights : ndarray of shape (m,), float64
            Their unbiased weights.
        summary : S
        draw_index : int, default=0
            Which of several draws it is, for designs that calibrate in more than one way.

        Returns
        -------
        Calibrated
            Weights that are not negative, by default `weights` themselves, and what was done.
        """
        del rows, summary, draw_index
        return Calibrated(weights)

    def fitted(
        self,
        rows: Block,
        weights: FloatArray,
        candidates: Block,
        summary: S,
        *,
        roughly: bool = False,
    ) -> Fitted | None:
        """Fit a solution on the rows drawn, and return its losses on all candidates.

        With them the error of the coreset is estimated; by default nothing is fitted.

        Parameters
        ----------
        rows : Block
            The rows drawn.
        weights : ndarray of shape (m,), float64
            Theirs, calibrated.
        candidates : Block
            All the candidates.
        summary : S
        roughly : bool, default=False
            Whether the solution is only compared with those of other draws.
        """
        del rows, weights, candidates, summary, roughly
        return None

    def draw_loss(
        self,
        rows: Block,
        weights: FloatArray,
        candidates: Block,
        candidate_weights: FloatArray,
        summary: S,
    ) -> float:
        """Return the loss of a draw: the cost, over all candidates, of the solution `fitted` on it.

        `candidate_weights` are those with which the candidates stand for all the data without bias.
        """
        solution = self.fitted(rows, weights, candidates, summary, roughly=True)
        if solution is None:
            raise NotImplementedError
        return solution.constant + float(candidate_weights @ solution.losses)


class Sensitivity(ABC, Generic[S]):
    r"""Upper bounds on the sensitivities of rows, made of a summary of the data.

    Subclasses are frozen dataclasses whose fields are their parameters. They see NumPy
    blocks; the library owns reading, folding, quotas, draws, weights and seeds.

    Attributes
    ----------
    name : str
        The name of the construction for ``build(method=...)``.
    citation : str
        Key of the source in ``references.bib``, and the place in it.
    randomised : bool
        Whether `block_summary` or `finalize` draws random numbers.
    total_scores_exact : bool
        Whether `total_scores` gives the very sums of `scores`. Where it only estimates them,
        independent draws cost one more read, which adds the scores up.
    needs_labels : bool
        Whether rows must have labels.
    """

    name: ClassVar[str]
    citation: ClassVar[str]
    randomised: ClassVar[bool] = False
    total_scores_exact: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = False

    @property
    @abstractmethod
    def objective(self) -> Objective[Any]:
        """The cost that the construction is made for, one of `daskcoreset.objectives`.

        Required, for `Coreset.audit` and `daskcoreset.grow` judge by it, and a coreset that is
        right for one cost may be far off for another. How many centers or components solutions
        have may be left open.
        """

    @property
    def design(self) -> SamplingDesign[S]:
        """The design of the draw: strata, order, calibration; by default none."""
        return SamplingDesign()

    @property
    def n_folds(self) -> int:
        """Folds of `block_summary` before `scores`; each sees the finalized summary before it."""
        return 1

    def suited_to(self, n_rows: int | None, n_features: int) -> Self:
        """Return the construction for data of this size; optional: one that reads less, perhaps.

        Parameters
        ----------
        n_rows : int or None
            Of all the data; None where that is not known before reading.
        n_features : int
        """
        del n_rows, n_features
        return self

    def too_much(self, n_rows: int, n_features: int) -> str | None:
        """Return why blocks of so many rows and columns are more than can be done, or None.

        Asked before anything is read; with what it would take, and what to do instead.
        """
        del n_rows, n_features
        return None

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row that the construction cannot take, or None.

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
            Finalized summary of the fold before; None in the first.
        rng : numpy.random.Generator
            The block's own stream.
        """

    @abstractmethod
    def merge(self, first: S, second: S) -> S:
        """Summary of the union of two neighbouring, disjoint sets of rows; associative."""

    def finalize(self, summary: S, rng: np.random.Generator) -> S:
        """Return the finalized summary, which `scores` and the next fold take; runs at the root."""
        del rng
        return summary

    def validate_summary(self, summary: S, *, finalized: bool) -> None:
        """Raise an error if the data as a whole are unfit.

        Asked with the merged summary of the first fold before it is finalized, since that may take
        long, and with every finalized one; not about parts of the data, such as nodes of a tree.
        """
        del summary, finalized

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

    def row_scores(self, block: Block, summary: S) -> FloatArray:
        """Return the scores of rows: the sums of `scores` over the components, of shape (n,).

        To be overridden where they are there in less time; the same to the bit.
        """
        scores: FloatArray = self.scores(block, summary).sum(axis=0)
        return scores

    def proposal(
        self, block: Block, previous: Any, rng: np.random.Generator
    ) -> tuple[S, FloatArray]:
        """Summarise one block in the last fold, and score its rows by what is known by then.

        That is the finalized summary of the fold before, or with a single fold the summary of the
        block alone. To be overridden where a summary knows scores by the way.

        Returns
        -------
        local : S
            As of `block_summary`, with the same random numbers.
        scores : ndarray of shape (n,), float64
            Sums over the components.
        """
        local = self.block_summary(block, previous, rng)
        known = local if previous is None else previous
        return local, self.row_scores(block, known)

    @abstractmethod
    def total_scores(self, local: S, summary: S) -> FloatArray:
        """Sum of `scores` over a block, from its own summary; shape (n_components,)."""

    def provenance(self, summary: S) -> dict[str, Any]:
        """Facts about the data that belong into the provenance; plain JSON values."""
        del summary
        return {}

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name, in plain JSON values."""
        return plain_fields(self)
