"""How an array lies in a Zarr store: chunks of whole rows, packed by zstd.

A store may be damaged, or made to harm. So no more is decoded than what `write_array` writes, by
nothing but the two codecs that it uses, and sizes are compared before memory is taken: a chunk says
itself how many bytes it decodes to, no chunk decodes to more than `_EXPANSION` times what is
stored, and every chunk must be there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.typing import AnyArray

if TYPE_CHECKING:
    import zarr

# Between 8 and 32 MB a chunk read fastest in measurements; most coresets are one chunk.
_CHUNK_BYTES = 32 * 2**20

# Zstd packs at most 128 KiB into a block, which takes at least four bytes.
_EXPANSION = 2**17 // 4

# Arrays above this are compared with what is stored of them before any of it is read.
_SMALL = 2**24

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


def write_array(group: zarr.Group, name: str, array: AnyArray, dims: tuple[str, ...]) -> None:
    """Write an array as a member of a group."""
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
        compressors=[ZstdCodec(checksum=True)],
        fill_value="" if text else 0,
        dimension_names=dims,
        # A chunk equal to the fill value would otherwise be left out, and -0j equals 0.
        config={"write_empty_chunks": True},
    )
    stored[...] = array


def read_array(
    group: zarr.Group, name: str, spec: Mapping[str, Any]
) -> tuple[AnyArray, tuple[str, ...]]:
    """Read a member of a group that `write_array` wrote.

    Parameters
    ----------
    group : zarr.Group
    name : str
    spec : mapping
        ``dtype`` and ``shape`` that it must have.

    Returns
    -------
    values : ndarray
    dims : tuple of str

    Raises
    ------
    Exception
        Of nearly any kind, where the store is damaged.
    """
    import zarr

    array = group[name]
    if not isinstance(array, zarr.Array):
        raise TypeError("it is a group")
    if list(array.shape) != spec["shape"]:
        raise ValueError(f"its shape is {list(array.shape)}, not {spec['shape']}")
    values = _Chunks(array, spec["dtype"]).read()
    if spec["dtype"].startswith("<U"):
        width = np.dtype(spec["dtype"]).itemsize // _UTF8_BYTES
        n_characters = sum(map(len, values.ravel().tolist()))
        if problem := find_padding_problem(values.size, width, n_characters):
            raise ValueError(problem)
        values = values.astype(spec["dtype"])
    if spell_dtype(values) != spec["dtype"]:
        raise ValueError(f"its dtype is {values.dtype}, not {spec['dtype']}")
    metadata: Any = array.metadata
    return values, tuple(metadata.dimension_names or ())


class _Chunks:
    """The chunks of an array, which are checked before they are decoded."""

    def __init__(self, array: zarr.Array[Any], dtype: str) -> None:
        described: Any = array.metadata.to_dict()
        codecs = [codec["name"] for codec in described["codecs"]]
        self.text = array.dtype.kind in "OT"
        if codecs != ["vlen-utf8" if self.text else "bytes", "zstd"]:
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
        size = math.prod(self.chunk)
        self.least = size * (_COUNT_BYTES if self.text else array.dtype.itemsize)
        self.most: float = self.least
        if self.text:
            width = np.dtype(dtype).itemsize if dtype.startswith("<U") else math.inf
            self.least += _COUNT_BYTES
            self.most = self.least + size * width

    def read(self) -> AnyArray:
        """Return the array, in native byte order."""
        counts = [-(-n // chunk) for n, chunk in zip(self.shape, self.chunk, strict=True)]
        if math.prod(self.shape) * self.dtype.itemsize > _SMALL:
            for index in _indices(counts):
                self._check_size(self._key(index))
        values: AnyArray | None = None
        for index in _indices(counts):
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

    def _check_size(self, key: str) -> None:
        from zarr.core.sync import sync

        try:
            stored = sync(self.place.store.getsize(f"{self.place.path}/{key}"))
        except FileNotFoundError:
            stored = 0
        if stored * _EXPANSION < self.least:
            raise ValueError(f"chunk {key} is declared to hold {self.least:,} bytes of {stored:,}")

    def _decoded(self, key: str) -> AnyArray:
        from numcodecs.vlen import VLenUTF8
        from numcodecs.zstd import decompress
        from zarr.core.buffer import default_buffer_prototype
        from zarr.core.sync import sync

        stored = sync((self.place / key).get(default_buffer_prototype()))
        if stored is None:
            raise ValueError(f"chunk {key} is missing")
        packed = stored.to_bytes()
        size = decoded_bytes(packed)
        if not self.least <= size <= self.most:
            raise ValueError(f"chunk {key} decodes to {size:,} bytes, not {self.least:,}")
        data = decompress(packed)
        if not self.text:
            return np.frombuffer(data, dtype=self.dtype).reshape(self.chunk)
        count = int.from_bytes(data[:_COUNT_BYTES], "little")
        if count != math.prod(self.chunk):
            raise ValueError(f"chunk {key} holds {count:,} texts")
        return np.asarray(VLenUTF8().decode(data)).astype(self.dtype).reshape(self.chunk)


def _indices(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the indices of all chunks, one by one: a product would hold millions of numbers."""
    for number in range(math.prod(counts)):
        yield tuple(int(i) for i in np.unravel_index(number, tuple(counts)))


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
