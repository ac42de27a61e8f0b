"""Work that asks for reads: that of several shares each of them.

*Steps* are a generator. It yields a `Request` for every read that it needs, one after another, is
sent what was read, and returns what it made of it. The requests that several make at a time are
answered by one read, so that all of them take as many reads as the one that needs most.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from daskcoreset.core.block import ReadBlock
from daskcoreset.core.errors import about_member
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.linalg import one_thread
from daskcoreset.execution.engine import BlockResults, Engine, Reduction
from daskcoreset.execution.threads import at_once

T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True, eq=False)
class Request:
    """Request for a read, as `Engine.read` makes it, of all blocks or at once of some again."""

    reduction: Reduction[Any]
    broadcast: Any = None
    blocks: Sequence[int] | None = None


# Of a generator that returns T.
Steps: TypeAlias = Generator[Request, Any, T]


def run_alone(engine: Engine, steps: Steps[T]) -> T:
    """Run steps; with a lazy engine what they return is lazy."""
    answer = None
    while True:
        try:
            request = _next(steps, answer)
        except StopIteration as end:
            value: T = end.value
            return value
        answer = _read(engine, request)


def run_together(engine: Engine, steps: Mapping[K, Steps[T]]) -> dict[K, T]:
    """Run the steps of several members, with one read for all requests that wait.

    Errors and warnings begin with the key of their member, if it is text.
    """
    values: dict[K, T] = {}
    answers: dict[K, Any] = dict.fromkeys(steps)
    while answers:
        requests: dict[K, Request] = {}
        for key, answer in answers.items():
            try:
                with about_member(name_of(key)):
                    requests[key] = _next(steps[key], answer)
            except StopIteration as end:
                values[key] = end.value
        answers = _answered(engine, requests) if requests else {}
    return {key: values[key] for key in steps}


@one_thread()
def _next(steps: Steps[Any], answer: Any) -> Request:
    """Go on with steps to their next request."""
    return steps.send(answer)


def name_of(key: object) -> str | None:
    """Return the name of a member, or None."""
    return key if isinstance(key, str) else None


def _answered(engine: Engine, requests: Mapping[K, Request]) -> dict[K, Any]:
    """Answer requests by one read."""
    shared = together(*[_of_member(name_of(key), request) for key, request in requests.items()])
    broadcasts = [request.broadcast for request in requests.values()]
    broadcast = None
    if any(value is not None for value in broadcasts):
        broadcast = engine.apply(_broadcasts, *broadcasts)
    again = {block for request in requests.values() for block in request.blocks or ()}
    results = _read(engine, Request(shared, broadcast, sorted(again) or None))
    if again:
        return {key: _part_of(i, results) for i, key in enumerate(requests)}
    # A row that is invalid is no member's fault, or has named its own: not one of those that look.
    checked = engine.apply(_checked, results)
    return {key: engine.apply(partial(_part_of, i), checked) for i, key in enumerate(requests)}


def together(*reductions: Reduction[Any]) -> Reduction[tuple[Any, ...]]:
    """Return one reduction that makes the values of several in the same read.

    The broadcast value is a tuple with an entry for each of them, or None.

    Examples
    --------
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> count = Reduction(lambda rows, _: len(rows.block), sum)
    >>> total = Reduction(lambda rows, factor: factor * float(rows.block.points.sum()), sum)
    >>> engine = Engine(row_blocks([[1.0], [2.0]]))
    >>> engine.read(together(count, total), (None, 10.0)).value
    (2, 30.0)
    """
    return Reduction(partial(_chunks, reductions), partial(_combined_all, reductions))


def _chunks(
    reductions: tuple[Reduction[Any], ...], rows: ReadBlock, broadcast: tuple[Any, ...] | None
) -> tuple[Any, ...] | InvalidRow:
    values = []
    broadcasts = (None,) * len(reductions) if broadcast is None else broadcast
    calls = [
        partial(reduction.chunk, rows, value)
        for reduction, value in zip(reductions, broadcasts, strict=True)
    ]
    with closing(at_once(calls)) as made:
        for value in made:
            if isinstance(value, InvalidRow):
                return value
            values.append(value)
    return tuple(values)


def _combined_all(
    reductions: tuple[Reduction[Any], ...], parts: Sequence[tuple[Any, ...]]
) -> tuple[Any, ...]:
    columns = zip(*parts, strict=True)
    return tuple(
        reduction.combine(values) for reduction, values in zip(reductions, columns, strict=True)
    )


def _read(engine: Engine, request: Request) -> Any:
    if request.blocks is None:
        return engine.read(request.reduction, request.broadcast)
    engine = engine.on(engine.blocks.select(list(request.blocks)))
    return engine.compute(engine.read(request.reduction, request.broadcast))


def _of_member(name: str | None, request: Request) -> Reduction[Any]:
    """Return the reduction of a member, which sees its own blocks only, and names itself."""
    reduction = request.reduction
    wanted = None if request.blocks is None else frozenset(request.blocks)
    return Reduction(
        partial(_chunk_of_member, name, reduction.chunk, wanted),
        partial(_combined, reduction.combine),
    )


def _chunk_of_member(
    name: str | None,
    chunk: Callable[[ReadBlock, Any], Any],
    wanted: frozenset[int] | None,
    rows: ReadBlock,
    broadcast: Any,
) -> Any:
    if wanted is not None and rows.index not in wanted:
        return None
    with about_member(name):
        value = chunk(rows, broadcast)
    if isinstance(value, InvalidRow) and name is not None:
        # The message is a format: what is in the name stands for itself.
        shown = repr(name).replace("{", "{{").replace("}", "}}")
        return replace(value, problem=f"member {shown}: {value.problem}")
    return value


def _combined(combine: Callable[[Sequence[Any]], Any], values: Sequence[Any]) -> Any:
    present = [value for value in values if value is not None]
    return combine(present) if present else None


def _broadcasts(*values: Any) -> tuple[Any, ...]:
    return values


def _checked(results: BlockResults[Any]) -> BlockResults[Any]:
    results.check()
    return results


def _part_of(position: int, results: BlockResults[Any]) -> BlockResults[Any]:
    """Return the results of one of several reductions."""
    return replace(results, value=results.value[position])
