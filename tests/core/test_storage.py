"""Groups on the disk: the bits that were written, or the old ones, or an error."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarr.storage import MemoryStore

from daskcoreset.core.contents import JSON
from daskcoreset.core.errors import (
    CoresetError,
    StoreError,
)
from daskcoreset.core.storage import read_group, write_group
from daskcoreset.core.zarr_places import Location
from tests.acceptance.tools.groups import names, snapshot

if TYPE_CHECKING:
    from daskcoreset.core.typing import AnyArray


Arrays = dict[str, "AnyArray"]


ARRAYS: Arrays = {
    "x": np.array([[0.0, -0.0, 1.5], [np.nan, np.inf, 1e-300]]),
    "who": np.array(["", "Zoë"]),
    "zeros": np.zeros(2, dtype=np.int64),
}


DIMS = {"x": ("row", "feature"), "who": ("row",), "zeros": ("row",)}


ATTRIBUTES: dict[str, JSON] = {
    "name": "first",
    "nested": {"seed": 2**127, "q": [0.1, None]},
}


def write(store: Location, name: str = "first", **options: Any) -> None:
    attributes = {**ATTRIBUTES, "name": name}
    given_options = {"kind": "demo", "schema_version": 3, **options}
    write_group(store, ARRAYS, DIMS, attributes, **given_options)


def read(store: Location) -> tuple[Arrays, dict[str, Any]]:
    return read_group(store, kind="demo", schema_version=3)


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
    dims = {name: tuple(f"{name}_{i}" for i in range(a.ndim)) for name, a in arrays.items()}
    write_group(store, arrays, dims, attributes, kind="any", schema_version=1)
    found, said = read_group(store, kind="any", schema_version=1)
    assert same(found, arrays)
    assert said == attributes


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
    dims = {"a": ("row", "column")[: array.ndim]}
    write_group(store, {"a": array}, dims, {}, kind="any", schema_version=1)
    found, _ = read_group(store, kind="any", schema_version=1)
    assert same(found, {"a": array})


def test_write_group__writes_plain_zarr_3(tmp_path: Path) -> None:
    write(tmp_path / "s")
    found = {str(path.relative_to(tmp_path / "s")) for path in (tmp_path / "s").rglob("*.json")}
    assert found == {"zarr.json", "x/zarr.json", "who/zarr.json", "zeros/zarr.json"}
    codecs = set()
    for name in found:
        metadata = json.loads((tmp_path / "s" / name).read_text())
        assert metadata["zarr_format"] == 3
        codecs |= {codec["name"] for codec in metadata.get("codecs", [])}
    assert codecs == {"bytes", "vlen-utf8", "zstd"}
    assert names(tmp_path) == {"s"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arrays": {"a/b": np.zeros(1)}}, "array name 'a/b'"),
        ({"arrays": {"x": np.array([["\ud800"]])}}, "not Unicode"),
        ({"arrays": {"x": np.array([["a"]], np.dtypes.StringDType(na_object=None))}}, "missing"),
        ({"arrays": {"x": np.array([["2020"]], dtype="M8[D]")}}, "datetime64"),
        ({"attributes": {"a": float("nan")}}, "plain JSON"),
    ],
)
def test_write_group__refuses_what_would_not_come_back(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    arguments: dict[str, Any] = {"arrays": ARRAYS, "dims": DIMS, "attributes": ATTRIBUTES, **change}
    with pytest.raises(CoresetError, match=message):
        write_group(tmp_path / "deep" / "s", **arguments, kind="demo", schema_version=1)
    assert snapshot(tmp_path) == {}


def test_groups__errors_of_other_file_systems() -> None:
    closed = "ftp://me:some-password@127.0.0.1:1/s"
    for url in (closed, f"simplecache::{closed}"):
        for use in (write, read):
            with pytest.raises(StoreError, match=r"could not be opened .*; check the URL") as found:
                use(url)
            assert "some-password" not in str(found.value)
    with pytest.raises(StoreError, match=r"could not be written .*; check the URL"):
        write("data:///s")
