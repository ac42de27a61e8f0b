"""What makes a problem of structured output: joint features, and a separation oracle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points

__all__ = ["BatchProblem", "Rival", "StructuredProblem"]


@dataclass(frozen=True, eq=False)
class Rival:
    """The wrong answer that a separator likes best.

    Attributes
    ----------
    y : ndarray of shape (t,), int64
    margin : float
        What the right answer is ahead by, divided by `loss`.
    loss : float
        How wrong `y` is; 1 where all wrong answers are equally wrong.
    """

    y: IndexArray
    margin: float
    loss: float = 1.0


class StructuredProblem(ABC):
    """Two functions that make a problem; examples are runs of rows, answers labels of them.

    Picklable, and without a state that changes.
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length D of the joint features."""

    @abstractmethod
    def joint_features(self, x: AnyArray, y: IndexArray) -> FloatArray:
        r"""Return :math:`\\Phi(x, y)`.

        Parameters
        ----------
        x : ndarray of shape (t, d), float64
            The rows of an example.
        y : ndarray of shape (t,), int64
            A label for each.

        Returns
        -------
        ndarray of shape (D,), float64
        """

    @abstractmethod
    def separation_oracle(self, w: FloatArray, x: AnyArray, y: IndexArray | None) -> Rival:
        r"""Find the answer other than y that is least behind it.

        Parameters
        ----------
        w : ndarray of shape (D,), float64
        x : ndarray of shape (t, d), float64
        y : ndarray of shape (t,), int64, or None
            None to find the best of all answers, whose margin is then 0.

        Returns
        -------
        Rival
            Exactly the one of least
            :math:`\\langle w, \\Phi(x, y) - \\Phi(x, y')\\rangle / \\text{loss}(y, y')`.
        """


class BatchProblem(StructuredProblem, ABC):
    """A problem that also answers for many examples at a time."""

    @abstractmethod
    def rivals(
        self, w: FloatArray, points: Points, labels: IndexArray | None, starts: IndexArray
    ) -> tuple[IndexArray, FloatArray, FloatArray]:
        """Do what `separation_oracle` does, for each of many examples.

        Parameters
        ----------
        w : ndarray of shape (D,), float64
        points : ndarray of shape (n, d) or csr_array
            Rows of all examples.
        labels : ndarray of shape (n,), int64, or None
        starts : ndarray of shape (q + 1,), int64
            Where each example begins, and n.

        Returns
        -------
        rivals : ndarray of shape (n,), int64
            One answer after another.
        margins, losses : ndarray of shape (q,), float64
        """
