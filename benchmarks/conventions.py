"""The tests of scikit-learn and dask-ml, run on the estimators of this package.

``python benchmarks/conventions.py`` takes the test files out of the installed scikit-learn and out
of a checkout of dask-ml (``--dask-ml FOLDER``; without it, ``git clone`` makes one, and pip puts
dask-ml into a temporary folder), puts our classes in place of theirs behind the imports, and runs
them. It counts the tests in which one of our classes was made and writes
``benchmarks/results/conventions.json`` and ``.md``, with every failure and a reason for each
(`REASONS`). Nothing of their files is kept. ``--only k_means`` runs one suite, and keeps what the
results say of the others.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import common
import pytest
import sklearn

from daskcoreset import estimators

NAME = "conventions"

# The release whose code its tests import.
DASK_ML = "2025.1.0"

# Behind the imports of a file: `Twin` is a module in which some names are others.
_TWIN = """
class Twin:
    def __init__(self, module, **names):
        self.__dict__.update(names, module=module)
    def __getattr__(self, name):
        return getattr(self.module, name)
from daskcoreset import estimators as ours
"""


@dataclass(frozen=True)
class Suite:
    """A file of tests, whose classes are ours, and what replaces them."""

    package: str
    path: str
    twins: str
    code: str


SUITES = (
    Suite(
        "scikit-learn",
        "cluster/tests/test_k_means.py",
        "KMeans: CoresetKMeans",
        "KMeans = ours.CoresetKMeans",
    ),
    Suite(
        "scikit-learn",
        "mixture/tests/test_gaussian_mixture.py",
        "GaussianMixture: CoresetGaussianMixture",
        "GaussianMixture = ours.CoresetGaussianMixture",
    ),
    Suite(
        "scikit-learn",
        "svm/tests/test_svm.py",
        "LinearSVC: CoresetSVC",
        "LinearSVC = ours.CoresetSVC\nsvm = Twin(svm, LinearSVC=LinearSVC)",
    ),
    Suite(
        "scikit-learn",
        "linear_model/tests/test_logistic.py",
        "LogisticRegression: CoresetLogisticRegression",
        "LogisticRegression = ours.CoresetLogisticRegression",
    ),
    Suite(
        "dask-ml",
        "tests/test_kmeans.py",
        "KMeans: CoresetKMeans",
        "DKKMeans = ours.CoresetKMeans\n"
        "dask_ml = Twin(dask_ml, cluster=Twin(dask_ml.cluster, KMeans=DKKMeans))",
    ),
    Suite(
        "dask-ml",
        "tests/linear_model/test_glm.py",
        "LogisticRegression: CoresetLogisticRegression",
        # The tests are skipped with a Dask that dask-ml does not run on; ours do.
        "dask_ml._compat.DASK_2025_3_0 = False\n"
        "LogisticRegression = ours.CoresetLogisticRegression\n"
        "dask_ml = Twin(dask_ml, linear_model=Twin(dask_ml.linear_model, "
        "LogisticRegression=LogisticRegression))",
    ),
    Suite(
        "dask-ml",
        "tests/test_partial.py",
        "SGDClassifier: CoresetLogisticRegression, Incremental: CoresetEstimator",
        "SGDClassifier = ours.CoresetLogisticRegression\nIncremental = ours.CoresetEstimator",
    ),
)

# Why a test fails: the first whose pattern is found in "name: message".
REASONS: tuple[tuple[str, str], ...] = (
    (
        r"penalty_deprecated|l1_ratio_(None|non)|(argument|parameter) '(penalty|n_jobs)'",
        "deprecated in scikit-learn, which drops it in 1.10: `l1_ratio` and `C` are the penalty",
    ),
    (
        r"callback",
        "callbacks are those of the solver: ``estimator=LogisticRegression().set_callbacks(...)``",
    ),
    (r"test_large_sparse_matrix", "sparse rows with 64-bit indices are taken, which theirs refuse"),
    (
        r"test_logistic_cv_multinomial_score",
        "hands all parameters of ours to a private function of theirs",
    ),
    (
        r"admm|proximal_grad|gradient_descent|'solver' parameter",
        "solvers are those of scikit-learn, by its names",
    ),
    (
        r"test_multiple_init",
        "five starts end 5e-7 below our default of four, which is within `tol`",
    ),
    (r"(?:argument|Invalid parameter) '", "no such parameter"),
    (r"has no attribute '_|call_count", "a private attribute or method of theirs"),
    (
        r"test_gaussian_mixture_setting_best_params",
        "a component that collapses is an error with a remedy, where theirs goes on",
    ),
    (r"is not fitted", "the same error, with the name of our class"),
    (
        r"precisions_init_diag",
        "the steps of EM are counted otherwise: rows are moved to their mean before them",
    ),
    (r"test_float_precision|test_dtypes", "centers are float64 for float32 data, as documented"),
    (r"Regex pattern did not match", "the same error or warning in other words"),
    (r"coreset_", "has attributes that theirs has not: `coreset_`, `coreset_inertia_`"),
    (r"test_empty_chunks", "an empty chunk of X stays one in the answer"),
    (r"test_dataframe_warns_about_chunks", "a Dask DataFrame is read, which theirs refuses"),
    (r"test_model_coef_dask_numpy", "coef_ has two dimensions as in scikit-learn, theirs has one"),
    (r"test_gridsearch", "the name of a step of a pipeline is that of our class"),
    (
        r"test_dataframes",
        "labels of a Dask DataFrame are a Dask Series with its index, theirs a Dask array",
    ),
    (r"No module named|ImportError", "their own import fails with these versions"),
)


def reason_of(test: str, message: str) -> str:
    """Return why a test fails."""
    for pattern, reason in REASONS:
        if re.search(pattern, f"{test}: {message}", re.DOTALL):
            return reason
    return "?"


class Recorder:
    """Plugin of pytest that notes outcomes, and in which tests our classes were made."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.used = False
        for name in estimators.__all__:
            self._watch(getattr(estimators, name))

    def _watch(self, cls: Any) -> None:
        begin = cls.__init__

        @wraps(begin)  # scikit-learn reads the parameters of it
        def made(model: Any, *args: Any, **kwargs: Any) -> None:
            self.used = True
            begin(model, *args, **kwargs)

        cls.__init__ = made

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Note whether a class of ours is made while a test runs."""
        # A parameter that is one of our classes, or made from one, counts as well.
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        self.used = any("daskcoreset" in type(value).__module__ for value in parameters)
        result = yield
        self.tests[item.nodeid]["ours"] = self.used
        return result

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the worst outcome of set-up, call and end."""
        entry = self.tests.setdefault(report.nodeid, {"outcome": "passed", "message": ""})
        if report.outcome != "passed":
            entry["outcome"] = report.outcome
            crash = getattr(report.longrepr, "reprcrash", None)
            text = str(report.longrepr[2] if crash is None and report.skipped else crash or "")
            entry["message"] = text if crash is None else crash.message


def run_file(path: Path, out: Path, plugins: list[str]) -> None:
    """Run a changed file in this process, and write what happened."""
    recorder = Recorder()
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-o", "addopts=", "--tb=short"]
    options += ["-W", "ignore", *(f"-p{name}" for name in plugins)]
    pytest.main([*options, str(path)], plugins=[recorder])
    out.write_text(json.dumps(recorder.tests))


def changed(source: str, code: str) -> str:
    """Put code behind the imports of a file."""
    imports = [
        node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    lines = source.splitlines()
    end = max(node.end_lineno or 0 for node in imports)
    return "\n".join([*lines[:end], _TWIN, code, *lines[end:]]) + "\n"


def dask_ml_checkout(given: Path | None, folder: Path) -> Path:
    """Return a checkout of dask-ml, whose releases come without their tests."""
    if given is not None:
        return given
    url = "https://github.com/dask/dask-ml"
    command = ["git", "clone", "-q", "--depth", "1", url, str(folder / "clone")]
    subprocess.run(command, check=True)
    return folder / "clone"


def install_dask_ml(folder: Path) -> None:
    """Install dask-ml beside the environment, not into it."""
    packages = [f"dask-ml=={DASK_ML}", "dask-glm", "multipledispatch", "sparse"]
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    subprocess.run([*command, *packages], check=True)


def run_suite(suite: Suite, folder: Path, checkout: Path | None) -> dict[str, Any]:
    """Run one file in a process of its own."""
    environment = dict(os.environ)
    paths = [str(Path(__file__).parents[1]), environment.get("PYTHONPATH", "")]
    plugins = ["sklearn.conftest"]
    root = Path(sklearn.__file__).parent
    if checkout is not None:
        root, plugins = checkout, []
        paths.append(str(folder / "packages"))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    folder = folder / suite.path.replace("/", "_")
    folder.mkdir()
    target, out = folder / Path(suite.path).name, folder / "out.json"
    if checkout is not None:
        shutil.copy(root / "tests/conftest.py", folder)
    target.write_text(changed((root / suite.path).read_text(), suite.code))
    command = [sys.executable, __file__, "--run", str(target), str(out), *plugins]
    subprocess.run(command, env=environment, cwd=folder, check=True)
    tests = {name.partition("::")[2]: entry for name, entry in json.loads(out.read_text()).items()}
    ours = {name: entry for name, entry in tests.items() if entry.pop("ours", False)}
    counts = Counter(entry["outcome"] for entry in ours.values())
    failures = {
        name: entry["message"][:300] for name, entry in ours.items() if entry["outcome"] == "failed"
    }
    return {"tests": len(tests), "ours": len(ours), "counts": counts, "failures": failures}


def grouped(failures: dict[str, str]) -> Iterator[tuple[str, int, str]]:
    """Yield functions that fail, how often, and why."""
    groups: dict[tuple[str, str], int] = defaultdict(int)
    for test, message in failures.items():
        groups[test.partition("[")[0], reason_of(test, message)] += 1
    for (function, reason), count in groups.items():
        yield function, count, reason


def report(data: dict[str, Any]) -> str:
    """Return the Markdown file."""
    rows, lost = [], []
    for suite in SUITES:
        found = data["results"].get(suite.path)
        if found is None:
            continue
        counts = [found["counts"].get(outcome, 0) for outcome in ("passed", "failed", "skipped")]
        file = Path(suite.path).name
        rows.append([suite.package, f"`{file}`", suite.twins, found["ours"], *counts])
        lost += [[f"{suite.package} `{file}`", *line] for line in grouped(found["failures"])]
    reasons: Counter[str] = Counter()
    for *_, count, reason in lost:
        reasons[reason] += count
    lines = [
        "# Tests of scikit-learn and dask-ml on our estimators",
        "",
        "Their own test files with the import replaced (`benchmarks/conventions.py`); counted are",
        f"tests in which a class of ours is made. scikit-learn {data['stamp']['sklearn']},",
        f"dask-ml {data['stamp']['dask_ml']}. {common.stamped(data)}",
        "",
        *common.table(["of", "file", "replaced", "tests", "passed", "failed", "skipped"], rows),
        "",
        "Why tests fail:",
        "",
        *common.table(["failures", "reason"], [[n, why] for why, n in reasons.most_common()]),
        "",
        "Which:",
        "",
        *common.table(["file", "test", "times", "reason"], lost),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run the suites, and write the results."""
    if sys.argv[1:2] == ["--run"]:
        run_file(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
        return
    parser = common.arguments(__doc__)
    parser.add_argument("--only", default="", help="part of the path of a file of tests")
    parser.add_argument("--dask-ml", type=Path, help="a checkout of dask-ml")
    parser.add_argument("--report", action="store_true", help="write the report again, run nothing")
    options = parser.parse_args()
    known = (options.out / f"{NAME}.json").exists()
    data = common.read(NAME, options.out) if known else {"results": {}}
    chosen = [suite for suite in SUITES if options.only in suite.path and not options.report]
    with tempfile.TemporaryDirectory() as scratch:
        folder, checkout = Path(scratch), None
        for suite in chosen:
            if suite.package == "dask-ml" and checkout is None:
                checkout = dask_ml_checkout(options.dask_ml, folder)
                install_dask_ml(folder / "packages")
            found = run_suite(suite, folder, checkout if suite.package == "dask-ml" else None)
            data["results"][suite.path] = found
            common.printed([suite.path, dict(found["counts"])])
    if chosen:
        versions = {"sklearn": sklearn.__version__, "dask_ml": DASK_ML}
        data["stamp"] = common.stamp(**versions)
    common.write(NAME, data, options.out, report)


if __name__ == "__main__":
    main()
