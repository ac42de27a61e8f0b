"""The design of a draw, where scores alone do not say it: strata, order, calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from daskcoreset.core.ordering import spatial_order
from daskcoreset.core.sampling import Calibrated

if TYPE_CHECKING:
    from daskcoreset.core.blocks import Block
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
    from daskcoreset.sensitivities.estimated_error import Fitted

S = TypeVar("S")


class SamplingDesign(Generic[S]):
    """What a construction wants of the draw of its rows, beside scores; by default nothing.

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

    def n_draws(self, size: int, summary: S) -> int:
        """Draws to be made for a coreset of `size` rows; that of the least `draw_loss` is kept."""
        del size, summary
        return 1

    def calibrate(
        self, rows: Block, weights: FloatArray, summary: S, draw_index: int = 0
    ) -> Calibrated:
        """Adjust the weights of the rows drawn to what the summary knows of all the data.

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
        """Return how badly a draw does: the cost, over all candidates, of what is `fitted` on it.

        `candidate_weights` are those with which the candidates stand for all the data without bias.
        """
        solution = self.fitted(rows, weights, candidates, summary, roughly=True)
        if solution is None:
            raise NotImplementedError
        return solution.constant + float(candidate_weights @ solution.losses)

    def warnings_for(self, summary: S, size: int) -> tuple[str, ...]:
        """Return what users should be warned of, given the data and the size of the coreset."""
        del summary, size
        return ()
