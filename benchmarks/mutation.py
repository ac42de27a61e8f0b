"""Mutants: one operator or number of the package is changed, and the tests should notice.

``python benchmarks/mutation.py`` makes mutants of all folders, those of `PARTS`. Each is judged by
the tests of ``tests/acceptance`` alone. Those that live, and only these, are judged by the other
tests of their folder. Verdicts are kept in ``benchmarks/mutation.json`` by the source of the
function, so that a run goes on from the last one: only functions that changed are judged again,
and ``--list`` prints the table. The field ``why`` of the JSON file is written by hand, and kept:
the reason of a mutant that only other tests kill, or that lives. A reason that begins with
"equivalent" is for a mutant that no result tells from the program.

    python benchmarks/mutation.py --list                # how many mutants, and how many are judged
    python benchmarks/mutation.py --parts svm margin    # some parts
    python benchmarks/mutation.py --parts compiled      # loops, which are compiled once more
    python benchmarks/mutation.py --survivors           # judge what lived once more
    python benchmarks/mutation.py --suite acceptance    # leave the other tests for later

All is imported once. Every test is run once to see which functions it calls. Then each mutant is a
fork in which one function gets the changed code, and those tests run that call the function, the
fastest first, until one fails. A mutant that takes three times as long is dead, too. Messages,
assertions and what is called at import are left out. What a test calls in another process or thread
is not seen. A fork whose loop is changed compiles it, and the loops that call it. The tests that
call a function with such a loop in it judge the mutant.
"""

from __future__ import annotations

import argparse
import ast
import cProfile
import hashlib
import importlib
import itertools
import json
import os
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
from types import CodeType, FunctionType, ModuleType
from typing import Any

import common
import dask
import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_suffix(".json")
"""Verdicts of all runs."""

CALLS = common.RESULTS / "local/mutation"
"""Where it is kept what tests call; git ignores it."""

PARTS: dict[str, tuple[tuple[str, ...], int]] = {
    "sampling": (("core/sampling", "core/raking", "constructions/sampling"), 30),
    "moments": (("core/moments", "core/linalg"), 14),
    "tree": (("constructions/tree",), 26),
    "svm": (("sensitivities/svm",), 20),
    "margin": (("constructions/margin", "solvers/hard_margin", "estimators/margin"), 26),
    "coverage": (("constructions/coverage",), 8),
    "constructions": (("constructions",), 4),
    "sensitivities": (("sensitivities",), 20),
    "core": (("core",), 14),
    "storage": (("storage",), 6),
    "inputs": (("inputs",), 18),
    "execution": (("execution",), 10),
    "objectives": (("objectives",), 8),
    "solvers": (("solvers",), 12),
    "estimators": (("estimators",), 16),
    "metrics": (("metrics",), 8),
    "cli": (("cli",), 3),
    "else": (("",), 8),
}
"""Beginnings of paths in the package, and mutants of a part; a file is in the first that fits."""

COMPILED = 30
"""Mutants of compiled loops, which are a part of their own."""

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


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, what it says, and the code with it."""

    name: str
    part: str
    path: str
    function: str
    line: int
    change: str
    code: CodeType

    @property
    def module(self) -> str:
        """The module of the function."""
        return ".".join(Path(self.path).with_suffix("").parts)


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


def functions_of(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef, bool]]:
    """Yield the functions and methods of a module, and whether they are compiled."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions_of(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            decorators = " ".join(ast.unparse(one) for one in node.decorator_list)
            words = f"{decorators} {node.name}"
            if not any(word in words for word in ("overload", "abstract", "intrinsic", "test_")):
                yield prefix + node.name, node, "jit" in decorators or "part(" in decorators


def code_of(code: CodeType, function: str, line: int) -> CodeType:
    """Find the code of a function in that of its module."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_qualname == function and abs(inner.co_firstlineno - line) < 8:
                return inner
            if function.startswith(inner.co_qualname + "."):
                return code_of(inner, function, line)
    raise LookupError(function)


@dataclass
class Site:
    """A place where a function can be changed."""

    name: str
    part: str
    file: Path
    tree: ast.Module
    function: str
    node: ast.FunctionDef
    inner: ast.AST
    edit: tuple[Any, Any, Any]


def part_of(file: Path) -> str:
    """Return the part of a file."""
    path = str(file.relative_to(ROOT / "daskcoreset"))
    return next(part for part, (starts, _) in PARTS.items() if path.startswith(starts))


def sites_of(file: Path) -> Iterator[Site]:
    """Yield all places of a file, each named by the source of its function and its number there."""
    tree = ast.parse(file.read_text())
    for function, node, compiled in functions_of(tree):
        source = ast.unparse(node)
        part = "compiled" if compiled else part_of(file)
        edited = ((inner, edit) for inner in nodes_of(node) for edit in edits(inner))
        for number, (inner, edit) in enumerate(edited):
            name = hashlib.sha256(f"{file.stem} {function} {number} {source}".encode()).hexdigest()[
                :16
            ]
            yield Site(name, part, file, tree, function, node, inner, edit)


def all_mutants() -> list[Mutant]:
    """Make the mutants of all parts: of each the places whose names come first."""
    by_part: dict[str, list[Site]] = {}
    for file in sorted((ROOT / "daskcoreset").rglob("*.py")):
        for site in sites_of(file):
            by_part.setdefault(site.part, []).append(site)
    found = []
    for part, sites in by_part.items():
        count = COMPILED if part == "compiled" else PARTS[part][1]
        made = (mutant_of(site) for site in sorted(sites, key=lambda site: site.name))
        chosen = []
        for one in made:
            if len(chosen) == count:
                break
            if one is not None:
                chosen.append(one)
        found += chosen
    return found


def mutant_of(site: Site) -> Mutant | None:
    """Make a mutant, or none if the change is of an assertion."""
    owner, place, new = site.edit
    statement = _statement(site.node, site.inner)
    before, old = ast.unparse(statement), _get(owner, place)
    _set(owner, place, new)
    try:
        text = _difference(before, ast.unparse(statement))
        if text.endswith("strict=False)") or "strict=False))" in text:
            return None
        code = compile(ast.fix_missing_locations(site.tree), str(site.file), "exec")
        line = getattr(site.inner, "lineno", site.node.lineno)
        path = str(site.file.relative_to(ROOT))
        own = code_of(code, site.function, site.node.lineno)
        return Mutant(site.name, site.part, path, site.function, line, text, own)
    finally:
        _set(owner, place, old)


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

    def __init__(self, work: Callable[[dict[str, pytest.Item]], None], slow: float) -> None:
        self.work, self.slow = work, slow
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
        settings.register_profile("mutants", few, deadline=None)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Do what is to be done with the tests."""
        self.work({item.nodeid: item for item in session.items})
        return True

    def run(self, items: list[pytest.Item]) -> None:
        """Run tests up to the first that fails; all of them while calls are noted."""
        for item, following in itertools.zip_longest(items, items[1:]):
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
        signal.setitimer(signal.ITIMER_PROF, self.slow)
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
    given = ["-q", "-s", "-n", "0", "-m", marks, "-p", "no:cacheprovider"]
    given += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what is imported already
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
        signal.alarm(int(20 * seconds))  # what waits forever takes no seconds of the processor
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
    while not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        names = ("__wrapped__", "fget", "func", "__func__", "py_func")
        found = next(getattr(found, name) for name in names if hasattr(found, name))
    return found


def verdict(
    mutant: Mutant, called: set[str], watch: Watch, items: dict[str, pytest.Item], limit: float
) -> tuple[str, str]:
    """Say whether a mutant is killed, and by which test; tests run up to a limit of seconds."""
    if not called:
        return "not called", ""
    taken, chosen = 0.0, []
    for name in sorted(called, key=lambda name: watch.times[name] / (1 + 4 * watch.kills[name])):
        if not chosen or taken + watch.times[name] < limit:
            taken += watch.times[name]
            chosen.append(name)

    def work() -> list[str]:
        changed = function_of(mutant.module, mutant.function)
        changed.__code__ = mutant.code
        if mutant.part == "compiled":
            for loop in loops_with(changed):
                compile_anew(loop)
        watch.run([items[name] for name in chosen])
        return watch.failed

    failed = forked(work, (60 if mutant.part == "compiled" else 5) + 3 * taken)
    if failed is None:
        return "killed", "time or memory"
    if failed:
        watch.kills[failed[0]] += 1
        return "killed", failed[0]
    return "lived", ""


# --- loops -----------------------------------------------------------------------------------


def loops_with(changed: FunctionType) -> list[Any]:
    """Return the loops that are, or call, a function."""
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in sys.modules.items() if is_own(name)]
    values = [value for module in modules for value in vars(module).values()]
    loops = {id(one): one for one in values if isinstance(one, Dispatcher)}
    parts = {id(one): one for one in values if isinstance(one, FunctionType)}
    bodies = {key: loop.py_func for key, loop in loops.items()} | parts
    due = {key for key, body in bodies.items() if body is changed}
    grown = True
    while grown:
        callers = {key for key, body in bodies.items() if due & set(map(id, named_by(body)))}
        grown = not callers <= due
        due |= callers
    return [loops[key] for key in due if key in loops]


def is_own(module: str) -> bool:
    """Tell whether a module is of the package."""
    return module.partition(".")[0] == "daskcoreset"


def named_by(function: FunctionType) -> list[Any]:
    """Return what a function finds by its global names and in its closure."""
    spaces = function.__globals__
    found = [spaces[name] for name in function.__code__.co_names if name in spaces]
    modules = [one for one in found if isinstance(one, ModuleType) and is_own(one.__name__)]
    names = function.__code__.co_names
    found += [vars(one)[name] for one in modules for name in names if name in vars(one)]
    return found + [cell.cell_contents for cell in function.__closure__ or ()]


def compile_anew(loop: Any) -> None:
    """Forget the machine code of a loop in this process, and keep what is on the disk."""
    from numba.core.caching import NullCache

    loop._make_finalizer()()  # noqa: SLF001 - as `recompile` does, which clears the disk too
    loop._reset_overloads()  # noqa: SLF001
    loop._cache = NullCache()  # noqa: SLF001


def callers_of(mutant: Mutant) -> set[tuple[str, str]]:
    """Return the functions that a test calls if it runs what a mutant changes."""
    if mutant.part != "compiled":
        return {(mutant.path, mutant.code.co_qualname)}
    loops = loops_with(function_of(mutant.module, mutant.function))
    names = {loop.py_func.__name__ for loop in loops}
    found = set()
    for file in sorted((ROOT / "daskcoreset").rglob("*.py")):
        codes = [compile(file.read_text(), str(file), "exec")]
        while codes:
            code = codes.pop()
            codes += [one for one in code.co_consts if isinstance(one, CodeType)]
            if names & set(code.co_names):
                found.add((str(file.relative_to(ROOT)), code.co_qualname))
    return found


def note_calls(
    file: Path, watch: Watch, items: dict[str, pytest.Item]
) -> dict[tuple[str, str], set[str]]:
    """Note what the tests of a file call, and their times; those that fail anyway are left out."""
    name = str(file.relative_to(ROOT))
    own = [item for test, item in items.items() if test.startswith(f"{name}::")]
    digest = hashlib.sha256(file.read_bytes() + f"{name} {watch.slow}".encode())
    kept = CALLS / f"{digest.hexdigest()[:20]}.json"
    if not kept.exists():

        def work() -> Any:
            watch.noting = True
            watch.run(own)
            called = [
                [str(Path(key[0]).relative_to(ROOT)), key[1], tests]
                for key, tests in watch.calls.items()
            ]
            return called, watch.times, watch.failed

        found = forked(work, 3600)
        assert found is not None, f"the tests did not end: {name}"
        CALLS.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found))
        if found[2]:
            say("left out, slow or failing without any change:", *found[2])
    calls, times, failed = json.loads(kept.read_text())
    watch.times |= times
    out = {*failed, *(test for test in times if "schedulers" in test)}  # no pools in forks
    return {
        (source, function): {test for test in tests if test in items} - out
        for source, function, tests in calls
    }


def judge(suite: str, mutants: list[Mutant], files: list[Path], keep: Any, limit: float) -> None:
    """Judge mutants by a suite of tests."""

    def work(items: dict[str, pytest.Item]) -> None:
        forked(warm, 900)  # here, loops come from the cache, and are compiled for no mutant
        warm()
        tests_of: dict[tuple[str, str], set[str]] = {}
        for file in files:
            for function, callers in note_calls(file, watch, items).items():
                tests_of.setdefault(function, set()).update(callers)
        for mutant in mutants:
            called = set().union(*(tests_of.get(one, set()) for one in callers_of(mutant)))
            keep(suite, mutant, *verdict(mutant, called, watch, items, limit))

    watch = Watch(work, slow=limit / 2)
    if mutants and files:
        with_tests(files, watch)


def acceptance_files() -> list[Path]:
    """Return the acceptance tests but those of clusters, which call in other processes."""
    files = sorted((ROOT / "tests/acceptance").rglob("test_*.py"))
    return [file for file in files if file.parent.name != "cluster"]


def others_of(mutant: Mutant) -> Path:
    """Return the folder of the tests that are about the folder of a mutant."""
    folder = ROOT / "tests" / Path(mutant.path).parent.relative_to("daskcoreset")
    while not any(folder.glob("test_*.py")) and folder != ROOT / "tests":
        folder = folder.parent
    return folder


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


class Table:
    """Verdicts by the names of mutants, kept in the file of results."""

    def __init__(self, mutants: list[Mutant]) -> None:
        path = KEPT
        known = json.loads(path.read_text()).get("mutants", {}) if path.exists() else {}
        self.rows: dict[str, dict[str, Any]] = {}
        for one in mutants:
            row = {"acceptance": "", "acceptance by": "", "rest": "", "rest by": "", "why": ""}
            row |= known.get(one.name, {})
            self.rows[one.name] = row | {
                "part": one.part, "module": one.module, "function": one.function,
                "line": one.line, "change": one.change,
            }  # fmt: skip

    def keep(self, suite: str, mutant: Mutant, what: str, by: str) -> None:
        """Keep a verdict, in the file too."""
        row = self.rows[mutant.name]
        row[suite], row[f"{suite} by"] = what, by
        say(f"{suite:10} {what:10} {row['module']}:{row['function']}: {row['change']}  [{by}]")
        self.write()

    def write(self) -> None:
        """Write the verdicts."""
        new = KEPT.with_suffix(".json.new")
        new.write_text(json.dumps(self.data(), indent=0) + "\n")
        new.replace(KEPT)

    def data(self) -> dict[str, Any]:
        """Return the verdicts, and the run."""
        return {"stamp": common.stamp(), "mutants": dict(sorted(self.rows.items()))}


def equivalent(row: dict[str, Any]) -> bool:
    """Tell whether a mutant is known to be the same program."""
    return str(row["why"]).startswith("equivalent")


def summary_of(rows: list[dict[str, Any]]) -> str:
    """Say how many were killed."""
    judged = [row for row in rows if row["acceptance"]]
    others = [row for row in judged if not equivalent(row)]
    killed = [row for row in others if row["acceptance"] == "killed"]
    rest = [row for row in others if row["rest"] == "killed"]
    share = 100 * len(killed) / max(1, len(others))
    asked = [row for row in others if row["acceptance"] != "killed" and row["rest"]]
    return (
        f"{len(judged)} of {len(rows)} mutants are judged, and {len(judged) - len(others)} of them "
        f"are equivalent to the program. Of the other {len(others)} the acceptance tests alone "
        f"kill {len(killed)}, {share:.1f} %. The other tests ran on {len(asked)} of the survivors, "
        f"and kill {len(rest)}."
    )


def report(data: dict[str, Any]) -> str:
    """Return the tables of the results."""
    rows = list(data["mutants"].values())
    counts = []
    for part in [*PARTS, "compiled"]:
        own = [row for row in rows if row["part"] == part]
        judged = [row for row in own if row["acceptance"]]
        by = [sum(row[suite] == "killed" for row in judged) for suite in ("acceptance", "rest")]
        lived = sum(
            row["rest"] in ("lived", "not called") and not equivalent(row) for row in judged
        )
        same = sum(map(equivalent, judged))
        if own:
            counts.append((part, len(own), len(judged), *by, lived, same))
    heads = ("part", "mutants", "judged", "killed by acceptance", "only by others", "live", "same")

    def listed(chosen: Callable[[dict[str, Any]], bool], column: str) -> list[str]:
        found = [
            (
                f"{row['module'].removeprefix('daskcoreset.')}:{row['line']}",
                row["function"],
                "`{}`".format(row["change"].replace("|", "¦")),
                row[column].rpartition("/")[2].replace("|", "¦") if column else row["acceptance"],
                row["why"],
            )
            for row in sorted(rows, key=lambda row: (row["module"], row["line"]))
            if row["acceptance"] in ("lived", "not called") and chosen(row)
        ]
        return common.table(("module", "function", "change", "by", "reason"), found)

    lines = [
        "# Mutants",
        "",
        (
            "One operator or number of the package is changed, and the tests should notice "
            f"(`benchmarks/mutation.py`). {summary_of(rows)}"
        ),
        "",
        *common.table(heads, counts),
        "",
        "Only other tests than those of acceptance kill:",
        "",
        *listed(lambda row: row["rest"] == "killed", "rest by"),
        "",
        "Acceptance tests do not kill, and other tests do not or were not run yet:",
        "",
        *listed(lambda row: row["rest"] != "killed", ""),
        "",
        common.stamped(data),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Read the options, make mutants, run the tests, write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--parts", nargs="+", choices=[*PARTS, "compiled"], help="all by default")
    parser.add_argument("--suite", choices=["acceptance", "rest"], help="both by default")
    parser.add_argument("--most", type=int, help="mutants that are judged in this sitting")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds of tests of a mutant")
    parser.add_argument("--survivors", action="store_true", help="judge what lived once more")
    parser.add_argument("--list", action="store_true", help="count the mutants and stop")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    dask.config.set(scheduler="synchronous")  # calls are noted in this thread only
    mutants = all_mutants()
    table = Table(mutants)
    table.write()
    if given.list:
        print(report(table.data()))
        return
    parts = given.parts or [*PARTS, "compiled"]
    judge_parts(given, parts, mutants, table)
    print(summary_of(list(Table(mutants).rows.values())))


def judge_parts(given: Any, parts: list[str], mutants: list[Mutant], table: Table) -> None:
    """Judge mutants of parts, by acceptance tests and then by others."""
    order = {part: at for at, part in enumerate(parts)}
    own = sorted((one for one in mutants if one.part in order), key=lambda one: order[one.part])
    alive = ("", "lived", "not called")
    again = alive if given.survivors else ("",)
    rows = table.rows
    if given.suite != "rest":
        due = [one for one in own if rows[one.name]["acceptance"] in again]
        files = acceptance_files()
        judge("acceptance", due[: given.most], files, table.keep, given.limit)
    if given.suite != "acceptance":
        due = [
            one
            for one in own
            if rows[one.name]["acceptance"] in alive[1:] and rows[one.name]["rest"] in again
        ]
        due = due[: given.most]
        for folder in sorted({others_of(one) for one in due}):
            files = sorted(
                folder.rglob("test_*.py") if folder.name != "tests" else folder.glob("test_*.py")
            )
            these = [one for one in due if others_of(one) == folder]
            judge("rest", these, files, table.keep, given.limit)


if __name__ == "__main__":
    main()
