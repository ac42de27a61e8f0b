"""The protocol of a sensitivity: what a construction must say, and all it must say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from daskcoreset.sensitivities.design import SamplingDesign

if TYPE_CHECKING:
    import numpy as np

    from daskcoreset.core.blocks import Block, InvalidRow
    from daskcoreset.core.typing import FloatArray
    from daskcoreset.objectives import Objective

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
    total_scores_exact : bool
        Whether `total_scores` gives the very sums of `scores`. Where it only estimates them,
        independent draws cost one more read, which adds the scores up.
    proposal_bound : float or None
        A bound c with :math:`q(x) \le c\, Q_i\, p_i(x)` for every row x of every block i,
        where p_i are the normalised scores by the block's own summary, q those by the
        global one and Q_i the block's share of q. With it draws from one read can be made
        exact by rejection. None where no bound is known.
    needs_labels : bool
        Whether rows must have labels.
    """

    name: ClassVar[str]
    citation: ClassVar[str]
    randomised: ClassVar[bool] = False
    total_scores_exact: ClassVar[bool] = True
    proposal_bound: ClassVar[float | None] = None
    needs_labels: ClassVar[bool] = False

    @property
    @abstractmethod
    def objective(self) -> Objective[Any]:
        """The cost that the construction is made for, one of `daskcoreset.objectives`.

        Required, for `daskcoreset.audit` and ``size="auto"`` judge by it, and a coreset that is
        right for one cost may be far off for another. How many centers or components solutions
        have may be left open.
        """

    @property
    def design(self) -> SamplingDesign[S]:
        """What the construction wants of the draw beside scores; nothing by default."""
        return SamplingDesign()

    @property
    def n_folds(self) -> int:
        """Folds of `block_summary` before `scores`; each sees the finalized summary before it."""
        return 1

    def too_much(self, n_rows: int, n_features: int) -> str | None:
        """Return why blocks of so many rows and columns are more than can be done, or None.

        Asked before anything is read; with what it would take, and what to do instead.
        """
        del n_rows, n_features
        return None

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
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
            Finalized summary of the fold before; None in the first.
        rng : numpy.random.Generator
            The block's own stream.
        """

    @abstractmethod
    def merge(self, first: S, second: S) -> S:
        """Summary of the union of two neighbouring, disjoint sets of rows; associative."""

    def finalize(self, summary: S, rng: np.random.Generator) -> S:
        """Turn the merged summary into what `scores` and the next fold take; at the root."""
        del rng
        return summary

    def validate_summary(self, summary: S, *, finalized: bool) -> None:
        """Raise what is wrong with all the data together.

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

    def provenance(self, summary: S) -> dict[str, Any]:
        """Facts about the data that belong into the provenance; plain JSON values."""
        del summary
        return {}

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
