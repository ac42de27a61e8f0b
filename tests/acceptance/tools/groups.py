"""What a folder holds before and after a write."""

from __future__ import annotations

from pathlib import Path


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def a_home(path: Path) -> None:
    (path / "photos").mkdir(parents=True)
    (path / "photos" / "cat.jpg").write_bytes(b"cat")
