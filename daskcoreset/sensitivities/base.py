"""The base of sensitivities, and the design of their draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from daskcoreset.core.block import Block
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.ordering import spatial_order
from daskcoreset.core.raking import Calibrated
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.objectives import Objective
from daskcoreset.sensitivities.estimated_error import Fitted
from daskcoreset.solvers.divergences import plain_fields

if TYPE_CHECKING:
    import numpy as np

S = TypeVar("S")


class SamplingDesign(Generic[S]):
    """Strata, order and calibration of the draw of a method. The default draws without them.

    A method with its own design returns it as `Sensitivity.design`. In all methods `summary` is the
    finalized summary of all the data.

    Attributes
    ----------
    scores_from_pilot : bool
        Whether `Sensitivity.scores` also takes the finalized summary of the last fold but one, as
        an estimate. Candidates are then drawn in the last fold, and `pilot_total` estimates the sum
        of all scores. Only for methods with more than one fold.
    """

    scores_from_pilot: ClassVar[bool] = False

    def pilot_total(self, summary: S) -> float:
        """Estimate the sum of all scores, if `scores_from_pilot` is set."""
        raise NotImplementedError

    def classes(self, summary: S) -> AnyArray | None:
        """Return the labels that must all have rows in the coreset, sorted, or None.

        It is called with finalized summaries and, if there is one fold, with those of single
        blocks.
        """
        del summary
        return None

    def order(self, rows: Block, summary: S, inclusion: FloatArray) -> IndexArray:
        """Return the order of systematic draws. Neighbors should be as alike as possible.

        Parameters
        ----------
        rows : Block
            k rows.
        summary : S
        inclusion : ndarray of shape (k,), float64
            Probability with which each of the rows is drawn.

        Returns
        -------
        ndarray of shape (k,), int64
            A permutation. Default: a spatial order.
        """
        del summary
        return spatial_order(rows.points, inclusion)

    def final_scores(
        self, rows: Block, first: FloatArray, scores: FloatArray, summary: S, size: int
    ) -> FloatArray:
        """Return the scores by which rows are drawn from candidates. Default: `scores`.

        Use it for scores that need all candidates together, or the number of rows to draw.
        Independent draws do not use it.

        Parameters
        ----------
        rows : Block
            k candidates.
        first : ndarray of shape (k,), float64
            Probabilities with which they became candidates.
        scores : ndarray of shape (k,), float64
            Their `Sensitivity.row_scores`. Keep a share of them, or their bounds are lost.
        summary : S
        size : int
            Number of rows to draw.

        Returns
        -------
        ndarray of shape (k,), float64
        """
        del rows, first, summary, size
        return scores

    def n_draws(self, size: int, summary: S) -> int:
        """Return the number of draws for a coreset of `size` rows.

        The one with the least `draw_loss` is kept.
        """
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
        """Change the weights of drawn rows so that sums are closer to those over all candidates.

        It is called before `calibrate`. Default: `weights`. Independent draws do not use it.

        Parameters
        ----------
        rows : Block
            k candidates.
        first, second : ndarray of shape (k,), float64
            Probabilities with which they became candidates, and with which they are then drawn.
        chosen : ndarray of shape (m,), int64
            Positions of the drawn rows among the candidates.
        weights : ndarray of shape (m,), float64
            Their unbiased weights.
        summary : S

        Returns
        -------
        ndarray of shape (m,), float64
            Non-negative weights.
        """
        del rows, first, second, chosen, summary
        return weights

    def calibrate(
        self, rows: Block, weights: FloatArray, summary: S, draw_index: int = 0
    ) -> Calibrated:
        """Calibrate the weights of the drawn rows to sums over all the data.

        Parameters
        ----------
        rows : Block
            The m drawn rows, with their input weights u.
        weights : ndarray of shape (m,), float64
            Their unbiased weights.
        summary : S
        draw_index : int, default=0
            Number of the draw, for designs that calibrate in more than one way.

        Returns
        -------
        Calibrated
            Non-negative weights, by default `weights`, and facts for the provenance.
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
        """Fit a solution on the drawn rows, and return its losses on all candidates.

        The error of the coreset is estimated from them. By default nothing is fitted.

        Parameters
        ----------
        rows : Block
            The drawn rows.
        weights : ndarray of shape (m,), float64
            Their calibrated weights.
        candidates : Block
            All candidates.
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
        """Return the cost, over all candidates, of the solution that `fitted` finds on a draw.

        `candidate_weights` are unbiased weights of the candidates for all the data.
        """
        solution = self.fitted(rows, weights, candidates, summary, roughly=True)
        if solution is None:
            raise NotImplementedError
        return solution.constant + float(candidate_weights @ solution.losses)


class Sensitivity(ABC, Generic[S]):
    """Base class of methods that draw rows in proportion to a bound on their sensitivity.

    Write a frozen dataclass whose fields are the parameters. It gets NumPy blocks. The library
    reads, folds, draws, and computes weights and seeds. :doc:`/reference/extending` shows the
    steps, and `daskcoreset.testing.SensitivityContract` tests the result.

    Attributes
    ----------
    name : str
        The name of the method in provenances and stores: an identifier that no other method has.
        Pass a method of your own to ``build(method=...)`` as an object, not by its name.
    citation : str
        Where the scores come from, as a text that is not empty.
    randomised : bool
        Whether `block_summary` or `finalize` draws random numbers.
    total_scores_exact : bool
        Whether `total_scores` returns the exact sums of `scores`. If it only estimates them,
        independent draws need one more pass, which adds up the scores.
    needs_labels : bool
        Whether rows must have labels. Otherwise ``block.labels`` may be None.
    """

    name: ClassVar[str]
    citation: ClassVar[str]
    randomised: ClassVar[bool] = False
    total_scores_exact: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = False

    @property
    @abstractmethod
    def objective(self) -> Objective[Any]:
        """The cost that the method is made for, one of `daskcoreset.objectives`.

        It is required. `Coreset.audit` and `daskcoreset.grow` use it. The number of centers or
        components may be left open.
        """

    @property
    def design(self) -> SamplingDesign[S]:
        """The design of the draw: strata, order, calibration. The default draws without them."""
        return SamplingDesign()

    @property
    def n_folds(self) -> int:
        """Number of folds of `block_summary` before `scores`.

        Each gets the finalized summary before it.
        """
        return 1

    def suited_to(self, n_rows: int | None, n_features: int) -> Self:
        """Return a variant of the method for data of this size, for example one with fewer passes.

        Parameters
        ----------
        n_rows : int or None
            Rows of all the data. None if the number is unknown before reading.
        n_features : int

        Returns
        -------
        Sensitivity
            Default: the method itself.
        """
        del n_rows, n_features
        return self

    def too_much(self, n_rows: int, n_features: int) -> str | None:
        """Return why blocks of this size take too much memory or time, or None.

        It is called before any row is read. The text names the amount and a remedy.
        """
        del n_rows, n_features
        return None

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row that the method cannot use, or None.

        It is called for each block in the first pass. The first problem of all blocks becomes an
        error, with the row number in the whole data.
        """
        del block
        return None

    @abstractmethod
    def block_summary(self, block: Block, previous: S | None, rng: np.random.Generator) -> S:
        """Summarize one block, which may be empty.

        Parameters
        ----------
        block : Block
        previous : S or None
            Finalized summary of the fold before. None in the first fold.
        rng : numpy.random.Generator
            Random numbers of this block. Use no others.

        Returns
        -------
        S
            The summary.
        """

    @abstractmethod
    def merge(self, first: S, second: S) -> S:
        """Return the summary of the union of two neighboring sets of rows.

        It must be associative, and must not change its arguments.
        """

    def finalize(self, summary: S, rng: np.random.Generator) -> S:
        """Return the finalized summary for `scores` and for the next fold.

        It runs once, at the root.
        """
        del rng
        return summary

    def validate_summary(self, summary: S, *, finalized: bool) -> None:
        """Raise an error if the data as a whole cannot be used.

        It is called with the merged summary of the first fold before it is finalized, and with
        every finalized summary. It is not called for parts of the data, such as nodes of a tree.
        """
        del summary, finalized

    @abstractmethod
    def scores(self, block: Block, summary: S) -> FloatArray:
        """Score the rows of a block. Scores are non-negative and include the weight u.

        Parameters
        ----------
        block : Block
            n rows.
        summary : S
            Summary of all the data, or of the block alone when it makes a proposal.

        Returns
        -------
        ndarray of shape (n_components, n), float64
            Parts of the scores. The score of a row is their sum, and rows are drawn in proportion
            to it.
        """

    def row_scores(self, block: Block, summary: S) -> FloatArray:
        """Return the scores of rows, of shape (n,): the sums of `scores` over the components.

        Override it if the sums are faster to compute directly. They must have the same bits.
        """
        scores: FloatArray = self.scores(block, summary).sum(axis=0)
        return scores

    def proposal(
        self, block: Block, previous: Any, rng: np.random.Generator
    ) -> tuple[S, FloatArray]:
        """Summarize one block in the last fold, and score its rows by what is known so far.

        With several folds, the scores use the finalized summary of the fold before. With one fold,
        they use the summary of the block. Override it if the summary computes the scores anyway.

        Returns
        -------
        local : S
            As returned by `block_summary`, with the same random numbers.
        scores : ndarray of shape (n,), float64
            Sums over the components.
        """
        local = self.block_summary(block, previous, rng)
        known = local if previous is None else previous
        return local, self.row_scores(block, known)

    @abstractmethod
    def total_scores(self, local: S, summary: S) -> FloatArray:
        """Return the sums of `scores` over a block, from its own summary.

        The result has the shape (n_components,).
        """

    def provenance(self, summary: S) -> dict[str, Any]:
        """Return facts about the data for the provenance, as plain JSON values."""
        del summary
        return {}

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name, in plain JSON values."""
        return plain_fields(self)
