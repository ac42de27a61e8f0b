"""Places: lost answers, versions that are kept, and objects that are missing or exchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daskcoreset.constructions.tree.place import (
    Place,
    Root,
    UnansweredError,
    digest_of,
    object_name,
    page_files,
    place_at,
)
from daskcoreset.errors import OvertakenError, StoreError
from daskcoreset.storage.disk import DiskFolder


@pytest.fixture(params=["disk", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr("daskcoreset.constructions.tree.place.pause", lambda _: None)
    location: Any = tmp_path / "t"
    if request.param == "memory":
        store = pytest.importorskip("obstore.store")
        from zarr.storage import ObjectStore

        location = ObjectStore(store.MemoryStore())
    return place_at("path", location, "coreset-tree", "objects")


def changed(place: Place, base: Root, value: Any, keep: int | None = 2) -> Root:
    files = page_files(value)
    name = object_name(base.version + 1, digest_of(*files.values()))
    root = place.commit(base, base.followed_by(name, keep), {name: files})
    place.sweep(root, lambda: root.history)
    return root


def begun(place: Place) -> Root:
    return changed(place, place.draft({"size": 3}, "choose another path"), "first")


@pytest.mark.parametrize("keep", [2, 5, None])
def test_commit__keeps_as_many_versions_as_are_wanted(place: Place, keep: int | None) -> None:
    root = begun(place)
    for number in range(2, 31):
        root = changed(place, root, number, keep)
    again = (
        place_at("path", place.folder.path, "coreset-tree", "objects")
        if isinstance(place.folder, DiskFolder)
        else Place(place.folder, "coreset-tree", "objects")
    )
    assert again.find() == root
    kept = again.read_pages(root.history)
    assert kept == ["first", *range(2, 31)][-keep if keep else 0 :]
    assert len(place.folder.keys()) == 1 + len(kept)


def test_commit__of_a_lost_answer_is_settled_by_the_token(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, swap = begun(place), type(place.folder).swap

    def after(self: Any, data: bytes, tag: Any) -> Any:
        swap(self, data, tag)
        raise StoreError("the connection was cut")

    def before(*_: Any) -> Any:
        monkeypatch.setattr(type(place.folder), "swap", swap)
        raise StoreError("the connection was cut")

    def overtaken(*_: Any) -> Any:
        monkeypatch.setattr(type(place.folder), "swap", swap)
        changed(place, place.root(), "of a rival")
        raise StoreError("the connection was cut")

    for number, lost in enumerate((after, before)):
        monkeypatch.setattr(type(place.folder), "swap", lost)
        root = changed(place, root, f"mine {number}")
        monkeypatch.setattr(type(place.folder), "swap", swap)
        assert place.find() == root
    monkeypatch.setattr(type(place.folder), "swap", overtaken)
    with pytest.raises(OvertakenError, match="another writer has changed it"):
        changed(place, root, "mine")
    root = place.root()
    assert place.read_pages(root.history[-1:]) == ["of a rival"]

    def silent(*_: Any) -> Any:
        raise StoreError("no answer")

    monkeypatch.setattr(type(place.folder), "swap", silent)
    with pytest.raises(UnansweredError, match="made as a whole or not at all"):
        changed(place, root, "mine")


def test_read__a_page_that_is_missing_or_exchanged_is_an_error(place: Place) -> None:
    root = changed(place, begun(place), "second")
    first, second = (f"objects/{name}" for name in root.history)
    files = place.folder.get(first)
    assert files is not None
    place.folder.remove([second])
    fresh = Place(place.folder, "coreset-tree", "objects")
    with pytest.raises(StoreError, match="is missing"):
        fresh.read_pages(root.history)
    place.folder.put(second, files)
    with pytest.raises(StoreError, match="is damaged"):
        fresh.read_pages(root.history)
    assert fresh.read_pages(root.history[:1]) == ["first"]


def test_draft__where_something_is(place: Place) -> None:
    begun(place)
    with pytest.raises(StoreError, match="exists; choose another path"):
        place.draft({}, "choose another path")
    draft = place.draft({"size": 4}, "", overwrite=True)
    root = changed(place, draft, "other")
    assert (root.version, len(root.history), place.root().settings) == (2, 1, {"size": 4})
    assert len(place.folder.keys()) == 2
    place.folder.put("objects/notes", {"a": b"b"})
    with pytest.raises(StoreError, match="also holds 'notes', so it is never overwritten"):
        place.draft({}, "", overwrite=True)
