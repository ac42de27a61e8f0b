"""The files around the package: they say the same, and its distributions hold them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

import daskcoreset

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    """The conda recipe, with the values of its context in place."""
    text = (ROOT / "recipe" / "recipe.yaml").read_text()
    for name, value in yaml.safe_load(text)["context"].items():
        text = text.replace(f"${{{{ {name} }}}}", value)
    return dict(yaml.safe_load(text))


def test_version__is_the_same_everywhere(pyproject: dict[str, Any], recipe: dict[str, Any]) -> None:
    version = pyproject["project"]["version"]
    assert daskcoreset.__version__ == version
    assert recipe["package"]["version"] == version
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version


def test_recipe__asks_for_what_pyproject_does(
    pyproject: dict[str, Any], recipe: dict[str, Any]
) -> None:
    project, requirements = pyproject["project"], recipe["requirements"]
    # conda's name of Dask without what its extras bring.
    asked = [f"python{project['requires-python']}", *project["dependencies"]]
    asked = [one.replace("dask[array]", "dask-core") for one in asked]
    assert [re.sub(r"^([\w-]+)(?=[<>=])", r"\1 ", one) for one in asked] == requirements["run"]

    lowest = project["requires-python"].removeprefix(">=")
    built = [
        re.sub(r"(?=[<>=])", " ", one, count=1) for one in pyproject["build-system"]["requires"]
    ]
    assert requirements["host"] == [f"python {lowest}.*", "pip", *built]
    assert recipe["tests"][0]["python"]["python_version"] == f"{lowest}.*"
    scripts = [f"{name} = {target}" for name, target in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts


def test_dependencies__are_all_that_is_imported(pyproject: dict[str, Any]) -> None:
    """The packages of other names come with Dask, numba and scikit-learn."""
    project = pyproject["project"]
    asked = [one for extra in project["optional-dependencies"].values() for one in extra]
    asked += project["dependencies"]
    declared = {re.split(r"[\[<>=]", one)[0] for one in asked}
    trees = [ast.parse(path.read_text()) for path in (ROOT / "daskcoreset").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    names += [one.name for node in nodes if isinstance(node, ast.Import) for one in node.names]
    found = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    assert found - declared <= {"cloudpickle", "llvmlite", "sklearn"}


def test_pythons__are_those_that_the_workflows_try(pyproject: dict[str, Any]) -> None:
    """The lowest one in all settings, and each that the metadata name."""
    project = pyproject["project"]
    named = [one.rpartition(" ")[2] for one in project["classifiers"] if ":: 3." in one]
    assert project["requires-python"] == f">={named[0]}"
    assert pyproject["tool"]["mypy"]["python_version"] == named[0]
    workflow = ROOT / ".github" / "workflows" / "ci.yml"
    if not workflow.exists():
        pytest.skip("a source distribution comes without workflows")
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    assert jobs["quick"]["strategy"]["matrix"]["python"] == named


def test_source_distribution__holds_all_of_the_root(pyproject: dict[str, Any]) -> None:
    """And the root nothing else: what an example left there would be committed and shipped."""
    included = pyproject["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    ignored = [one.strip("/") for one in (ROOT / ".gitignore").read_text().splitlines()]
    for path in ROOT.iterdir():
        known = [*(one.strip("/") for one in included), *ignored, ".*", "PKG-INFO"]
        assert any(fnmatch(path.name, one) for one in known), f"{path.name} is not to be shipped"
    for one in included:
        assert any(ROOT.glob(one.strip("/"))), f"there is no {one}"
