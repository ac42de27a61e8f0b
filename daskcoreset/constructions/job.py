"""A build, which asks for reads of the blocks: as one graph, at once, or with others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from daskcoreset.core.coreset import Coreset
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.portfolio import Portfolio
from daskcoreset.execution.engine import Engine
from daskcoreset.execution.lazy import Lazy
from daskcoreset.execution.local import compute_options
from daskcoreset.execution.progress import show_progress
from daskcoreset.execution.steps import Steps, run_alone
from daskcoreset.inputs.blocks import RowBlocks
from daskcoreset.inputs.cubes import Cube

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
        return graph.then(partial(self.finish, engine)).then(self.labelled)

    def run(self, progress: bool | None) -> T:
        """Build, from a block in memory without a scheduler."""
        if not self.blocks.in_memory:
            lazy = self.lazy()
            with show_progress(progress, lazy):
                return lazy.compute(**compute_options(self.blocks))
        engine = Engine(self.blocks, self.split_every)
        # Set once for all steps in memory, of which each would set it by itself.
        with one_thread():
            return self.labelled(self.finish(engine, self.read(engine)))

    def labelled(self, built: T) -> T:
        """Return a result with the row numbers and coordinates of a cube, if X is one."""
        labelled: T = on_grid(built, self.blocks.cube)
        return labelled


def on_grid(built: Any, cube: Cube | None) -> Any:
    """Return a coreset or portfolio with the row numbers and coordinates of a cube."""
    if cube is None:
        return built
    if isinstance(built, Portfolio):
        members = {name: on_grid(one, cube) for name, one in built.items()}
        return replace(built, members=members)
    coreset = replace(built, indices=cube.numbers(built.indices))
    rows = coreset.take(np.argsort(coreset.indices, kind="stable"))
    where = {
        "sample_dims": list(cube.dims),
        "sample_shape": list(cube.shape),
        "cube": cube.to_json(),
    }
    return Coreset(
        rows.points,
        rows.weights,
        rows.indices,
        rows.labels,
        {**coreset.provenance, **where},
        cube.coordinates(rows.indices),
    )
