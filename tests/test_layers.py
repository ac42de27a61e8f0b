"""Folders are the layers: what each may import, and that nothing turns round.

`MAY_IMPORT` is the table of CONTRIBUTING. It names folders, so that a new file needs no line in
it. Imports inside functions and those for the type checker count as well.
"""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import daskcoreset

PACKAGE = "daskcoreset"
ROOT = Path(daskcoreset.__file__).parent

MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    "storage": {"core"},
    "inputs": {"core", "storage"},
    "execution": {"core", "storage", "inputs"},
    "solvers": {"core"},
    "objectives": {"core", "solvers"},
    "sensitivities": {"core", "solvers", "objectives"},
    "constructions": {
        "core",
        "storage",
        "inputs",
        "execution",
        "solvers",
        "objectives",
        "sensitivities",
    },
}
MAY_IMPORT["_build"] = MAY_IMPORT["constructions"] | {"constructions"}
MAY_IMPORT["metrics"] = MAY_IMPORT["_build"] | {"_build"}
MAY_IMPORT["plotting"] = MAY_IMPORT["metrics"] | {"metrics"}
MAY_IMPORT["estimators"] = MAY_IMPORT["metrics"] | {"metrics"}
MAY_IMPORT["datasets"] = {"core"}
MAY_IMPORT["testing"] = MAY_IMPORT["_build"] | {"_build"}
MAY_IMPORT["xarray"] = MAY_IMPORT["estimators"] | {"estimators"}
MAY_IMPORT["cli"] = MAY_IMPORT["estimators"] | {"estimators", "datasets", ""}
MAY_IMPORT["__main__"] = {"cli"}
MAY_IMPORT["errors"] = set()
MAY_IMPORT[""] = set(MAY_IMPORT)  # daskcoreset/__init__.py, the public names

BETWEEN_CONSTRUCTIONS = {("tree", "sampling")}
"""Besides, all may import `class_summary` and `draws`."""

EXCEPTIONS = {
    ("core.coreset", "metrics.audit"),
    ("core.coreset", "plotting"),
    ("core.coreset", "inputs.take"),
    ("core.coreset", "solvers.centroids"),
    ("core.coreset", "storage.coresets"),
    ("core.coreset", "storage.locations"),
    ("core.portfolio", "plotting"),
    ("core.portfolio", "storage.coresets"),
    ("core.portfolio", "storage.locations"),
    ("metrics.audit", "plotting"),
}
"""Methods of `Coreset` and `Portfolio`, two lines each, import these by name when called."""

MATHEMATICS = ("core", "solvers", "objectives", "sensitivities")
NOT_IN_MATHEMATICS = ("dask", "distributed", "zarr", "obstore", "fsspec", "matplotlib")
DASK = ("dask", "distributed")
OF_COLLECTIONS = ("_meta", "_meta_nonempty", "_name", "_expr", "_divisions", "_chunks")


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


def imports_of(tree: ast.AST) -> list[str]:
    """Full names that a module imports, wherever it does, by a statement or by name."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are banned"
            found.extend(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found.extend(
                ast.literal_eval(one) for one in node.args if isinstance(one, ast.Constant)
            )
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
def trees() -> dict[str, ast.Module]:
    return {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in MODULES.items()}


@pytest.fixture(scope="module")
def imports(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    return {module: imports_of(tree) for module, tree in trees.items()}


def is_allowed(module: str, target: str) -> bool:
    """Whether a module may import another one."""
    layer, other = module.partition(".")[0], target.partition(".")[0]
    if (module, target) in EXCEPTIONS:
        return True
    if layer != other:
        return other == "errors" or other in MAY_IMPORT.get(layer, ())
    if layer == "constructions" and target.count(".") and module.count("."):
        own, its = module.split(".")[1], target.split(".")[1]
        return its in (own, "class_summary", "draws", "job") or (own, its) in BETWEEN_CONSTRUCTIONS
    return True


def test_imports__stay_within_what_the_folder_may_import(imports: dict[str, list[str]]) -> None:
    wrong = [
        f"{PACKAGE}.{module} imports {one}"
        for module, names in imports.items()
        for one in sorted(own_modules(names, MODULES))
        if not is_allowed(module, one)
    ]
    assert not wrong, (
        f"{'; '.join(wrong)}, which MAY_IMPORT does not allow. Move what is shared to a folder "
        "below both, or pass it as an argument"
    )


def test_imports__have_no_cycle(imports: dict[str, list[str]]) -> None:
    # Importing a module of a package runs the package's __init__, but asks nothing of it.
    graph = {
        module: {
            target
            for target in own_modules(names, MODULES) - {module}
            if (module, target) not in EXCEPTIONS
        }
        for module, names in imports.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


def test_exceptions__are_used(imports: dict[str, list[str]]) -> None:
    for module, target in EXCEPTIONS:
        assert target in own_modules(imports[module], MODULES)


def test_root__holds_the_folders_and_build() -> None:
    kept = {"__init__.py", "__main__.py", "__pycache__", "py.typed", "references.bib"}
    entries = {path.name for path in ROOT.iterdir()} - kept
    files = ("_build", "datasets", "errors", "plotting", "testing", "xarray")
    assert entries == {f"{name}.py" if name in files else name for name in MAY_IMPORT} - {
        "",
        "__main__",
    }


def test_mathematics__has_neither_graphs_nor_files_nor_pictures(
    imports: dict[str, list[str]],
) -> None:
    found = [
        f"{PACKAGE}.{module} imports {name}"
        for module, names in imports.items()
        for name in names
        if module.partition(".")[0] in MATHEMATICS and name.partition(".")[0] in NOT_IN_MATHEMATICS
    ]
    assert not found, f"{'; '.join(found)}: mathematics takes NumPy blocks and returns arrays"


def test_private_names_of_dask__are_used_in_execution_only(
    imports: dict[str, list[str]], trees: dict[str, ast.Module]
) -> None:
    for module, tree in trees.items():
        if not module.startswith("execution."):
            names = imports[module] + attributes_of(tree)
            assert not private_of_dask(names), module


def attributes_of(tree: ast.AST) -> list[str]:
    """Attributes that a module takes, with what they are of: ``dask.array.Array._meta``."""
    return [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]


def private_of_dask(names: list[str]) -> list[str]:
    """Names that are private to Dask: of its modules, or those that its collections have."""
    of_modules = [
        name
        for name in names
        if name.partition(".")[0] in DASK and any(part.startswith("_") for part in name.split("."))
    ]
    of_collections = [name for name in names if name.rpartition(".")[2] in OF_COLLECTIONS]
    return sorted({*of_modules, *of_collections})


PUBLIC = (
    "datasets", "errors", "estimators", "metrics",
    "objectives", "plotting", "testing",
)  # fmt: skip


def test_public_modules__are_where_users_import_them() -> None:
    for name in PUBLIC:
        module = importlib.import_module(f"{PACKAGE}.{name}")
        assert getattr(daskcoreset, name) is module
        assert module.__all__


def test_help__fits_on_two_screens_and_needs_no_package_for_tests() -> None:
    code = "sys.modules.update(pytest=None, hypothesis=None); help('daskcoreset')"
    command = [sys.executable, "-c", f"import sys\n{code}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert len(shown.splitlines()) <= 100
    listed = re.findall(r"(?<!`)`(\w+)`(?!`)", daskcoreset.__doc__ or "")
    assert set(dir(daskcoreset)) <= {*listed, "estimators", "build"}
    assert [name for name in listed if not hasattr(daskcoreset, name)] == []


def test_package__shows_its_public_names_alone() -> None:
    names = dir(daskcoreset)
    assert names == sorted(set(names))
    assert {"build", "Coreset", "estimators", "StrongKMeans"} < set(names)
    assert not {name for name in names if name.startswith("_")} | {"sys", "core"} & set(names)
    assert all(getattr(daskcoreset, name) is not None for name in names)
    assert daskcoreset.errors.InvalidInputError.__module__ == "daskcoreset.errors"
    with pytest.raises(AttributeError, match="no attribute 'census'"):
        daskcoreset.census  # noqa: B018
    with pytest.raises(AttributeError, match=r"from daskcoreset\.estimators import CoresetKMeans"):
        daskcoreset.CoresetKMeans  # noqa: B018


SLOW = ("sklearn", "zarr", "numba", "scipy", "dask.array", "distributed", "pandas", "matplotlib")


def printed_by(code: str) -> list[str]:
    """What a new interpreter prints, in words."""
    command = [sys.executable, "-c", f"import sys\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_import__leaves_slow_packages_alone() -> None:
    """They take several times as long as the package; each is imported when it is needed."""
    code = f"print(*[name for name in {SLOW!r} if name in sys.modules])"
    assert printed_by(f"import daskcoreset; daskcoreset.build; {code}") == []


def test_import__takes_neither_dask_nor_other_modules() -> None:
    code = "print(*[one for one in sys.modules if one in ('numpy', 'dask') or PACKAGE in one])"
    assert printed_by(f"PACKAGE = '{PACKAGE}'; import daskcoreset; {code}") == [PACKAGE]


def test_public_names__are_found_where_the_type_checker_finds_them() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    homes = {
        alias.name: node.module.removeprefix(f"{PACKAGE}.")
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    modules = {name: name for name, home in homes.items() if home == PACKAGE}
    assert set(modules) == set(PUBLIC)
    assert {**homes, **modules} == daskcoreset._HOMES


TESTS = Path(__file__).parent


def test_folders_of_tests__are_all_looked_into(pytestconfig: pytest.Config) -> None:
    """Pytest leaves out folders by their names, "build" among them unless it is told otherwise."""
    left_out = pytestconfig.getini("norecursedirs")
    for path in TESTS.rglob("test_*.py"):
        for folder in path.relative_to(TESTS.parent).parent.parts:
            assert not any(fnmatch(folder, pattern) for pattern in left_out), path
