"""The base of sensitivities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from daskcoreset.core.block import Block, find_bad_target
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.objectives import Objective
from daskcoreset.objectives.regression import find_bad_number
from daskcoreset.sensitivities.draw import Candidates, Drawn, strata, systematic_draw
from daskcoreset.solvers.divergences import plain_fields

if TYPE_CHECKING:
    import numpy as np

S = TypeVar("S")


class Scored(NamedTuple):
    """The summary of a block, and scores of its rows.

    `Sensitivity.block_summary` may return it in the last fold if it knows scores anyway.

    Attributes
    ----------
    summary : object
        As `Sensitivity.block_summary` returns it.
    scores : ndarray of shape (n,), float64
        Scores of the rows by what is known so far: the fold before, or the block alone.
    total : float or None, default=None
        Estimate of the sum of these scores over all the data, if the fold before tells it. Blocks
        then send candidates in proportion to their scores, and none is read twice.
    """

    summary: Any
    scores: FloatArray
    total: float | None = None


def summary_of(found: Any) -> Any:
    """Return the summary that `Sensitivity.block_summary` returned, without scores."""
    return found.summary if isinstance(found, Scored) else found


def find_invalid_row(method: Any, block: Block) -> InvalidRow | None:
    """Return the first row of a block that a sensitivity or reducer cannot use, or None."""
    find_label = {"classes": find_bad_target, "numbers": find_bad_number}.get(method.labels)
    found = None if find_label is None else find_label(block)
    if found is None and method.objective is not None:
        found = method.objective.find_invalid_row(block)
    return found


# Methods by the names that ``build(method=...)`` takes.
CONSTRUCTIONS: dict[str, type[Sensitivity[Any]]] = {}


class Sensitivity(ABC, Generic[S]):
    """Base class of methods that draw rows in proportion to a bound on their sensitivity.

    Write a frozen dataclass whose fields are the parameters. It gets NumPy blocks. The library
    reads, folds, draws, and computes weights and seeds. :doc:`/reference/extending` shows the
    steps, and `daskcoreset.testing.SensitivityContract` tests the result.

    Attributes
    ----------
    name : str
        The name of the method in ``build(method=...)``, provenances and stores: an identifier that
        no other method has. The class registers itself by it when it is defined.
    citation : str
        Where the scores come from, as a text that is not empty.
    labels : {"classes", "numbers"} or None
        What labels the rows must have. The library checks them. Classes are strata of the default
        draw, and each of them keeps rows. None: ``block.labels`` may be None.
    max_columns : int or None
        Columns of X at most, for methods whose memory or time grows with their square.
    total_scores_exact : bool
        Whether `total_scores` returns the exact sums of `scores`. If it only estimates them,
        independent draws need one more pass, which adds up the scores.
    """

    name: ClassVar[str]
    citation: ClassVar[str]
    labels: ClassVar[Literal["classes", "numbers"] | None] = None
    max_columns: ClassVar[int | None] = None
    total_scores_exact: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if (name := vars(cls).get("name")) is None:
            return
        known = CONSTRUCTIONS.get(name, cls)
        if known.__module__.startswith("daskcoreset.") and known.__module__ != cls.__module__:
            raise InvalidInputError(
                f"the class {cls.__name__} has the name {name!r} of the method {known.__name__}",
                argument="name",
                remedy="choose another name",
            )
        CONSTRUCTIONS[name] = cls

    @property
    @abstractmethod
    def objective(self) -> Objective[Any]:
        """The cost that the method is made for, one of `daskcoreset.objectives`.

        It is required. `Coreset.audit` and `daskcoreset.grow` use it. The number of centers or
        components may be left open.
        """

    @property
    def n_folds(self) -> int:
        """Number of folds of `block_summary` before `scores`.

        Each gets the finalized summary before it.
        """
        return 1

    @abstractmethod
    def block_summary(self, block: Block, previous: S | None, rng: np.random.Generator) -> S | Any:
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
        S or Scored
            The summary. In the last fold it may be a `Scored`, with scores of the rows.
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

    @abstractmethod
    def scores(self, block: Block, summary: S) -> FloatArray:
        """Score the rows of a block. Scores are non-negative and include the weight u.

        Parameters
        ----------
        block : Block
            n rows.
        summary : S
            Summary of all the data, or of the block alone when it proposes candidates.

        Returns
        -------
        ndarray of shape (n,), float64
            Rows are drawn in proportion to it.
        """

    @abstractmethod
    def total_scores(self, local: S, summary: S) -> float:
        """Return the sum of `scores` over a block, from its own summary."""

    def draw(
        self, candidates: Candidates, summary: S, size: int, rng: np.random.Generator
    ) -> Drawn:
        """Draw the rows of a coreset from candidates.

        The default draws systematically, in proportion to `scores`. Neighbors in the order of the
        draw are neighbors in space. Classes are strata. `daskcoreset.sensitivities.draw` has the
        functions for draws of your own. All candidates are taken if `size` allows it.

        Parameters
        ----------
        candidates : Candidates
            Rows, and the probabilities with which they became candidates.
        summary : S
            Finalized summary of all the data.
        size : int
            Number of rows to draw.
        rng : numpy.random.Generator
            Random numbers of this draw. Use no others.

        Returns
        -------
        Drawn
            Positions, weights, and facts for the provenance.
        """
        scores = self.scores(candidates.rows, summary)
        if self.labels != "classes":
            return systematic_draw(candidates, scores, size, rng)
        codes = candidates.codes
        return systematic_draw(candidates, scores, size, rng, codes=codes, order=strata)

    def provenance(self, summary: S) -> dict[str, Any]:
        """Return facts about the data for the provenance, as plain JSON values."""
        del summary
        return {}

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name, in plain JSON values."""
        return plain_fields(self)
