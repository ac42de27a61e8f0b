"""How an array lies in a Zarr store: chunks of whole rows, packed by zstd.

A store may be damaged, or made to harm. So no more is decoded than what `write_arrays` writes, by
nothing but the two codecs that it uses, and sizes are compared before memory is taken: a chunk says
itself how many bytes it decodes to, no file is read that is longer than it can be, every chunk must
be there, and large arrays decode to no more than `_EXPANSION` times what is stored of all of them.
Arrays of which less would be stored, such as millions of equal rows, are written without zstd.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from daskcoreset.core.errors import StoreError
from daskcoreset.core.trust import REMEDY, are_trusted
from daskcoreset.core.typing import AnyArray

if TYPE_CHECKING:
    import zarr
    from zarr.abc.store import Store
    from zarr.core.buffer import Buffer
    from zarr.storage import StorePath

T = TypeVar("T")

# Between 8 and 32 MB a chunk read fastest in measurements; most coresets are one chunk.
_CHUNK_BYTES = 32 * 2**20

# Of arrays above this, together, every chunk is looked for before any is read.
_SMALL = 2**24

# Zstd packs up to 32,000-fold. Rows of a coreset are numbered, and numbers in order eightfold.
_EXPANSION = 1000

# What may be decoded from however little.
_FREE = 2**27

# No chunk of text is longer; zstd packs no more at a time.
_MOST_TEXT = 2**31

# Metadata of a tree with some 300,000 leaves.
MOST_METADATA = 2**28

# What fixed-width text may take without characters in it, beside what it takes with them.
_PADDING = 64

_CODECS = {"bytes", "vlen-utf8", "zstd"}

_UTF8_BYTES = 4  # of a character at most
_COUNT_BYTES = 4  # of the number of texts, and of the length of each


def spell_dtype(array: AnyArray) -> str:
    """Spell an array's dtype for the header, alike on every platform: in little-endian order.

    Examples
    --------
    >>> import numpy as np
    >>> spell_dtype(np.zeros(3)), spell_dtype(np.array(["red", "blue"]))
    ('<f8', '<U4')
    """
    return "string" if array.dtype.kind == "T" else array.dtype.newbyteorder("<").str


def find_padding_problem(n: int, width: int, n_characters: int) -> str | None:
    """Return why fixed-width text takes far more memory than what is in it; None if it does not.

    Parameters
    ----------
    n : int
        Texts.
    width : int
        Characters of each.
    n_characters : int
        Characters that are in them.

    Examples
    --------
    >>> find_padding_problem(1000, 100, 4000)
    >>> find_padding_problem(1, 10**9, 4)
    'its texts have room for 1,000,000,000 characters each, and hold 4 in all'
    """
    if n * width <= max(_SMALL, _PADDING * (n + n_characters)):
        return None
    return f"its texts have room for {width:,} characters each, and hold {n_characters:,} in all"


def write_arrays(
    group: zarr.Group, arrays: Mapping[str, AnyArray], dims: Mapping[str, tuple[str, ...]]
) -> None:
    """Write arrays as members of a group."""
    stored = [_write_array(group, name, array, dims[name]) for name, array in arrays.items()]
    total = sum(array.nbytes for array in arrays.values())
    # With room for what is counted otherwise when they are read.
    if total <= _FREE or total <= _EXPANSION // 2 * sum(map(_stored_bytes, stored)):
        return
    for name, array in arrays.items():
        if array.dtype.kind not in "UT":
            del group[name]
            _write_array(group, name, array, dims[name], packed=False)


def _stored_bytes(array: zarr.Array[Any]) -> int:
    return int(array.nbytes_stored())


def _write_array(
    group: zarr.Group, name: str, array: AnyArray, dims: tuple[str, ...], *, packed: bool = True
) -> zarr.Array[Any]:
    from zarr.codecs import ZstdCodec

    row_bytes = array.itemsize * math.prod(array.shape[1:])
    rows = max(1, _CHUNK_BYTES // max(1, row_bytes))
    # Fixed-width text and byte strings have no Zarr version 3 specification yet; the
    # variable-length type has one, and the header remembers the width.
    text = array.dtype.kind in "UT"
    stored = group.create_array(
        name,
        shape=array.shape,
        dtype="string" if text else array.dtype.newbyteorder("<"),
        chunks=tuple(max(1, min(n, rows) if i == 0 else n) for i, n in enumerate(array.shape)),
        # The checksum stops damaged text before its decoder believes a length of gigabytes.
        compressors=[ZstdCodec(checksum=True)] if packed else None,
        fill_value="" if text else 0,
        dimension_names=dims,
        # A chunk equal to the fill value would otherwise be left out, and -0j equals 0.
        config={"write_empty_chunks": True},
    )
    stored[...] = array
    return stored


def read_arrays(
    group: zarr.Group, specs: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, AnyArray, tuple[str, ...]]]:
    """Read members of a group that `write_arrays` wrote.

    Parameters
    ----------
    group : zarr.Group
    specs : mapping of str to mapping
        ``dtype`` and ``shape`` that each must have, by name.

    Yields
    ------
    name : str
    values : ndarray
    dims : tuple of str

    Raises
    ------
    ValueError
        Which names the array that is damaged.
    """
    found = {name: _named(name, partial(_Chunks.of, group, name, specs[name])) for name in specs}
    total = sum(chunks.n_bytes for chunks in found.values())
    if total > _SMALL:
        stored = sum(_named(name, chunks.stored_bytes) for name, chunks in found.items())
        if total > max(_FREE, _EXPANSION * stored) and not are_trusted():
            said = f"its arrays are declared to hold {total:,} bytes of {stored:,} that are stored"
            raise ValueError(f"{said}; {REMEDY}")
    for name, chunks in found.items():
        yield name, _named(name, partial(_read_array, chunks, specs[name])), chunks.dims


def _named(name: str, read: Callable[[], T]) -> T:
    # A damaged store makes zarr, its codecs and the file system raise almost anything.
    try:
        return read()
    except StoreError:
        raise
    except Exception as error:
        raise ValueError(f"array {name!r} does not read ({error})") from error


def _read_array(chunks: _Chunks, spec: Mapping[str, Any]) -> AnyArray:
    values = chunks.read()
    if spec["dtype"].startswith("<U"):
        width = np.dtype(spec["dtype"]).itemsize // _UTF8_BYTES
        n_characters = sum(map(len, values.ravel().tolist()))
        problem = find_padding_problem(values.size, width, n_characters)
        if problem and not are_trusted():
            raise ValueError(f"{problem}; {REMEDY}")
        values = values.astype(spec["dtype"])
    if spell_dtype(values) != spec["dtype"]:
        raise ValueError(f"its dtype is {values.dtype}, not {spec['dtype']}")
    return values


class _Chunks:
    """The chunks of an array, which are checked before they are decoded."""

    def __init__(self, array: zarr.Array[Any], dtype: str) -> None:
        described: Any = array.metadata.to_dict()
        codecs = [codec["name"] for codec in described["codecs"]]
        self.text = array.dtype.kind in "OT"
        self.packed = codecs != ["bytes"]
        if self.packed and codecs != ["vlen-utf8" if self.text else "bytes", "zstd"]:
            raise ValueError(f"its codecs are {codecs}, which are never written")
        endian = described["codecs"][0].get("configuration", {}).get("endian", "little")
        grid, keys = described["chunk_grid"]["name"], described["chunk_key_encoding"]
        if (endian, grid, keys["name"]) != ("little", "regular", "default"):
            raise ValueError("its chunks lie otherwise than they are written")
        self.place = array.store_path
        self.separator = keys.get("configuration", {}).get("separator", "/")
        self.shape, self.chunk = array.shape, array.chunks
        if any(chunk > max(1, n) for chunk, n in zip(self.chunk, self.shape, strict=True)):
            raise ValueError(f"its chunks of {self.chunk} are larger than its shape {self.shape}")
        self.dtype: Any = np.dtypes.StringDType() if self.text else array.dtype.newbyteorder("<")
        self.native: Any = self.dtype if self.text else array.dtype.newbyteorder("=")
        metadata: Any = array.metadata
        self.dims = tuple(metadata.dimension_names or ())
        size = math.prod(self.chunk)
        width = _COUNT_BYTES if self.text else array.dtype.itemsize
        self.n_bytes = math.prod(self.shape) * width
        self.least = size * width
        self.most = self.least
        if self.text:
            self.least += _COUNT_BYTES
            fixed = np.dtype(dtype).itemsize if dtype.startswith("<U") else _MOST_TEXT
            self.most = min(self.least + size * fixed, max(self.least, _MOST_TEXT))

    @classmethod
    def of(cls, group: zarr.Group, name: str, spec: Mapping[str, Any]) -> _Chunks:
        """Return the chunks of a member of a group, which must have a dtype and a shape."""
        import zarr

        check_stored(group.store_path / name / "zarr.json")
        array = group[name]
        if not isinstance(array, zarr.Array):
            raise TypeError("it is a group")
        if list(array.shape) != spec["shape"]:
            raise ValueError(f"its shape is {list(array.shape)}, not {spec['shape']}")
        return cls(array, spec["dtype"])

    def stored_bytes(self) -> int:
        """Return what is stored of all chunks; a missing one is an error."""
        from zarr.core.sync import sync

        total = 0
        for key in self._keys():
            try:
                total += sync(self.place.store.getsize(f"{self.place.path}/{key}"))
            except FileNotFoundError:
                raise ValueError(f"chunk {key} is missing") from None
        return total

    def read(self) -> AnyArray:
        """Return the array, in native byte order."""
        values: AnyArray | None = None
        for index in self._indices():
            block = self._decoded(self._key(index))
            if block.shape == self.shape:
                return block.astype(self.native, copy=False)
            if values is None:
                values = np.empty(self.shape, dtype=self.native)
            starts = [i * n for i, n in zip(index, self.chunk, strict=True)]
            bounds = zip(starts, self.chunk, self.shape, strict=True)
            place = tuple(slice(start, min(start + n, stop)) for start, n, stop in bounds)
            values[place] = block[tuple(slice(part.stop - part.start) for part in place)]
        return np.empty(self.shape, dtype=self.native) if values is None else values

    def _key(self, index: tuple[int, ...]) -> str:
        return str(self.separator).join(["c", *map(str, index)])

    def _indices(self) -> Iterator[tuple[int, ...]]:
        """Yield the indices of all chunks, one by one: a product would hold millions of numbers."""
        counts = tuple(-(-n // chunk) for n, chunk in zip(self.shape, self.chunk, strict=True))
        for number in range(math.prod(counts)):
            yield tuple(int(i) for i in np.unravel_index(number, counts))

    def _keys(self) -> Iterator[str]:
        return map(self._key, self._indices())

    def _decoded(self, key: str) -> AnyArray:
        from numcodecs.vlen import VLenUTF8
        from numcodecs.zstd import decompress

        # What zstd cannot pack becomes a little longer.
        longest = self.most + self.most // 128 + 4096 if self.packed else self.most
        data = read_at_most(self.place / key, longest)
        if data is None:
            raise ValueError(f"chunk {key} is missing")
        size = decoded_bytes(data) if self.packed else len(data)
        if not self.least <= size <= self.most:
            raise ValueError(f"chunk {key} decodes to {size:,} bytes, not {self.least:,}")
        if self.packed:
            data = decompress(data)
        if not self.text:
            return np.frombuffer(data, dtype=self.dtype).reshape(self.chunk)
        count = int.from_bytes(data[:_COUNT_BYTES], "little")
        if count != math.prod(self.chunk):
            raise ValueError(f"chunk {key} holds {count:,} texts")
        return np.asarray(VLenUTF8().decode(data)).astype(self.dtype).reshape(self.chunk)


def read_at_most(place: StorePath, most: int) -> bytes | None:
    """Return what is stored at a place; None for nothing.

    Raises
    ------
    StoreError
        It is longer than `most` bytes; nothing of it was read.
    """
    from zarr.core.buffer import default_buffer_prototype
    from zarr.core.sync import sync

    prototype = default_buffer_prototype()
    buffer = sync(get_at_most(place.store, place.path, prototype, most))
    return None if buffer is None else buffer.to_bytes()


async def get_at_most(store: Store, key: str, prototype: Any, most: int) -> Buffer | None:
    """Return what is stored; None for nothing, and an error where it is longer."""
    if isinstance(store, Bounded):
        return await store.get_at_most(key, prototype, most)
    await _check_size(store, key, most)
    return await store.get(key, prototype)


def check_stored(place: StorePath, most: int = MOST_METADATA) -> None:
    """Check what is stored at a place before it is read; nothing is no error.

    Raises
    ------
    StoreError
        It is longer than `most` bytes.
    """
    from zarr.core.sync import sync

    # Where it has a deadline, the store behind it decides; `Bounded` ones look for themselves.
    if not isinstance(getattr(place.store, "timed", place.store), Bounded):
        sync(_check_size(place.store, place.path, most))


async def _check_size(store: Store, key: str, most: int) -> None:
    from zarr.storage import ZipStore

    if isinstance(store, ZipStore):  # it knows a size by reading all
        return
    with suppress(FileNotFoundError):
        check_length(f"{store}/{key}", await store.getsize(key), most)


def check_length(where: str, size: int, most: int) -> None:
    """Check, before it is read, that what is stored is no longer than it can be.

    Examples
    --------
    >>> check_length("s/zarr.json", 2**40, MOST_METADATA)
    Traceback (most recent call last):
    ...
    daskcoreset.errors.StoreError: s/zarr.json has 1,099,511,627,776 bytes, and can have ...
    """
    if size > most and not are_trusted():
        msg = f"{where} has {size:,} bytes, and can have {most:,} at most; {REMEDY}, or restore it"
        raise StoreError(f"{msg} from a copy")


@runtime_checkable
class Bounded(Protocol):
    """A Zarr store that looks at sizes before it reads."""

    async def get_at_most(self, key: str, prototype: Any, most: int) -> Buffer | None:
        """Return what is stored; None for nothing, and an error where it is longer."""


def decoded_bytes(packed: bytes) -> int:
    """Return the number of bytes that a zstd frame says that it decodes to.

    Raises
    ------
    ValueError
        It does not say, or it is no such frame.

    References
    ----------
    RFC 8878, section 3.1.1.

    Examples
    --------
    >>> from numcodecs.zstd import compress
    >>> decoded_bytes(compress(bytes(70_000))), decoded_bytes(compress(b"a"))
    (70000, 1)
    """
    if len(packed) < 6 or packed[:4] != b"\x28\xb5\x2f\xfd":
        raise ValueError("it is no zstd frame")
    descriptor = packed[4]
    single_segment, flag = descriptor >> 5 & 1, descriptor >> 6
    start = 5 + (not single_segment) + (0, 1, 2, 4)[descriptor & 3]
    width = (single_segment, 2, 4, 8)[flag]
    if not width or len(packed) < start + width:
        raise ValueError("its zstd frame does not say how large it is")
    size = int.from_bytes(packed[start : start + width], "little")
    return size + 256 if width == 2 else size
