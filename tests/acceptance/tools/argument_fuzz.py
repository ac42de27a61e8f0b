"""Mutations of arguments of public calls; `main` runs in a process of `fuzzing`."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st

from tests.acceptance.face import errors
from tests.acceptance.tools import fuzzing
from tests.acceptance.tools.hostile_values import VALUES, HostileError
from tests.acceptance.tools.public_calls import NOTHING, PublicCall, public_calls

ALSO_CALLED = {
    "value": ("divergence",),
    "leaf": ("leaves",),
    "size": ("max_points", "rows of two classes"),
    "C": ("lam",),
    "k": ("pass a larger",),
    "n": ("rows",),
    "d": ("columns", "features"),
    "X": ("rows",),
    "others": ("coreset",),
    "groups": ("sample_weight",),
    "classes": ("labels",),
    "random_state": ("pass a larger k",),
    "progress": ("oracle",),
}
"""What messages call some arguments, as users do."""

ENDLESS = {("n_init", value) for value in ("huge", "2^63", "2^31", "10^9")}
"""Numbers of runs that may be asked for, and are made one after the other."""


BY_USER = {(name, value) for name in ("report", "progress") for value in ("function", "type")}
"""Functions that are called, and fail: what they raise goes to the user as it is."""


def problem_of(call: PublicCall, argument: str, value: str) -> str | None:
    """Spoil an argument of a call; return what is wrong with the answer, or None."""
    where = f"{call.name}({argument}={value})"
    options = {**call.good, argument: VALUES[value]()}
    try:
        with in_a_folder():
            fuzzing.watched(lambda: call.function(**options), where, pickles=True)
    except errors.MissingDependencyError:
        return None
    except errors.CoresetError as error:
        said = str(error)
        named = is_named(call, argument, said) or names_path(options, said)
        return None if named else f"{where}: names nothing: {said[:300]}"
    except HostileError:
        return None  # what a user's object raises goes to the user as it is
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is not ours
        return f"{where}: {fuzzing.described(error)}"
    return None


@contextmanager
def in_a_folder() -> Iterator[None]:
    """What is written by a bad path of text must not stay here."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


def is_named(call: PublicCall, argument: str, said: str) -> bool:
    """Whether a message names the argument, or another one of the call that it does not fit."""
    names = {argument, *call.known, *ALSO_CALLED.get(argument, ())}
    return any(name in said for name in names if len(name) > 1) or any(
        f"{name} " in said or f"{name}=" in said or f"'{name}'" in said for name in names
    )


def is_expected(call: PublicCall) -> bool:
    """Whether arguments that are good end in an error all the same."""
    return any(value is NOTHING for value in call.good.values())


def names_path(options: dict[str, Any], said: str) -> bool:
    """Whether a message names a path that was passed, absolute as it may be by then."""
    paths = (options.get(name) for name in ("path", "store"))
    return any(isinstance(path, str | Path) and Path(path).name in said for path in paths)


def main(out: str, seed: str, count: str) -> None:
    """Make mutations, and write down those that were answered wrongly."""
    warnings.simplefilter("ignore")
    calls = public_calls()
    seen: Counter[str] = Counter()
    failures: list[str] = []
    for call in calls:  # in peace, so that loops are compiled
        try:
            with in_a_folder():
                call.function(**call.good)
        except errors.MissingDependencyError:
            pass
        except errors.CoresetError as error:
            if not is_expected(call):
                failures.append(f"{call.name}: {error}")
        seen[call.name] = 0
    fuzzing.guard()
    fuzzing.refuse_pickles()
    pairs = [(call, argument) for call in calls for argument in call.known]

    @fuzzing.examples(seed, count)
    @given(pair=st.sampled_from(pairs), value=st.sampled_from(list(VALUES)))
    def mutate(pair: tuple[PublicCall, str], value: str) -> None:
        call, argument = pair
        seen[call.name] += 1
        if (argument, value) in ENDLESS | BY_USER:
            return
        if problem := problem_of(call, argument, value):
            failures.append(problem)

    mutate()
    fuzzing.report(out, sum(seen.values()), failures, calls=len(calls), pairs=len(pairs))
