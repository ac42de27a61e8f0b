"""Groups on the disk: the bits that were written, or the old ones, or an error."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import zarr
from hypothesis import given, strategies as st
from obstore.store import MemoryStore as ObjectsInMemory
from zarr.storage import LocalStore, MemoryStore, ObjectStore, ZipStore

from daskcoreset.errors import InvalidInputError, StoreError
from daskcoreset.storage import group
from daskcoreset.storage.group import JSON, GroupContents, read_group, write_group
from daskcoreset.storage.locations import Location
from tests.acceptance.tools.groups import a_home, names, snapshot
from tests.pairs import each

if TYPE_CHECKING:
    from collections.abc import Callable

    from daskcoreset.core.typing import AnyArray


Arrays = dict[str, "AnyArray"]


ARRAYS: Arrays = {
    "x": np.array([[0.0, -0.0, 1.5], [np.nan, np.inf, 1e-300]]),
    "who": np.array(["", "Zoë"]),
    "zeros": np.zeros(2, dtype=np.int64),
}


ATTRIBUTES: dict[str, JSON] = {
    "name": "first",
    "nested": {"seed": 2**127, "q": [0.1, None]},
}


def contents(arrays: Arrays, attributes: Any = None, **options: Any) -> GroupContents:
    dims = {name: tuple(f"{name}_{i}" for i in range(a.ndim)) for name, a in arrays.items()}
    kind = options.pop("kind", "demo")
    return GroupContents(arrays, dims, attributes or {}, kind, **options)


def write(store: Location, name: str = "first", *, kind: str = "demo", **options: Any) -> None:
    inner = contents({"x": ARRAYS["x"] * 2}, {"name": name})
    attributes = {**ATTRIBUTES, "name": name}
    write_group(store, contents(ARRAYS, attributes, kind=kind, groups={"in": inner}), **options)


def read(store: Location) -> GroupContents:
    return read_group(store, kind="demo")


def same(arrays: Arrays, wanted: Arrays) -> bool:
    return arrays.keys() == wanted.keys() and all(
        arrays[k].dtype == wanted[k].dtype
        and arrays[k].shape == wanted[k].shape
        and (
            np.array_equal(arrays[k], wanted[k])
            if wanted[k].dtype.kind == "T"
            else arrays[k].tobytes() == wanted[k].tobytes()
        )
        for k in wanted
    )


def assert_holds(store: Location, name: str = "first") -> None:
    found = read(store)
    assert same(dict(found.arrays), ARRAYS)
    assert found.attributes == {**ATTRIBUTES, "name": name}
    assert same(dict(found.groups["in"].arrays), {"x": ARRAYS["x"] * 2})
    assert found.groups["in"].attributes == {"name": name}


DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="="),
    hnp.unsigned_integer_dtypes(endianness="="),
    hnp.floating_dtypes(sizes=(16, 32, 64), endianness="="),
    hnp.complex_number_dtypes(sizes=(64, 128), endianness="="),
    hnp.unicode_string_dtypes(endianness="=", max_len=5),
)


def is_unicode(array: AnyArray) -> bool:
    """Whether text, if it is that, has no halves of surrogates, which are refused."""
    return array.dtype.kind != "U" or not re.search("[\ud800-\udfff]", "".join(array.flat))


SOME_ARRAYS = st.dictionaries(
    st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,8}", fullmatch=True),
    hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)).filter(
        is_unicode
    ),
    max_size=3,
)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(arrays=SOME_ARRAYS, attributes=st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3))
def test_read_group__returns_the_bits_written(arrays: Arrays, attributes: dict[str, Any]) -> None:
    store = MemoryStore()
    write_group(store, contents(arrays, attributes))
    found = read(store)
    assert same(dict(found.arrays), arrays)
    assert found.attributes == attributes


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a\0b", "", "ccc" * 9], dtype=np.dtypes.StringDType()),
        np.array([-0.0, -0.0, -0.0]),
        np.full(3, complex(-0.0, -0.0)),
        np.array([0x7FF8000000000001, 0xFFF0000000000000, 1], dtype=np.uint64).view(np.float64),
        np.asfortranarray(np.arange(6.0).reshape(3, 2)),
        np.arange(30)[::10],
    ],
    ids=["variable-length", "minus-zero", "complex-zero", "nan-payload", "fortran", "strided"],
)
def test_read_group__returns_unusual_arrays(array: AnyArray) -> None:
    store = MemoryStore()
    write_group(store, contents({"a": array}))
    assert same(dict(read(store).arrays), {"a": array})


def test_write_group__writes_plain_zarr_3(tmp_path: Path) -> None:
    write(tmp_path / "s")
    found = {str(path.relative_to(tmp_path / "s")) for path in (tmp_path / "s").rglob("*.json")}
    own = {"zarr.json", "x/zarr.json", "who/zarr.json", "zeros/zarr.json"}
    assert found == own | {"in/zarr.json", "in/x/zarr.json"}
    codecs = set()
    for name in found:
        metadata = json.loads((tmp_path / "s" / name).read_text())
        assert metadata["zarr_format"] == 3
        codecs |= {codec["name"] for codec in metadata.get("codecs", [])}
    assert codecs == {"bytes", "vlen-utf8", "zstd"}
    assert names(tmp_path) == {"s"}


@pytest.mark.parametrize(
    ("arrays", "attributes", "message"),
    [
        ({"x": np.array([["\ud800"]])}, {}, "x cannot be stored"),
        (ARRAYS, {"a": float("nan")}, "plain JSON"),
    ],
)
def test_write_group__refuses_what_would_not_come_back(
    tmp_path: Path, arrays: Arrays, attributes: Any, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        write_group(tmp_path / "s", contents(arrays, attributes))
    assert snapshot(tmp_path) == {}


def test_write_group__of_two_writers_the_first_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore(ObjectsInMemory())
    write_group(store, contents(ARRAYS))
    monkeypatch.setattr(group, "_replaced", lambda *_, **__: set())  # both found nothing
    with pytest.raises(StoreError, match="another writer was first"):
        write_group(store, contents({}))
    assert same(dict(read(store).arrays), ARRAYS)


def test_write_group__refuses_stores_that_cannot_replace(tmp_path: Path) -> None:
    for store in (
        MemoryStore(read_only=True),
        LocalStore(tmp_path, read_only=True),
        ZipStore(tmp_path / "a.zip", mode="w"),
    ):
        with pytest.raises(InvalidInputError, match="is read-only or cannot delete"):
            write(store)
    assert snapshot(tmp_path) == {}


def a_file(path: Path) -> None:
    path.write_text("mine")


def a_foreign_group(path: Path) -> None:
    zarr.create_group(path, zarr_format=3).create_array("a", shape=(2,), dtype="f8")


def an_old_group(path: Path) -> None:
    zarr.create_group(path, zarr_format=2)


def an_array(path: Path) -> None:
    zarr.create_array(path, shape=(2,), dtype="f8")


def another_kind(path: Path) -> None:
    write(path, kind="tree")


def ours_and_a_file(path: Path) -> None:
    write(path)
    (path / "notes.txt").write_text("mine")


def ours_and_an_array(path: Path) -> None:
    write(path)
    zarr.open_group(path).create_array("mine", shape=(2,), dtype="f8")


def a_forged_header(path: Path) -> None:
    zarr.create_group(path, attributes={"daskcoreset": {"kind": "demo", "arrays": ["photos"]}})
    a_home(path)


@each(
    occupy=[
        a_file,
        a_home,
        a_foreign_group,
        an_old_group,
        an_array,
        another_kind,
        ours_and_a_file,
        ours_and_an_array,
        a_forged_header,
    ],
    overwrite=[False, True],
)
def test_write_group__never_replaces_the_work_of_others(
    tmp_path: Path, occupy: Callable[[Path], None], overwrite: bool
) -> None:
    occupy(tmp_path / "s")
    before = snapshot(tmp_path)
    if not occupy.__name__.startswith("ours"):
        with pytest.raises(StoreError):
            read(tmp_path / "s")
    with pytest.raises(StoreError, match="choose another path"):
        write(tmp_path / "s", overwrite=overwrite)
    assert snapshot(tmp_path) == before


def test_groups__errors_of_other_file_systems() -> None:
    closed = "ftp://me:some-password@127.0.0.1:1/s"
    for url in (closed, f"simplecache::{closed}"):
        for use in (write, read):
            with pytest.raises(StoreError, match="cannot be") as found:
                use(url)
            assert "some-password" not in str(found.value)
    with pytest.raises(StoreError, match="cannot be written"):
        write("data:///s")


@pytest.mark.parametrize(
    "owner",
    [(Path, "mkdir"), (Path, "write_bytes"), (os, "fsync"), (Path, "rename"), (shutil, "rmtree")],
    ids=["mkdir", "write_bytes", "fsync", "rename", "rmtree"],
)
def test_write_group__keeps_the_old_group_if_the_disk_is_full(tmp_path: Path, owner: Any) -> None:
    """One step fails, a later one each time, until the write succeeds."""
    call = getattr(*owner)
    for at in range(100):
        shutil.rmtree(tmp_path / "s", ignore_errors=True)
        write(tmp_path / "s")
        steps = 0

        def step(*args: Any, at: int = at, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return call(*args, **options)

        name = "second"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner[0], owner[1], step)
            try:
                write(tmp_path / "s", name, overwrite=True)
            except StoreError:
                name = str(read(tmp_path / "s").attributes["name"])
        assert_holds(tmp_path / "s", name)
        if name == "first":
            assert names(tmp_path) == {"s"}
        if 0 < steps < at:
            return
    pytest.fail("the write never ended")
