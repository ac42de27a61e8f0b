"""Places: changes whose answers are lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daskcoreset.constructions.tree.place import Place, Root, page_files, place_at
from daskcoreset.errors import OvertakenError, StoreError


@pytest.fixture(params=["disk", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr("daskcoreset.constructions.tree.place.pause", lambda _: None)
    location: Any = tmp_path / "t"
    if request.param == "memory":
        store = pytest.importorskip("obstore.store")
        from zarr.storage import ObjectStore

        location = ObjectStore(store.MemoryStore())
    return place_at("path", location, "coreset-tree", "objects")


def changed(place: Place, base: Root, value: Any) -> Root:
    files = page_files(value)
    name = base.name_for(files)
    root = place.commit(base, base.followed_by(name, 2), {name: files})
    place.sweep(root, lambda: root.history)
    return root


def begun(place: Place) -> Root:
    return changed(place, place.draft({"size": 3}, "choose another path"), "first")


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
    with pytest.raises(StoreError, match="made as a whole or not at all"):
        changed(place, root, "mine")
