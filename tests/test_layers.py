"""Imports point one way: from the front door down to the mathematics.

Every module has its place in `LAYERS`, and may import from its own layer and from those
below it. Imports inside functions count as well; those for the type checker do not. No
cycle is allowed, not even within a layer.
"""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import daskcoreset

PACKAGE = "daskcoreset"
ROOT = Path(daskcoreset.__file__).parent

# From the bottom to the top. Every file is listed: a new one is placed on purpose.
LAYERS: dict[str, tuple[str, ...]] = {
    "foundation": (
        "blocks",
        "checks",
        "compiled",
        "containers",
        "contents",
        "coreset",
        "drawing",
        "durable",
        "errors",
        "frames",
        "inputs",
        "kernels",
        "layout",
        "opening",
        "operations",
        "parquet",
        "points",
        "provenance",
        "sources",
        "storage",
        "surroundings",
        "typing",
    ),
    "mechanism": (
        "convert",
        "copying",
        "gathering",
        "lazy",
        "moments",
        "passes",
        "progress",
        "randomness",
    ),
    "sampling": (
        "census",
        "classes",
        "clusters",
        "divergences",
        "divergences.base",
        "divergences.positive",
        "divergences.quadratic",
        "divergences.summaries",
        "evidence",
        "linear",
        "objectives",
        "objectives.base",
        "objectives.cells",
        "objectives.centers",
        "objectives.linear",
        "objectives.mixtures",
        "ordering",
        "raking",
        "root",
        "rounds",
        "sampling",
        "sensitivities",
        "sensitivities.base",
        "sensitivities.bregman",
        "sensitivities.bregman_strong",
        "sensitivities.kmeans",
        "sensitivities.rough",
        "sensitivities.lightweight",
        "sensitivities.logistic",
        "sensitivities.mixture",
        "sensitivities.spread",
        "sensitivities.svm",
        "sensitivities.svm_calibration",
        "sensitivities.svm_rough",
        "sensitivities.svm_score",
        "sensitivities.svm_solution",
        "sensitivities.uniform",
        "solvers",
        "solvers.bregman",
        "solvers.bregman_soft",
        "solvers.bregman_start",
        "solvers.mixture",
        "solvers.mixture_criteria",
        "solvers.mixture_density",
        "solvers.mixture_model",
        "solvers.mixture_start",
        "solvers.mixture_steps",
        "strata",
    ),
    "construction": (
        "candidates",
        "coverage",
        "coverage.avm",
        "coverage.cover",
        "coverage.cover_build",
        "coverage.cover_cells",
        "coverage.cover_core",
        "coverage.cover_doubling",
        "coverage.cover_reducer",
        "coverage.cover_result",
        "coverage.cover_search",
        "coverage.csvrg",
        "coverage.cvm",
        "coverage.delta",
        "coverage.descent",
        "coverage.drawn",
        "coverage.isotropic",
        "coverage.loops",
        "coverage.losses",
        "coverage.newton",
        "coverage.newton_steps",
        "coverage.objective",
        "coverage.odm",
        "coverage.outline",
        "coverage.products",
        "coverage.rows",
        "coverage.span",
        "coverage.steps",
        "coverage.threads",
        "datasets",
        "datasets.components",
        "datasets.files",
        "datasets.hard",
        "datasets.instances",
        "datasets.lazy",
        "datasets.mixtures",
        "intervals",
        "margin",
        "margin.active",
        "margin.active_found",
        "margin.answers",
        "margin.asking",
        "margin.batch",
        "margin.bounds",
        "margin.classes",
        "margin.compiled",
        "margin.core",
        "margin.examples",
        "margin.hard",
        "margin.hull",
        "margin.kernelised",
        "margin.excluding",
        "margin.smallest",
        "margin.loop",
        "margin.outlier",
        "margin.build",
        "margin.plot",
        "margin.outlier_search",
        "margin.outlier_result",
        "margin.picked",
        "margin.labelled",
        "margin.multiclass",
        "margin.oracle",
        "margin.pool",
        "margin.pool_reads",
        "margin.problem",
        "margin.queries",
        "margin.run_state",
        "margin.sequence",
        "margin.stored_queries",
        "margin.structured",
        "margin.triple_solver",
        "margin.triples",
        "margin.products",
        "margin.result",
        "margin.separability",
        "margin.subsets",
        "margin.twins",
        "margin.worst",
        "metrics",
        "projection",
        "survey",
        "svm_metrics",
        "svm_total",
        "tree",
        "tree.answers",
        "tree.batch",
        "tree.buckets",
        "tree.changing",
        "tree.feeding",
        "tree.forms",
        "tree.keeping",
        "tree.manifest",
        "tree.nodes",
        "tree.reducer",
        "tree.saved",
        "tree.shape",
        "tree.store",
        "tree.stream",
        "tree.table",
        "tree.versions",
    ),
    "front door": ("asked", "build", "growth", "job", "plan"),
    "users": (
        "",  # daskcoreset/__init__.py, the public names
        "audit",
        "cli",
        "commands",
        "demo",
        "estimators",
        "estimators.active_margin",
        "estimators.automatic",
        "estimators.avm",
        "estimators.awaiting",
        "estimators.base",
        "estimators.bregman",
        "estimators.canonical",
        "estimators.class_weights",
        "estimators.centers",
        "estimators.csvrg",
        "estimators.delegation",
        "estimators.density",
        "estimators.divergent",
        "estimators.general",
        "estimators.kernel_cover",
        "estimators.kernel_data",
        "estimators.kernel_model",
        "estimators.kernel_points",
        "estimators.kernel_trained",
        "estimators.kmeans",
        "estimators.linear_model",
        "estimators.linear_svm",
        "estimators.lloyd",
        "estimators.logistic",
        "estimators.machine_model",
        "estimators.margin",
        "estimators.margin_model",
        "estimators.outlier_margin",
        "estimators.soft_margin",
        "estimators.mixture",
        "estimators.nearest",
        "estimators.odm",
        "estimators.scoring",
        "estimators.structured_margin",
        "estimators.sums",
        "estimators.svc",
        "marks",
        "plotting_active",
        "plotting",
        "sizing",
        "testing",
        "testing.contract",
        "testing.processes",
        "testing.tools",
        "workers",
    ),
    "program": ("__main__",),
}

# Files of mathematics take NumPy blocks and know nothing of Dask. A package means all of it.
MATHEMATICS = (
    "blocks",
    "census",
    "classes",
    "clusters",
    "compiled",
    "divergences",
    "errors",
    "kernels",
    "linear",
    "moments",
    "objectives",
    "ordering",
    "points",
    "raking",
    "randomness",
    "root",
    "rounds",
    "sampling",
    "sensitivities",
    "solvers",
    "strata",
    "typing",
)
DASK = ("dask", "distributed")

LEVEL = {module: level for level, names in enumerate(LAYERS.values()) for module in names}


def find_modules() -> dict[str, Path]:
    """Files of the package by module name, without the name of the package."""
    modules = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        modules[".".join(parts)] = path
    return modules


MODULES = find_modules()


def is_for_type_checker(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def imports_of(tree: ast.AST) -> list[str]:
    """Full names that a module imports, at the top or inside functions."""
    found: list[str] = []
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if is_for_type_checker(node):
            assert isinstance(node, ast.If)
            nodes.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are banned"
            found.extend(f"{node.module}.{alias.name}" for alias in node.names)
        nodes.extend(ast.iter_child_nodes(node))
    return found


def own_modules(names: list[str], known: dict[str, Path]) -> set[str]:
    """The modules of this package among imported names: the longest prefix that is one."""
    found = set()
    for name in names:
        head, *parts = name.split(".")
        if head == PACKAGE:
            while ".".join(parts) not in known:
                parts.pop()
            found.add(".".join(parts))
    return found


@pytest.fixture(scope="module")
def imports() -> dict[str, list[str]]:
    return {
        module: imports_of(ast.parse(path.read_text(encoding="utf-8")))
        for module, path in MODULES.items()
    }


def layer_name(module: str) -> str:
    return list(LAYERS)[LEVEL[module]]


def test_every_module_has_a_layer() -> None:
    missing = sorted(MODULES.keys() - LEVEL.keys())
    assert not missing, (
        f"no layer for {', '.join(missing)}: list each in LAYERS of tests/test_layers.py, in the "
        "lowest layer whose modules, and those below, are all it has to import"
    )


def test_no_module_is_listed_twice() -> None:
    assert len(LEVEL) == sum(len(names) for names in LAYERS.values())


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_down(module: str, imports: dict[str, list[str]]) -> None:
    above = sorted(
        f"{PACKAGE}.{target} ({layer_name(target)})"
        for target in own_modules(imports[module], MODULES)
        if LEVEL.get(target, -1) > LEVEL.get(module, len(LAYERS))  # unlisted ones fail above
    )
    assert not above, (
        f"{PACKAGE}.{module} is in the layer {layer_name(module)!r} and imports from above: "
        f"{', '.join(above)}. Move what is shared to a layer below both, or pass it as an argument"
    )


def test_imports_have_no_cycle(imports: dict[str, list[str]]) -> None:
    # Importing a module of a package runs the package's __init__, but asks nothing of it.
    graph = {module: own_modules(names, MODULES) - {module} for module, names in imports.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize(
    "module", [name for name in sorted(MODULES) if name.split(".")[0] in MATHEMATICS]
)
def test_mathematics_knows_no_dask(module: str, imports: dict[str, list[str]]) -> None:
    found = sorted(name for name in imports[module] if name.split(".")[0] in DASK)
    assert not found, (
        f"{PACKAGE}.{module} imports {', '.join(found)}: mathematics takes NumPy blocks, and "
        f"{PACKAGE}.passes hands them over"
    )


def test_imports_of__sees_lazy_ones_and_skips_type_checking() -> None:
    source = """
import numpy as np
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import pandas
else:
    import json

def f():
    from daskcoreset.build import build
"""
    found = imports_of(ast.parse(source))
    assert sorted(found) == ["daskcoreset.build.build", "json", "numpy", "typing.TYPE_CHECKING"]


def test_own_modules__resolves_names_to_the_files_that_hold_them() -> None:
    known = {"": Path(), "build": Path(), "sensitivities": Path(), "sensitivities.base": Path()}
    names = [
        "daskcoreset.build.build",
        "daskcoreset.sensitivities.base.Sensitivity",
        "daskcoreset.sensitivities.SENSITIVITIES",
        "daskcoreset.Coreset",
        "numpy.build",
    ]
    assert own_modules(names, known) == {"", "build", "sensitivities", "sensitivities.base"}
