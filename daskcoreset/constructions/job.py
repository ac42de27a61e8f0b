"""A build, which asks for reads of the blocks: as one graph, at once, or with others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, Generic, TypeVar

from daskcoreset.core.linalg import one_thread
from daskcoreset.execution.engine import Engine
from daskcoreset.execution.lazy import Lazy
from daskcoreset.execution.steps import Steps, run_alone
from daskcoreset.inputs.blocks import RowBlocks

T = TypeVar("T")


class Job(ABC, Generic[T]):
    """A build: which reads it asks for, and what it makes of their results.

    Attributes
    ----------
    blocks : RowBlocks
    split_every : int
        Results that one task of the reduction merges.
    """

    blocks: RowBlocks
    split_every: int

    @property
    @abstractmethod
    def reads(self) -> int:
        """Passes over the data."""

    @property
    @abstractmethod
    def n_candidates(self) -> float:
        """Rows that are gathered at the root."""

    def reading(self, engine: Engine) -> Steps[Any]:
        """Ask for all passes. Return what `finishing` takes."""
        raise NotImplementedError

    def finishing(self, results: Any) -> Steps[T]:
        """Make the result. Asks for blocks that must be read again."""
        raise NotImplementedError

    def read(self, engine: Engine) -> Any:
        """Read, or define the graph of it with a lazy engine."""
        return run_alone(engine, self.reading(engine))

    def finish(self, engine: Engine, results: Any) -> T:
        """Make the result of what was read."""
        return run_alone(engine, self.finishing(results))

    def lazy(self) -> Lazy[T]:
        """Define the graph of the whole build."""
        engine = Engine(self.blocks, self.split_every, lazy=True)
        graph: Lazy[Any] = self.read(engine)
        return graph.then(partial(self.finish, engine))

    def compute_now(self) -> T:
        """Build at once: from blocks in memory without a scheduler."""
        engine = Engine(self.blocks, self.split_every)
        # Set once for all steps in memory, of which each would set it by itself.
        with one_thread():
            return self.finish(engine, self.read(engine))
