"""The acceptance tests know public names only."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent

PUBLIC = """
datasets errors estimators metrics objectives plotting testing xarray
"""

IMPORT = re.compile(r"^\s*(?:from|import) (daskcoreset\S*|tests\S*)", re.MULTILINE)


def test_acceptance_tests__import_public_names_only() -> None:
    public = {"daskcoreset", *(f"daskcoreset.{name}" for name in PUBLIC.split())}
    for path in FOLDER.rglob("*.py"):
        found = {each for each in IMPORT.findall(path.read_text()) if "acceptance" not in each}
        assert found <= (public if path.name == "face.py" else {"tests.pairs"}), path
