"""The frozen table: errors, reads, bytes, answers and ratios of time that no rewrite makes worse.

``record`` measures the rows of this checkout and keeps them in ``frozen.json``, kind by
kind, with the commit. A kind that was recorded with the same package stays as it is. ``compare``
measures the rows again and compares them with the recording. With a commit, worktrees and
environments of it and of the recorded commit are made, and seconds of calls are compared in turns.
The exit status is 1 if a row exceeds its tolerance or is missing.

    DASKCORESET_DATA=... python benchmarks/frozen.py record
    DASKCORESET_DATA=... python benchmarks/frozen.py record --rows quality kmeans
    DASKCORESET_DATA=... python benchmarks/frozen.py compare
    DASKCORESET_DATA=... python benchmarks/frozen.py compare HEAD

Rows are measured in `frozen_rows.py`, by the calls of `frozen_calls.py` of the same commit. Rows of
errors are means over seeds. They exceed a tolerance if they are above it by more than chance, by
the logarithms of the ratios of the seeds (one-sided, 99 %; for means over rows 95 %).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import venv
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np
from scipy import stats

NAME = "frozen"
ROOT = Path(__file__).parents[1]
FILES = ("daskcoreset", "benchmarks/frozen_rows.py", "benchmarks/frozen_calls.py")
TURNS = 11
SECONDS = 1.10
"""Most that processor seconds of a call may grow to."""

DROPPED: dict[str, str] = {
    f"margin: made up, {case}, violators block": 'violators="block"'
    for case in (
        "base", "epsilon = 0.01", "epsilon = 0.5", "n = 5000", "d = 10", "gap = 0.01", "gap = 1"
    )
} | {
    f"unbiased: SVM, systematic, {way}": "SVM has two variants"
    for way in ("one read", "independent draws", "merge and reduce")
}  # fmt: skip
"""Rows that are gone, or beginnings of their names, by the features that were dropped."""


@dataclass(frozen=True)
class Finding:
    """What became of a row."""

    row: str
    exceeds: bool
    before: str
    now: str
    limit: str

    def __str__(self) -> str:
        verdict = "EXCEEDS" if self.exceeds else "within "
        return f"{verdict}  {self.row}: {self.before} before, {self.now} now, {self.limit}"


Rule = Callable[[dict[str, Any], dict[str, Any]], Iterator[Finding]]
"""``rule(before, now)`` compares the rows of a kind that both have."""


# --- rules -----------------------------------------------------------------------------------


def beyond(gaps: np.ndarray, level: float) -> bool:
    """Tell whether the mean of gaps is above zero by more than chance."""
    error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
    chance = float(stats.t.ppf(level, len(gaps) - 1)) * error if error > 0 else 1e-12
    return bool(gaps.mean() > chance)


def grown(before: np.ndarray, now: np.ndarray, most: float, floor: float, level: float) -> bool:
    """Tell whether errors by seed have grown by more than a factor, and by more than chance."""
    if now.mean() <= most * max(before.mean(), floor):
        return False
    old, new = np.maximum(before, floor), np.maximum(now, floor)
    if len(old) != len(new):  # another number of seeds
        return True
    return beyond(np.log(new / old) - np.log(most), level)


def ratios(most: float, mean: float | None = None, floor: float = 0.0) -> Rule:
    """Limit what errors grow by: those of each row, and their mean over the rows."""

    def rule(before: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
        shares = []
        for row, errors in before.items():
            old, new = np.array(errors), np.array(now[row])
            exceeds = grown(old, new, most, floor, 0.99)
            texts = (f"{100 * old.mean():.4g} %", f"{100 * new.mean():.4g} %")
            yield Finding(row, exceeds, *texts, f"at most {most} times")
            unit = max(float(old.mean()), floor)
            if len(old) == len(new):
                shares.append((np.maximum(old, floor) / unit, np.maximum(new, floor) / unit))
        if mean is not None and shares:
            n = min(len(old) for old, _ in shares)
            old, new = (np.mean([pair[i][:n] for pair in shares], axis=0) for i in (0, 1))
            exceeds = grown(old, new, mean, 0.0, 0.95)
            texts = ("1", f"{new.mean() / old.mean():.4f}")
            yield Finding("mean of the rows", exceeds, *texts, f"at most {mean} times")

    return rule


def points(most: float, sign: int = 1) -> Rule:
    """Limit what shares grow by, or with a sign of -1 what they fall by."""

    def rule(before: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
        for row, errors in before.items():
            old, new = np.array(errors), np.array(now[row])
            gap = sign * (float(new.mean()) - float(old.mean())) - most
            by_seed = sign * (new - old) - most if len(new) == len(old) else np.array([gap])
            exceeds = gap > 0 and beyond(by_seed, 0.99)
            texts = (f"{100 * old.mean():.2f} %", f"{100 * new.mean():.2f} %")
            way = "above" if sign > 0 else "below"
            yield Finding(row, exceeds, *texts, f"at most {100 * most:g} points {way}")

    return rule


def answers(before: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
    """Compare answers and certificates to 1e-9, and reads."""
    for row, one in before.items():
        other, gaps = now[row], {}
        for name, value in one["answers"].items():
            old, new = np.array(value), np.array(other["answers"].get(name, []))
            scale = max(1.0, float(np.abs(old).max(initial=0.0)))
            same = old.shape == new.shape
            gaps[name] = float(np.abs(new - old).max(initial=0.0)) / scale if same else np.inf
        worst = max(gaps, key=lambda name: gaps[name])
        exceeds = not gaps[worst] <= 1e-9
        yield Finding(f"{row}, {worst}", exceeds, "0", f"{gaps[worst]:.3g}", "equal to 1e-9")
        reads = (one["reads"], other["reads"])
        exceeds = reads[1] > reads[0] + 1e-9
        yield Finding(f"{row}, reads", exceeds, *(f"{x:.4g}" for x in reads), "at most as many")


def no_worse(before: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
    """Compare mixtures on coresets with those on uniform rows, in nats a row."""
    for row in before:
        losses = [np.subtract(one[row]["uniform"], one[row]["mixture"]) for one in (before, now)]
        texts = (f"{-gap.mean():.4f}" for gap in losses)
        exceeds = beyond(losses[1], 0.99)
        yield Finding(row, exceeds, *texts, "nats over uniform rows, not below by more than chance")


def never_worse(before: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
    """Compare models on coresets with those on uniform rows, by cell and by set.

    If the method is not made for the loss, errors may only not grow.
    """
    sets: dict[str, list[str]] = {}
    others = {row: before[row]["own"] for row in before if ", squared_hinge, " in row}
    yield from ratios(1.2)(others, {row: now[row]["own"] for row in others})
    for row in before:
        if row in others:
            continue
        sets.setdefault(row.rpartition(", ")[0], []).append(row)
        gaps = np.subtract(now[row]["own"], now[row]["uniform"])
        exceeds = bool(gaps.mean() > 2.0 * gaps.std(ddof=1) / np.sqrt(len(gaps)))
        old, own, uniform = (
            f"{100 * np.mean(errors):.4g} %"
            for errors in (before[row]["own"], now[row]["own"], now[row]["uniform"])
        )
        limit = f"not above uniform rows, {uniform}, by two standard errors"
        yield Finding(row, exceeds, old, own, limit)
    for name, rows in sets.items():
        own, other = (float(np.mean([now[row][way] for row in rows])) for way in ("own", "uniform"))
        limit = f"at most 1.05 times uniform rows, {100 * other:.4g} %"
        yield Finding(f"{name}, mean", own > 1.05 * other, "", f"{100 * own:.4g} %", limit)


def small_z(before: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
    """Limit the largest |z|."""
    for row in before:
        worst = [float(np.abs(one[row]).max()) for one in (before, now)]
        yield Finding(row, not worst[1] < 4, *(f"{z:.2f}" for z in worst), "|z| under 4")


def held(before: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
    """Limit the share of intervals that miss the truth, over all rows."""
    shares = [
        sum(one[row]["held"] for row in before) / sum(one[row]["asked"] for row in before)
        for one in (before, now)
    ]
    texts = (f"{100 * share:.2f} %" for share in shares)
    yield Finding("all intervals", not shares[1] >= 0.93, *texts, "93 % or more hold the truth")


def together(before: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
    """Compare reads of several coresets with those of the dearest."""
    for row in before:
        reads = now[row]
        exceeds = reads["together"] > reads["dearest"] + 1e-9
        texts = (f"{one[row]['together']:.3g}" for one in (before, now))
        yield Finding(row, exceeds, *texts, f"at most {reads['dearest']:.3g}, those of the dearest")


def limits(most: dict[str, float], slack: float = 1.0) -> Rule:
    """Limit the median of each row, or what was recorded where that is above the limit."""

    def rule(before: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
        for row in before:
            old, new = (float(np.median(one[row])) for one in (before, now))
            limit = max(most[row], slack * old)
            yield Finding(row, new > limit, f"{old:.4g}", f"{new:.4g}", f"at most {limit:.4g}")

    return rule


def flat(before: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
    """Compare peaks of memory of few and of many rows."""
    for row in before:
        low, high = now[row].values()
        limit = 1.25 * low + 2**25
        peaks = (f"{list(one[row].values())[1] / 2**20:.0f} MiB" for one in (before, now))
        yield Finding(row, high > limit, *peaks, f"at most {limit / 2**20:.0f} MiB")


def noted(before: dict[str, Any], now: dict[str, Any]) -> Iterator[Finding]:
    """Count digests that differ; other bits alone exceed no tolerance."""
    differ = [row for row in before if before[row] != now[row]]
    words = f"{len(differ)} of {len(before)} differ"
    yield Finding(", ".join(differ) or "all", exceeds=False, before="", now=words, limit="a note")


RULES: dict[str, Rule] = {
    "digests": noted,
    "margin": answers,
    "build_many": together,
    "refresh": limits({"Zarr array": 0.011}),
    "unbiased": small_z,
    "quality": ratios(1.10, mean=1.03, floor=0.005),
    "kmeans": points(0.005),
    "table1": ratios(1.10, mean=1.03, floor=0.005),
    "svm_offline": ratios(1.15, mean=1.05, floor=1e-5),
    "logistic": ratios(1.2, floor=1e-5),
    "never_worse": never_worse,
    "table2": points(0.003, sign=-1),
    "mixtures": no_worse,
    "audit": held,
    "stored": limits({"one read": 1.10, "two reads": 2.1}, slack=1.10),
    "in_memory": limits({"1,000,000 rows": 1.3, "100,000 rows": 3.0, "10,000 rows": 5.0}, 1.10),
    "peak": flat,
}
TIMED = ("stored", "in_memory", "peak")


def compared(before: dict[str, Any], now: dict[str, Any], kinds: list[str]) -> list[Finding]:
    """Compare kinds of rows of two recordings."""
    found = []
    for kind in kinds:
        if kind not in before["kinds"]:
            found.append(Finding(kind, True, "nothing", "", "has to be recorded first"))
            continue
        rows = before["kinds"][kind]["rows"]
        others = now["kinds"].get(kind, {}).get("rows", {})
        gone = [row for row in rows if row not in others]
        for row in gone:
            why = next(
                (word for key, word in DROPPED.items() if f"{kind}: {row}".startswith(key)), ""
            )
            found.append(
                Finding(f"{kind}: {row}", not why, "there", "missing", why or "no row goes")
            )
        both = {row: rows[row] for row in rows if row not in gone}
        if both:
            of_kind = RULES[kind](both, {row: others[row] for row in both})
            found += [
                Finding(f"{kind}: {one.row}", one.exceeds, one.before, one.now, one.limit)
                for one in of_kind
            ]
    return found


# --- recordings ------------------------------------------------------------------------------


def git(*words: str, folder: Path = ROOT) -> str:
    """Return what git prints."""
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def package() -> str:
    """Return what tells the sources of the rows: digests of git, or nothing if they changed."""
    if git("status", "--porcelain", "--", *FILES):
        return ""
    return " ".join(git("rev-parse", f"HEAD:{file}")[:12] for file in FILES)


def measured(kinds: list[str], place: Path) -> dict[str, Any]:
    """Measure kinds of rows that the file does not have of this package, and write them to it."""
    rows = importlib.import_module("frozen_rows")
    data: dict[str, Any] = {"kinds": {}}
    if place.exists():
        data = json.loads(place.read_text())
    sources = package()
    for kind in kinds:
        known = data["kinds"].get(kind)
        if known and sources and known["sources"] == sources:
            continue
        with warnings.catch_warnings(), common.timed() as clock:
            warnings.simplefilter("ignore")
            found = rows.KINDS[kind]()
        data["kinds"][kind] = {
            "stamp": common.stamp(seconds=round(clock.cpu, 1)), "sources": sources, "rows": found,
        }  # fmt: skip
        print(f"{kind}: {len(found)} rows, {clock.cpu:.0f} s of the processor", flush=True)
        write(data, place)
    return data


def write(data: dict[str, Any], place: Path) -> None:
    """Write a recording, the kinds in their order, and the list of the cases of margins."""
    data["kinds"] = {kind: data["kinds"][kind] for kind in RULES if kind in data["kinds"]}
    data["commits"] = {kind: one["stamp"]["commit"] for kind, one in data["kinds"].items()}
    data["margin cases"] = list(data["kinds"].get("margin", {}).get("rows", {}))
    new = place.with_suffix(".new")
    new.write_text(json.dumps(data, indent=0) + "\n")
    new.replace(place)


def recorded_commit(data: dict[str, Any]) -> str:
    """Return the commit of a recording: that of the most kinds."""
    commits = list(data["commits"].values())
    return str(max(commits, key=commits.count)).removesuffix("+")


# --- commits ---------------------------------------------------------------------------------


def checkout(commit: str, folder: Path) -> Path:
    """Return the worktree of a commit, with an environment of its own in `.frozen`."""
    digest = git("rev-parse", "--short=12", f"{commit}^{{commit}}")
    tree = folder / digest
    if not tree.exists():
        git("worktree", "add", "--detach", str(tree), digest)
    if not (tree / "benchmarks/frozen_rows.py").exists():
        raise SystemExit(f"commit {digest} has no benchmarks/frozen_rows.py; name a later one.")
    if not (tree / ".frozen/ready").exists():
        venv.create(tree / ".frozen", with_pip=True, clear=True)
        pip = [str(python_of(tree)), "-m", "pip", "install", "-qq"]
        subprocess.run([*pip, "--editable", f"{tree}[distributed,plot,dataframe]"], check=True)
        (tree / ".frozen/ready").touch()
    return tree


def python_of(tree: Path) -> Path:
    """Return the interpreter of a worktree."""
    return tree / ".frozen/bin/python"


def alone() -> dict[str, str]:
    """Return the environment of a process that imports the library of its interpreter."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def rows_of(tree: Path, kinds: list[str]) -> dict[str, Any]:
    """Measure rows by the programs of a worktree."""
    place = tree / ".frozen/frozen.json"
    program = str(tree / "benchmarks/frozen.py")
    words = [str(python_of(tree)), program, "record", "--out", str(place), "--rows", *kinds]
    subprocess.run(words, check=True, env=alone())
    found: dict[str, Any] = json.loads(place.read_text())
    return found


class Child:
    """A process of a worktree that takes turns."""

    def __init__(self, tree: Path, folder: Path) -> None:
        program = str(tree / "benchmarks/frozen_rows.py")
        self.process = subprocess.Popen(
            [str(python_of(tree)), program, "--turns", str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=alone(),
        )  # fmt: skip

    def seconds(self, call: str) -> float:
        """Return processor seconds of a call."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(call, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def end(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def judged_seconds(times: dict[str, list[tuple[float, float]]]) -> Iterator[Finding]:
    """Limit the median ratio of seconds, if three quarters of the turns are above the limit too."""
    for call, pairs in times.items():
        found = [now / before for before, now in pairs]
        exceeds = median(found) > SECONDS and float(np.quantile(found, 0.25)) > SECONDS
        before, now = (f"{median(pair[i] for pair in pairs):.3f} s" for i in (0, 1))
        limit = f"{median(found):.3f} times, at most {SECONDS}"
        yield Finding(f"seconds: {call}", exceeds, before, now, limit)


def seconds_of(trees: list[Path]) -> dict[str, list[tuple[float, float]]]:
    """Return seconds of every call by both worktrees, turn by turn."""
    names = list(importlib.import_module("frozen_rows").seconds_jobs(ROOT))
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        importlib.import_module("frozen_rows").write_seconds_data(Path(folder))
        children = [Child(tree, Path(folder)) for tree in trees]
        for name, found in times.items():
            for turn in range(TURNS + 1):
                order = children if turn % 2 else children[::-1]
                pair = {child: child.seconds(name) for child in order}
                if turn:  # the first one compiles
                    found.append((pair[children[0]], pair[children[1]]))
        for child in children:
            child.end()
    return times


# --- the program -----------------------------------------------------------------------------


def main(words: list[str] | None = None) -> int:
    """Record, or compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("task", choices=["record", "compare"])
    parser.add_argument("commit", nargs="?", help="to compare; this checkout if none is given")
    parser.add_argument("--rows", nargs="+", choices=[*RULES, "seconds"], help="kinds of rows")
    parser.add_argument("--errors", action="store_true", help="leave out times and memory")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "daskcoreset-frozen",
        help="where worktrees and environments are made, and kept",
    )  # fmt: skip
    given = parser.parse_args(words)
    asked = given.rows or [*RULES, "seconds"]
    kinds = [kind for kind in asked if kind in RULES and not (given.errors and kind in TIMED)]
    if given.task == "record":
        measured(kinds, given.out)
        return 0
    if not given.out.exists():
        raise SystemExit(f"{given.out} does not exist; record first.")
    before = json.loads(given.out.read_text())
    if given.commit is None:
        with tempfile.TemporaryDirectory() as folder:
            now = measured(kinds, Path(folder) / "now.json")
        found = compared(before, now, kinds)
    else:
        given.folder.mkdir(parents=True, exist_ok=True)
        tree = checkout(given.commit, given.folder)
        found = compared(before, rows_of(tree, kinds), kinds) if kinds else []
        if "seconds" in asked and not given.errors:
            old = checkout(recorded_commit(before), given.folder)
            found += judged_seconds(seconds_of([old, tree]))
    for one in found:
        print(one)
    worse = sum(one.exceeds for one in found)
    print(f"{len(found)} rows, {worse} of them exceed a tolerance or are missing")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
