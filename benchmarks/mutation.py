"""Mutants of the mathematics: one operator or number is changed, and the tests should notice.

``python benchmarks/mutation.py`` makes mutants of the modules of `GROUPS`, the same ones on every
run, and writes ``benchmarks/results/mutation.json`` and ``mutation.md`` with a row for each that
lived. Why it lived is written into the JSON file by hand, and kept, and so is a note of the run. A
reason that begins with "equivalent" is for a mutant that no result tells from the program.
``--only sampling`` takes the files with this in their path.

All is imported once. Every test is run once to see which functions it calls; then each mutant is
a fork in which one function gets the changed code, and those tests run that call the function,
the fastest first, until one fails. A mutant that takes three times as long is dead, too. Compiled
loops are left out: the tests compare them with plain loops of their own. So are messages,
assertions and what is called at import.
"""

from __future__ import annotations

import argparse
import ast
import cProfile
import importlib
import json
import os
import random
import resource
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import common
import dask
import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).parents[1]
NAME = "mutation"

GROUPS: dict[str, tuple[list[str], list[str], int]] = {
    "sampling": (
        ["core/sampling", "core/moments", "constructions/sampling", "constructions/tree/reducer"],
        ["core", "constructions/sampling", "constructions/tree", "sensitivities"],
        16,
    ),
    "sensitivities": (["sensitivities"], ["sensitivities"], 8),
    "coverage": (
        ["constructions/coverage"],
        ["constructions/coverage", "estimators/kernel"],
        2,
    ),
    "margin": (
        ["constructions/margin", "solvers/hard_margin"],
        ["constructions/margin", "solvers", "estimators/margin"],
        2,
    ),
}
"""Modules, the folders of tests that are about them, and mutants for each file."""

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.And: ast.Or, ast.Or: ast.And, ast.USub: ast.UAdd,
}  # fmt: skip
NAMES = {
    "min": "max", "minimum": "maximum", "any": "all", "floor": "ceil", "argmin": "argmax",
    "zeros": "ones", "flatnonzero": "ravel", "left": "right",
}  # fmt: skip
NAMES |= {new: old for old, new in NAMES.items() if new != "ravel"}
SKIPPED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.FunctionDef, ast.ClassDef, ast.Lambda)
SPOKEN = ("warn", "Error", "Warning", "cast", "ignore_overflow")
SLOW = 1.0
"""Seconds: tests that take longer are not run."""
QUICK, LONG = 1.5, 4.0
"""Seconds of tests that are tried first, short ones and those that killed others, and of all; a
mutant in a loop ends with the first ones."""


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, what it says, and the code with it."""

    module: str
    function: str
    line: int
    change: str
    code: CodeType

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return f"{self.module}:{self.function}:{self.change}"


# --- making them -----------------------------------------------------------------------------


def edits(node: ast.AST) -> Iterator[tuple[Any, Any, Any]]:  # noqa: C901 - a table
    """Yield owner, field or place, and new value of every change of one node."""
    match node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                yield from ((ops, i, new()) for new in COMPARISONS[type(op)])
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) | ast.UnaryOp(op=op):
            if type(op) in OPERATORS:
                yield node, "op", OPERATORS[type(op)]()
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if not isinstance(test, ast.Compare):
                yield node, "test", ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=bool(value)):
            yield node, "value", not value
        case ast.Constant(value=int(number)):
            yield node, "value", number + 1
        case ast.Constant(value=float(real)):
            yield node, "value", 2.0 * real if real else 1.0
        case ast.Attribute(attr=attr) if attr in NAMES:
            yield node, "attr", NAMES[attr]
        case ast.Name(id=name) if name in NAMES and isinstance(node.ctx, ast.Load):
            yield node, "id", NAMES[name]


def nodes_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what of a function computes: no annotations, messages, defaults or inner classes."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "args") and not isinstance(
            node, ast.Call
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, SKIPPED):
                continue
            if isinstance(child, ast.Call) and any(s in ast.unparse(child.func) for s in SPOKEN):
                continue
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue
            if isinstance(child, ast.keyword) and child.arg == "stacklevel":
                continue
            yield child
            yield from nodes_of(child)


def functions_of(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions and methods of a module, but no compiled ones."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions_of(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            decorators = " ".join(ast.unparse(one) for one in node.decorator_list)
            words = f"{decorators} {node.name}"
            if not any(word in words for word in ("jit", "overload", "abstract")):
                yield prefix + node.name, node


def code_of(code: CodeType, function: str, line: int) -> CodeType:
    """Find the code of a function in that of its module."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_qualname == function and abs(inner.co_firstlineno - line) < 8:
                return inner
            if function.startswith(inner.co_qualname + "."):
                return code_of(inner, function, line)
    raise LookupError(function)


def mutants_of(file: Path, count: int) -> list[Mutant]:
    """Make `count` mutants of a file, or all if they are fewer."""
    source = file.read_text()
    tree = ast.parse(source)
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    sites = [
        (name, node, inner, edit)
        for name, node in functions_of(tree)
        for inner in nodes_of(node)
        for edit in edits(inner)
    ]
    chosen = random.Random(module).sample(sites, min(count, len(sites)))  # noqa: S311 - a choice
    found = []
    for name, node, inner, (owner, place, new) in chosen:
        statement = _statement(node, inner)
        before, old = ast.unparse(statement), _get(owner, place)
        _set(owner, place, new)
        try:
            code = compile(ast.fix_missing_locations(tree), str(file), "exec")
            text = _difference(before, ast.unparse(statement))
            if text.endswith("strict=False)") or "strict=False))" in text:
                continue  # an assertion, too
            line = getattr(inner, "lineno", node.lineno)
            found.append(Mutant(module, name, line, text, code_of(code, name, node.lineno)))
        finally:
            _set(owner, place, old)
    return sorted({one.name: one for one in found}.values(), key=lambda one: one.line)


def _get(owner: Any, place: Any) -> Any:
    return owner[place] if isinstance(owner, list) else getattr(owner, place)


def _set(owner: Any, place: Any, value: Any) -> None:
    if isinstance(owner, list):
        owner[place] = value
    else:
        setattr(owner, place, value)


def _statement(function: ast.AST, inner: ast.AST) -> ast.AST:
    """Return the smallest simple statement, or condition, that holds a node."""
    found = function
    for node in ast.walk(function):
        small = isinstance(node, (ast.stmt, ast.expr)) and len(ast.unparse(node)) < 90
        if small and any(one is inner for one in ast.walk(node)):
            return node
    return found


def _difference(before: str, after: str) -> str:
    return f"{' '.join(before.split())} → {' '.join(after.split())}"


# --- running them ----------------------------------------------------------------------------


class Slow(BaseException):
    """A test takes too long; nothing that it calls catches this."""


class Watch:
    """A pytest plugin that collects tests, hands them over, and notes how they go."""

    def __init__(self, work: Callable[[dict[str, pytest.Item]], None]) -> None:
        self.work = work
        self.calls: dict[tuple[str, str], list[str]] = {}
        self.times: dict[str, float] = {}
        self.failed: list[str] = []
        self.kills: Counter[str] = Counter()
        self.noting = False

    def pytest_sessionstart(self) -> None:
        """Have few examples, the same ones on every run, and no simpler ones of what fails."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        few = settings(max_examples=30, derandomize=True, database=None, phases=phases)
        settings.register_profile("mutants", few)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Do what is to be done with the tests."""
        self.work({item.nodeid: item for item in session.items})
        return True

    def run(self, items: list[pytest.Item]) -> None:
        """Run tests up to the first that fails; all of them while calls are noted."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed and not self.noting:
                return

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Note what a test calls, and its time."""

        def stop(*_: Any) -> None:
            raise Slow(item.nodeid)

        if not self.noting:
            return (yield)
        profile = cProfile.Profile(subcalls=False, builtins=False)
        start = time.process_time()
        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, SLOW)
        profile.enable()
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            profile.disable()
            self.times[item.nodeid] = time.process_time() - start
            codes = [one.code for one in profile.getstats() if not isinstance(one.code, str)]
            for called in {(code.co_filename, code.co_qualname) for code in codes}:
                if called[0].startswith(str(ROOT / "daskcoreset")):
                    self.calls.setdefault(called, []).append(item.nodeid)

    def pytest_internalerror(self, excrepr: Any) -> None:
        """Say what is wrong with this program, or pytest."""
        say(str(excrepr))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what fails."""
        if report.failed:
            self.failed.append(report.nodeid)


def with_tests(files: list[Path], watch: Watch) -> None:
    """Collect tests and do with them what `watch` says, in silence."""
    marks = "not distributed and not nightly"
    given = ["-q", "-s", "-m", marks, "-p", "no:randomly", "-p", "no:cacheprovider"]
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        code = pytest.main([*given, *map(str, files)], plugins=[watch])
    assert code == pytest.ExitCode.OK, code


def forked(work: Callable[[], Any], seconds: float) -> Any:
    """Run `work` in a fork and return what it returns; None if it takes too long or dies."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        resource.setrlimit(resource.RLIMIT_AS, (12 * 2**30, 12 * 2**30))
        signal.alarm(int(6 * seconds))
        try:
            os.write(write, json.dumps(work()).encode() + b"\n")
        except BaseException as error:  # noqa: BLE001 - nothing may leave a fork
            say(repr(error))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what its tests have started
    return json.loads(text) if text.endswith("\n") else None


def function_of(module: str, qualname: str) -> FunctionType:
    """Return the plain function behind a name, whatever decorates it."""
    found: Any = importlib.import_module(module.removesuffix(".__init__"))
    for part in qualname.split("."):
        found = vars(found)[part]
    for name in ("fget", "func", "__func__", "__wrapped__"):
        found = getattr(found, name, found)
    assert isinstance(found, FunctionType), qualname
    return found


def verdict(
    mutant: Mutant, called: set[str], watch: Watch, items: dict[str, pytest.Item]
) -> tuple[str, str]:
    """Say whether a mutant is killed, and by which test: by quick ones, or else by more."""
    if not called:
        return "not called", ""
    taken = 0.0
    parts: tuple[list[str], list[str]] = [], []
    for name in sorted(called, key=lambda name: watch.times[name] / (1 + 4 * watch.kills[name])):
        taken += watch.times[name]
        if taken < LONG:
            parts[taken > QUICK].append(name)
    for part in filter(None, parts):

        def work(part: list[str] = part) -> list[str]:
            function_of(mutant.module, mutant.function).__code__ = mutant.code
            watch.run([items[name] for name in part])
            return watch.failed

        failed = forked(work, 5 + 3 * sum(watch.times[name] for name in part))
        if failed is None:
            return "killed", "time or memory"
        if failed:
            watch.kills[failed[0]] += 1
            return "killed", failed[0]
    return "lived", ""


def note_calls(
    test_file: Path, watch: Watch, items: dict[str, pytest.Item], known: Path | None
) -> dict[tuple[str, str], set[str]]:
    """Note what the tests of a file call, and their times; those that fail anyway are left out."""
    name = str(test_file.relative_to(ROOT))
    kept = known and known.with_suffix(f".{name.replace('/', '-')}.json")
    calls, times, failed = json.loads(kept.read_text()) if kept and kept.exists() else ([], {}, [])
    new = [one for test, one in items.items() if test.startswith(f"{name}:") and test not in times]
    if new:

        def work() -> Any:
            watch.noting = True
            watch.run(new)
            return [[*key, tests] for key, tests in watch.calls.items()], watch.times, watch.failed

        found = forked(work, 3600)
        assert found is not None, f"the tests did not end: {name}"
        calls, times, failed = calls + found[0], times | found[1], failed + found[2]
        if kept:
            kept.write_text(json.dumps((calls, times, failed)))
    if failed:
        say("left out, slow or failing without any change:", *failed)
    watch.times |= times
    out = {*failed, *(test for test in times if "schedulers" in test)}  # no pools in forks
    callers: dict[tuple[str, str], set[str]] = {}
    for file, function, tests in calls:
        callers.setdefault((file, function), set()).update({*tests} - out)
    return callers


def run_group(
    name: str, wanted: list[str], done: dict[str, list[str]], keep: Any, known: Path | None
) -> None:
    """Run the mutants of one group of modules that are not done yet."""
    modules, names, count = GROUPS[name]
    sources = [
        file
        for file in sources_of(modules)
        if not wanted or any(word in str(file.relative_to(ROOT)) for word in wanted)
    ]
    mutants = [one for file in sources for one in mutants_of(file, count) if one.name not in done]
    if not mutants:
        return

    tests = [path for one in names for path in sorted((ROOT / "tests" / one).rglob("test_*.py"))]
    files = [*(one for one in sources if ">>>" in one.read_text()), *tests]

    def work(items: dict[str, pytest.Item]) -> None:
        warm()
        tests_of: dict[tuple[str, str], set[str]] = {}
        for one in files:
            for function, callers in note_calls(one, watch, items, known).items():
                tests_of.setdefault(function, set()).update(callers)
        for mutant in mutants:
            called = tests_of.get((mutant.code.co_filename, mutant.function), set())
            keep(mutant, *verdict(mutant, called, watch, items))

    watch = Watch(work)
    with_tests(files, watch)


def sources_of(modules: list[str]) -> list[Path]:
    """Return the files of modules and packages."""
    return [
        file
        for module in modules
        for file in sorted((ROOT / "daskcoreset" / module).glob("*.py"))
        or [ROOT / f"daskcoreset/{module}.py"]
    ]


def warm() -> None:
    """Import and load, without any threads, what mutants would each import and load anew."""
    import daskcoreset
    from daskcoreset.sensitivities import CONSTRUCTIONS

    X = np.random.default_rng(0).normal(size=(500, 3))
    y = (X[:, 0] > 0.0).astype(np.int64)
    for rows in (X, sp.csr_array(X)):
        for name in CONSTRUCTIONS:
            with warnings.catch_warnings(action="ignore"), suppress(ValueError, TypeError):
                daskcoreset.build(rows, y, size=60, method=name, random_state=0)


def say(*words: str) -> None:
    """Print, past what silences the tests."""
    print(*words, sep="\n    ", file=sys.__stdout__, flush=True)


# --- the table -------------------------------------------------------------------------------


def write_table(results: dict[str, list[str]]) -> str:
    """Write what lived, with the reasons and the note that were given before."""
    before = common.read(NAME) if (common.RESULTS / f"{NAME}.json").exists() else {}
    known = before.get("lived", [])
    reasons = {(one["module"], one["function"], one["change"]): one["why"] for one in known}
    lived, counts = [], {}
    for key, (what, _, line) in sorted(results.items()):
        module, function, change = key.removeprefix("daskcoreset.").split(":", 2)
        total = counts.setdefault(module.rpartition(".")[0], [0, 0])
        total[0] += 1
        total[1] += what == "killed"
        if what != "killed":
            one = {"module": module, "function": function, "change": change.replace("|", "¦")}
            lived.append({**one, "why": reasons.get(tuple(one.values()), f"line {line}")})
    data = {
        "stamp": common.stamp(),
        "note": before.get("note", ""),
        "counts": counts,
        "lived": lived,
        "verdicts": results,
    }
    common.write(NAME, data, common.RESULTS, report)
    return summary_of(data)


def summary_of(data: dict[str, Any]) -> str:
    """Say how many were killed."""
    n, killed = (sum(total[i] for total in data["counts"].values()) for i in (0, 1))
    others = n - sum(one["why"].startswith("equivalent") for one in data["lived"])
    return (
        f"{killed} of {n} mutants are killed, {100 * killed / n:.1f} %; of the {others} that are "
        f"not equivalent to the program, {100 * killed / others:.1f} %."
    )


def report(data: dict[str, Any]) -> str:
    """Return the tables of the results."""
    counts = [(folder, *total) for folder, total in sorted(data["counts"].items())]
    lived = [
        (one["module"], one["function"], f"`{one['change']}`", one["why"]) for one in data["lived"]
    ]
    lines = [
        "# Mutants",
        "",
        "One operator or number of the mathematics is changed; the tests should notice "
        f"(`benchmarks/mutation.py`). {summary_of(data)} {data['note']}".strip(),
        "",
        *common.table(("modules", "mutants", "killed"), counts),
        "",
        "What lived:",
        "",
        *common.table(("module", "function", "change", "why it lives"), lived),
        "",
        common.stamped(data),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Read the options, make mutants, run the tests, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="parts of names of files")
    parser.add_argument(
        "--state", type=Path, help="a file of results, to go on with, and notes beside it"
    )
    parser.add_argument("--list", action="store_true", help="count the mutants and stop")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    dask.config.set(scheduler="synchronous")  # calls are noted in this thread only
    results: dict[str, list[str]] = {}
    if given.state is not None and given.state.exists():
        lines = given.state.read_text().splitlines()
        made = {
            mutant.name
            for modules, _, count in GROUPS.values()
            for file in sources_of(modules)
            for mutant in mutants_of(file, count)
        }  # of the sources as they are now; others are no longer made
        results = {key: rest for key, *rest in map(json.loads, lines) if key in made}

    def keep(mutant: Mutant, what: str, by: str) -> None:
        results[mutant.name] = [what, by, str(mutant.line)]
        if given.state is not None:
            with given.state.open("a") as file:
                file.write(json.dumps([mutant.name, *results[mutant.name]]) + "\n")
        say(f"{what:10} {mutant.name}  [{by}]")

    if given.list:
        for name, (modules, _, count) in GROUPS.items():
            for file in sources_of(modules):
                print(name, file.name, len(mutants_of(file, count)))
        return
    for name in GROUPS:
        run_group(name, given.only, results, keep, given.state)
    print(write_table(results))


if __name__ == "__main__":
    main()
