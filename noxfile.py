#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Tasks of the project: ``nox -l`` lists them, ``nox -s tests`` runs one."""

from __future__ import annotations

from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"


@nox.session
def lint(session: nox.Session) -> None:
    """Lint, format and types."""
    session.install("-e", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests as the README does."""
    session.install("-e", ".[test]")
    session.run("pytest", "-n", "2", "--dist", "worksteal", *session.posargs)


@nox.session(default=False)
def nightly(session: nox.Session) -> None:
    """Run the tests that the README's command leaves out, and more examples of hypothesis."""
    session.install("-e", ".[test]")
    session.run(
        "pytest", "-n", "2", "--dist", "worksteal", "-m", "nightly or hypothesis",
        "--hypothesis-profile=nightly", *session.posargs,
    )  # fmt: skip


@nox.session(default=False)
def extras(session: nox.Session) -> None:
    """Run the tests as the README does, with packages that few users have."""
    session.install("-e", ".[test]", "dask-array>=0.7")
    session.run("pytest", "-n", "2", "--dist", "worksteal", *session.posargs)


@nox.session(default=False)
def newest(session: nox.Session) -> None:
    """Run the quick tests with the newest versions of all packages, pre-releases among them."""
    session.install("--pre", "--upgrade", "-e", ".[test]")
    session.run(
        "pytest", "-n", "2", "--dist", "worksteal", "-m", "not slow and not nightly",
        *session.posargs,
    )  # fmt: skip


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Say which lines the acceptance tests do not reach."""
    session.install("-e", ".[test]")
    session.run("pytest", "--cov", "tests/acceptance", *session.posargs)


@nox.session(venv_backend="uv", default=False)
def lowest(session: nox.Session) -> None:
    """Run the quick tests with the lowest versions that pyproject.toml allows."""
    session.install("--resolution=lowest-direct", "-e", ".[test]")
    # What the lowest versions say of the newest ones of others is not this project's.
    session.run(
        "pytest", "-n", "2", "-W", "default::DeprecationWarning",
        "-o", "strict_parametrization_ids=false",  # of checks that old scikit-learn lists twice
        "-m", "not slow and not distributed and not nightly", *session.posargs,
    )  # fmt: skip


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation into site."""
    session.install("-e", ".[docs]")
    session.run("sphinx-build", "-W", "-q", "docs", "site")


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Build the wheel and the source distribution, and check their metadata."""
    session.install("build", "twine")
    session.run("python", "-m", "build", "--outdir", "dist")
    session.run("twine", "check", "--strict", "dist/*", external=True)


@nox.session(default=False)
def wheel(session: nox.Session) -> None:
    """Install the wheel of dist alone, and run the demonstration."""
    session.install(*map(str, Path("dist").glob("*.whl")))
    session.run("daskcoreset", "demo")


if __name__ == "__main__":
    nox.main()
