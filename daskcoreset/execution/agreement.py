"""What decides bits in a process, and whether the workers of a cluster agree with the client.

Before a run the client asks those workers that it has not asked before, in one call. A worker that
joins later, or that runs a graph which no client of ours has computed, compares for itself, before
the first block that it reads.

Another version of this package is an error, as is a package that a worker lacks: its formulas and
what is sent between processes may differ. Other packages and processors change the last bits of
sums, so that a result depends on which worker did what: a warning.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from daskcoreset.core.errors import CoresetWarning, WorkerMismatchError, warn_user

# Of these the version is compared: they compute, read, or carry what is computed.
_PACKAGES = (
    "daskcoreset",
    "numpy",
    "numba",
    "llvmlite",
    "scipy",
    "scikit-learn",
    "zarr",
    "dask",
    "distributed",
)

_LACKING = "none"

# Environments of clients that this process has compared with its own.
_compared: set[Environment] = set()

# The workers that every client has asked.
_asked: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


class Environment(NamedTuple):
    """What decides bits in a process.

    Attributes
    ----------
    versions : tuple of (str, str)
        Names and versions of packages.
    processor : tuple of (str, str)
        Who chooses instructions by the processor, and what it has chosen.
    """

    versions: tuple[tuple[str, str], ...]
    processor: tuple[tuple[str, str], ...]


class Disagreement(NamedTuple):
    """In what two environments differ: what is an error, and what changes bits alone."""

    errors: list[str]
    versions: list[str]
    processor: list[str]


@cache
def environment() -> Environment:
    """Return what decides bits in this process.

    Examples
    --------
    >>> [name for name, _ in environment().versions][:3]
    ['python', 'daskcoreset', 'numpy']
    """
    versions = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for package in _PACKAGES:
        versions[package] = _LACKING
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return Environment(tuple(versions.items()), tuple(_processor().items()))


def _processor() -> dict[str, str]:
    import threadpoolctl  # type: ignore[import-untyped] # it has no stubs

    libraries = threadpoolctl.threadpool_info()
    blas = {str(one.get("architecture")) for one in libraries if one["user_api"] == "blas"}
    simd: Any = np.show_config(mode="dicts")
    found = simd.get("SIMD Extensions", {}).get("found", [])
    return {
        "BLAS": ", ".join(sorted(blas)) or _LACKING,
        "NumPy": ", ".join(found) or "its baseline",
        "numba": _numba_target(),
    }


def _numba_target() -> str:
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return _LACKING
    host = str(llvm.get_host_cpu_name())
    name = os.environ.get("NUMBA_CPU_NAME") or host
    features = os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:  # those of the processor, whatever the name says
        return name if name == host else f"{name} on {host}"
    return f"{name} with {features}" if features else f"{name} alone"


def disagreement(expected: Environment, found: Environment) -> Disagreement:
    """Return in what `found` differs from what is `expected`."""
    versions = dict(found.versions)
    errors: list[str] = []
    others: list[str] = []
    for package, wanted in expected.versions:
        has = versions.get(package, _LACKING)
        if has == wanted:
            continue
        fatal = package == "daskcoreset" or _LACKING in {has, wanted}
        (errors if fatal else others).append(f"{package} {has} in place of {wanted}")
    chosen = dict(found.processor)
    processor = [
        f"{name} for {chosen.get(name)} in place of {wanted}"
        for name, wanted in expected.processor
        if chosen.get(name) != wanted
    ]
    return Disagreement(errors, others, processor)


def check_workers(client: Any, ask: Callable[..., Any]) -> None:
    """Compare the workers of a client that were not asked before with this process.

    Parameters
    ----------
    client : distributed.Client
    ask : callable
        ``ask(client, method, *args, **kwargs)`` calls a method of the client, and waits.

    Raises
    ------
    WorkerMismatchError
        Naming the workers that have another version of this package, or lack a package.
    """
    if client.asynchronous or in_worker():  # cannot wait; was asked by who started the task
        return
    asked = _asked.setdefault(client, set())
    new = [worker for worker in ask(client, client.nthreads) if worker not in asked]
    if not new:
        return
    found = ask(client, client.run, environment, workers=new, on_error="return")
    _judge({name: _compared_with(value) for name, value in found.items()})
    asked.update(new)


def _compared_with(found: Any) -> Disagreement:
    if isinstance(found, Environment):
        return disagreement(environment(), found)
    # A worker that ended meanwhile is an OSError; one that cannot load this file, any other.
    lacking = [] if isinstance(found, OSError) else [f"no daskcoreset, or another one ({found})"]
    return Disagreement(lacking, [], [])


def _judge(workers: Mapping[str, Disagreement]) -> None:
    wrong = {name: found.errors for name, found in workers.items() if found.errors}
    if wrong:
        raise WorkerMismatchError(_mismatch(wrong))
    versions = {name: found.versions for name, found in workers.items() if found.versions}
    if versions:
        warn_user(_other_versions(versions))
    processors = {name: found.processor for name, found in workers.items() if found.processor}
    if processors:
        warn_user(_other_processors(processors))


def check_here(expected: Environment | None) -> None:
    """Compare this worker with the client that defined a task; quick from the second time on.

    Raises
    ------
    WorkerMismatchError
        As `check_workers`.
    """
    if expected is None or expected in _compared:
        return
    if expected != environment():
        found = disagreement(expected, environment())
        name = f"{_own_name()} on host {socket.gethostname()!r}"
        if found.errors:
            raise WorkerMismatchError(_mismatch({name: found.errors}))
        if found.versions:
            _warn_client(_other_versions({name: found.versions}))
        if found.processor:
            _warn_client(_other_processors({name: found.processor}))
    _compared.add(expected)


def in_worker() -> bool:
    """Whether this is a task of a worker."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


def _own_name() -> str:
    distributed = sys.modules.get("distributed")
    with suppress(ValueError, AttributeError):
        return f"worker {distributed.get_worker().address}"  # type: ignore[union-attr] # caught
    return f"process {os.getpid()}"


def _warn_client(message: str) -> None:
    """Warn at the client that waits for this worker, which has said so before its first run."""
    distributed = sys.modules.get("distributed")
    if distributed is not None and in_worker():
        distributed.warn(message, CoresetWarning)


def _listed(workers: Mapping[str, list[str]]) -> str:
    shown = [f"{name} has {', '.join(found)}" for name, found in list(workers.items())[:3]]
    more = len(workers) - len(shown)
    return "; ".join(shown) + (f"; and {more} others differ" if more else "")


def _mismatch(workers: Mapping[str, list[str]]) -> str:
    return (
        f"{_listed(workers)}; install the same daskcoreset, with what it needs, for client and "
        f"workers."
    )


def _other_versions(workers: Mapping[str, list[str]]) -> str:
    return (
        f"{_listed(workers)}: results are right, but their last bits depend on which worker does "
        f"what; install the same versions for client and workers."
    )


def _other_processors(workers: Mapping[str, list[str]]) -> str:
    return (
        f"{_listed(workers)}: their processors round differently, so that the last bits of results "
        f"depend on which worker does what; the README says which results do, and which variables "
        f"of the environment make all processors alike."
    )
