"""Work that asks for reads: that of several shares each of them.

*Steps* are a generator. It yields a `Request` for every read that it needs, one after another, is
sent what was read, and returns what it made of it. The requests that several make at a time are
answered by one read, so that all of them take as many reads as the one that needs most.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from daskcoreset.core.block import ReadBlock
from daskcoreset.core.invalid import InvalidRow
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.messages import about_member
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

    Errors and warnings begin with the key of their member, if several keys are text.
    """
    values: dict[K, T] = {}
    answers: dict[K, Any] = dict.fromkeys(steps)
    names = names_of(steps)
    while answers:
        requests: dict[K, Request] = {}
        for key, answer in answers.items():
            try:
                with about_member(names[key]):
                    requests[key] = _next(steps[key], answer)
            except StopIteration as end:
                values[key] = end.value
        answers = _answered(engine, requests, names) if requests else {}
    return {key: values[key] for key in steps}


@one_thread()
def _next(steps: Steps[Any], answer: Any) -> Request:
    """Go on with steps to their next request."""
    return steps.send(answer)


def names_of(keys: Collection[K]) -> dict[K, str | None]:
    """Return the names that errors begin with: those of several members whose keys are text."""
    names: dict[K, str | None]
    names = {key: key if isinstance(key, str) else None for key in keys}
    return names if sum(map(bool, names.values())) > 1 else dict.fromkeys(keys)


def _answered(
    engine: Engine, requests: Mapping[K, Request], names: Mapping[K, str | None]
) -> dict[K, Any]:
    """Answer requests by one read."""
    members = [_Member(names[key], request) for key, request in requests.items()]
    shared = Reduction(partial(_chunks, members), partial(_combined, members))
    broadcasts = [request.broadcast for request in requests.values()]
    broadcast = None
    if any(value is not None for value in broadcasts):
        broadcast = engine.apply(listed, *broadcasts)
    again = {block for request in requests.values() for block in request.blocks or ()}
    results = _read(engine, Request(shared, broadcast, sorted(again) or None))
    if again:
        return {key: _part_of(i, results) for i, key in enumerate(requests)}
    return {key: engine.apply(partial(_part_of, i), results) for i, key in enumerate(requests)}


def _read(engine: Engine, request: Request) -> Any:
    if request.blocks is None:
        return engine.read(request.reduction, request.broadcast)
    engine = replace(engine, blocks=engine.blocks.select(list(request.blocks)))
    return engine.compute(engine.read(request.reduction, request.broadcast))


class _Member:
    """The reduction of a member, which sees its own blocks only, and names itself."""

    def __init__(self, name: str | None, request: Request) -> None:
        self.name, self.reduction = name, request.reduction
        self.blocks = None if request.blocks is None else frozenset(request.blocks)

    def chunk(self, rows: ReadBlock, broadcast: Any) -> Any:
        if self.blocks is not None and rows.index not in self.blocks:
            return None
        with about_member(self.name):
            value = self.reduction.chunk(rows, broadcast)
        if isinstance(value, InvalidRow) and self.name is not None:
            return replace(value, problem=f"member {self.name!r}: {value.problem}")
        return value

    def combine(self, values: Sequence[Any]) -> Any:
        present = [value for value in values if value is not None]
        return self.reduction.combine(present) if present else None


def _chunks(
    members: Sequence[_Member], rows: ReadBlock, broadcasts: Sequence[Any] | None
) -> list[Any] | InvalidRow:
    values = []
    pairs = zip(members, broadcasts or [None] * len(members), strict=True)
    with closing(at_once([partial(member.chunk, rows, value) for member, value in pairs])) as made:
        for value in made:
            if isinstance(value, InvalidRow):
                return value
            values.append(value)
    return values


def _combined(members: Sequence[_Member], parts: Sequence[Sequence[Any]]) -> list[Any]:
    columns = zip(*parts, strict=True)
    return [member.combine(values) for member, values in zip(members, columns, strict=True)]


def listed(*values: Any) -> list[Any]:
    """Return values as a list, for `Engine.apply`."""
    return list(values)


def _part_of(position: int, results: BlockResults[Any]) -> BlockResults[Any]:
    """Return the results of one of several members."""
    # A row that is invalid is no member's fault, or has named its own: not one of those that look.
    results.check()
    return replace(results, value=results.value[position])
