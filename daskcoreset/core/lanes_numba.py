"""Pieces of loops, in vectors of the processor.

numba turns loops along columns into vectors by itself. Five things it does number by number, or by
way of memory, and each takes more time than the rest of such a loop: laying rows out as columns,
sums of several loops at once, sums of columns that are no multiple of a vector, sums along short
rows, and what is done along one of them. They are therefore written in the language of its
compiler, with vectors that every processor splits into its own. The bits are those of the plain
loop.
"""

from __future__ import annotations

from typing import Any

from daskcoreset.core.jit_numba import IN_ORDER, part  # before numba, which it imports whole
from daskcoreset.core.typing import AnyArray, FloatArray

# isort: split
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

# Decorates what writes a piece of a loop; it is called with fewer arguments than it takes.
_piece: Any = intrinsic

# Bytes of a vector of rows: four as sums, and one of rows, fit into sixteen registers of half the
# length, which most processors have.
_BYTES = 64

# Centers that meet a vector of rows at once.
CENTERS = 4

# Columns that are laid out, or added up, at once.
COLUMNS = 4

# Rows that are added between a load and a store of the sums.
ROWS = 8

_INDEX, _NUMBER = ir.IntType(64), ir.IntType(32)


def _index(value: int) -> Any:
    return ir.Constant(_INDEX, value)


def _shuffle(builder: Any, first: Any, second: Any, order: list[int]) -> Any:
    """Return numbers of two vectors, counted through both, in the given order."""
    mask = ir.Constant(ir.VectorType(_NUMBER, len(order)), order)
    return builder.shuffle_vector(first, second, mask)


def _repeat(builder: Any, value: Any, count: int) -> Any:
    """Return a vector of equal numbers."""
    empty = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    first = builder.insert_element(empty, value, ir.Constant(_NUMBER, 0))
    return _shuffle(builder, first, empty, [0] * count)


def _join(builder: Any, parts: list[Any]) -> Any:
    """Put vectors, a power of two of them, after one another."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    first, second = _join(builder, parts[:half]), _join(builder, parts[half:])
    return _shuffle(builder, first, second, list(range(2 * first.type.count)))


def _load(builder: Any, address: Any, kind: Any, size: int) -> Any:
    """Return the vector at an address where numbers of `size` bytes lie."""
    value = builder.load(builder.bitcast(address, kind.as_pointer()))
    value.align = size
    return value


def _store(builder: Any, value: Any, address: Any, size: int) -> None:
    stored = builder.store(value, builder.bitcast(address, value.type.as_pointer()))
    stored.align = size


def _count(dtype: Any) -> int:
    """Numbers in a vector."""
    return int(_BYTES // (dtype.bitwidth // 8))


def _are_side_by_side(array: Any) -> bool:
    """Whether the numbers of an array of this type are floats without a gap."""
    return bool(array.layout == "C" and isinstance(array.dtype, types.Float))


@_piece  # type: ignore[untyped-decorator]
def lanes(typing: Any, values: Any) -> Any:
    """Return how many numbers of the dtype of `values` are in a vector."""
    del typing
    return types.intp(values), lambda *_: _index(_count(values.dtype))


@_piece  # type: ignore[untyped-decorator]
def _turn(typing: Any, points: Any, row: Any, tile: Any, at: Any) -> Any:
    """Lay as many rows out as there are lanes, from `row` on. Return for how many columns.

    Four rows of four columns at a time are turned in registers, and joined with their neighbours.
    Without neighbouring floats in `points` there are none.
    """
    del typing, row, at
    signature = types.intp(points, types.intp, tile, types.intp)
    if not _are_side_by_side(points):
        return signature, lambda *_: _index(0)
    size, own_size = points.dtype.bitwidth // 8, tile.dtype.bitwidth // 8
    count = _count(tile.dtype)

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        wide = ir.VectorType(context.get_data_type(tile.dtype), COLUMNS)
        narrow = ir.VectorType(context.get_data_type(points.dtype), COLUMNS)
        rows = context.make_array(points)(context, builder, args[0])
        room = context.make_array(tile)(context, builder, args[2])
        d = builder.extract_value(rows.shape, 1)
        source = builder.gep(rows.data, [builder.mul(args[1], d)])
        target = builder.gep(room.data, [args[3]])

        def some(i: int, j: Any) -> Any:
            at = builder.add(builder.mul(d, _index(i)), j)
            numbers = _load(builder, builder.gep(source, [at]), narrow, size)
            if own_size > size:
                return builder.fpext(numbers, wide)
            return builder.fptrunc(numbers, wide) if own_size < size else numbers

        stop = builder.and_(d, _index(-COLUMNS))
        steps = (_index(0), stop, _index(COLUMNS))
        with cgutils.for_range_slice(builder, *steps, intp=_INDEX) as (j, _count_up):
            columns: list[list[Any]] = [[] for _ in range(COLUMNS)]
            for i in range(0, count, 4):
                a, b, c, e = (some(i + k, j) for k in range(4))
                halves = (
                    (_shuffle(builder, a, b, order), _shuffle(builder, c, e, order))
                    for order in ([0, 4, 1, 5], [2, 6, 3, 7])
                )
                for k, (first, second) in enumerate(halves):
                    columns[2 * k].append(_shuffle(builder, first, second, [0, 1, 4, 5]))
                    columns[2 * k + 1].append(_shuffle(builder, first, second, [2, 3, 6, 7]))
            for k, parts in enumerate(columns):
                at = builder.mul(builder.add(j, _index(k)), _index(count))
                _store(builder, _join(builder, parts), builder.gep(target, [at]), own_size)
        return stop

    return signature, generate


@part(IN_ORDER)
def lay_out(
    points: AnyArray, start: int, stop: int, tile: AnyArray
) -> None:  # pragma: no cover - runs compiled
    """Fill `tile` with rows of `points`, in the dtype of `tile`, which is flat.

    As many rows as there are lanes are a panel, of d times as many numbers, in which those of a
    column lie side by side. Of the last panel some lanes may stay as they are.
    """
    d, width = points.shape[1], lanes(tile)
    for row in range(start, stop, width):
        rows, panel, ready = min(width, stop - row), (row - start) * d, 0
        if rows == width:
            ready = _turn(points, row, tile, panel)
        for i in range(rows):
            for j in range(ready, d):
                tile[panel + j * width + i] = points[row + i, j]


@_piece  # type: ignore[untyped-decorator]
def meet_centers(  # noqa: PLR0917 - numba takes arguments by position
    typing: Any,
    tile: Any,
    at: Any,
    centers: Any,
    first: Any,
    smallest: Any,
    label: Any,
    lane: Any,
) -> Any:
    """Let `CENTERS` centers from `first` on meet the panel at a place in `tile`.

    Where one is nearer than `smallest`, from `lane` on, that becomes its squared distance and
    `label`, of int32, its number. The earlier one of equals stays. Past the last center that one
    meets the rows again. Squares are added column by column, in the dtype of `tile`, `centers` and
    `smallest`.
    """
    del typing, at, first, lane
    if centers.layout != "C":
        raise TypingError("centers must be C-contiguous")
    size, count = centers.dtype.bitwidth // 8, _count(centers.dtype)
    flags = tuple(IN_ORDER)

    def generate(context: Any, builder: Any, called: Any, args: Any) -> Any:
        numbers = ir.VectorType(context.get_data_type(centers.dtype), count)
        zeros = ir.Constant(numbers, [0.0] * count)

        def data(i: int, at: Any) -> Any:
            array = context.make_array(called.args[i])(context, builder, args[i])
            return builder.gep(array.data, [at])

        shape = context.make_array(centers)(context, builder, args[2]).shape
        last = builder.sub(builder.extract_value(shape, 0), _index(1))
        d = builder.extract_value(shape, 1)
        names, rows, totals = [], [], []
        for k in range(CENTERS):
            name = builder.add(args[3], _index(k))
            name = builder.select(builder.icmp_signed("<", name, last), name, last)
            names.append(name)
            rows.append(data(2, builder.mul(name, d)))
            # The compiler keeps these in registers.
            totals.append(cgutils.alloca_once(builder, numbers))  # type: ignore[no-untyped-call]
            builder.store(zeros, totals[-1])
        panel = data(0, args[1])
        with cgutils.for_range(builder, d, intp=_INDEX) as loop:
            place = builder.gep(panel, [builder.mul(loop.index, _index(count))])
            column = _load(builder, place, numbers, size)
            for row, total in zip(rows, totals, strict=True):
                number = builder.load(builder.gep(row, [loop.index]))
                gap = builder.fsub(column, _repeat(builder, number, count), flags=flags)
                square = builder.fmul(gap, gap, flags=flags)
                builder.store(builder.fadd(builder.load(total), square, flags=flags), total)
        nearest, owner = data(4, args[6]), data(5, args[6])
        best = _load(builder, nearest, numbers, size)
        own = _load(builder, owner, ir.VectorType(_NUMBER, count), 4)
        for name, total in zip(names, totals, strict=True):
            found = builder.load(total)
            nearer = builder.fcmp_ordered("<", found, best)
            best = builder.select(nearer, found, best)
            label_of = _repeat(builder, builder.trunc(name, _NUMBER), count)
            own = builder.select(nearer, label_of, own)
        _store(builder, best, nearest, size)
        _store(builder, own, owner, 4)
        return context.get_dummy_value()

    index = types.intp
    return types.void(tile, index, centers, index, smallest, label, index), generate


@_piece  # type: ignore[untyped-decorator]
def can_be_loaded(typing: Any, points: Any, weights: Any) -> Any:
    """Return whether rows are floats side by side, and weights float64."""
    del typing
    found = _are_side_by_side(points) and _are_side_by_side(weights)
    found = found and weights.dtype == types.float64
    return types.boolean(points, weights), lambda *_: ir.Constant(ir.IntType(1), int(found))


@part(IN_ORDER)
def whole_rows(
    points: AnyArray, weights: FloatArray, start: int, stop: int
) -> int:  # pragma: no cover - runs compiled
    """Return up to which row `ROWS` at a time may be given to what adds gaps.

    Where columns do not fill the last of their fours, these read into the next rows, so that the
    last ones of all are left to a plain loop, three of one column; so are all of arrays that cannot
    be loaded as they are.
    """
    d = points.shape[1]
    lacking = -d % COLUMNS
    n = min(stop, points.shape[0] - (lacking + d - 1) // max(d, 1))
    if n < start or not can_be_loaded(points, weights):
        return start
    return int(start + (n - start) // ROWS * ROWS)


def _add_rows(is_weighted: bool) -> Any:
    """Return a piece that adds gaps of `ROWS` rows, times weights, to `gaps`, and their squares.

    The squares to `squares`; of `COLUMNS` columns, from `row` and `column` on, row by row in
    float64. The last three arrays are `COLUMNS` - 1 numbers longer than rows; what comes behind
    these is of no use. Not weighted are rows whose weights are one: the bits are the same.
    """

    def add(  # noqa: PLR0917 - numba takes arguments by position
        typing: Any,
        points: Any,
        weights: Any,
        row: Any,
        center: Any,
        gaps: Any,
        squares: Any,
        column: Any,
    ) -> Any:
        del typing, row, column
        index = types.intp
        signature = types.void(points, weights, index, center, gaps, squares, index)
        if not isinstance(points.dtype, types.Float):  # it is not called, but compiled
            return signature, lambda context, *_: context.get_dummy_value()
        size, flags = points.dtype.bitwidth // 8, tuple(IN_ORDER)

        def generate(context: Any, builder: Any, called: Any, args: Any) -> Any:
            wide = ir.VectorType(ir.DoubleType(), COLUMNS)
            narrow = ir.VectorType(context.get_data_type(points.dtype), COLUMNS)
            rows = context.make_array(points)(context, builder, args[0])
            d = builder.extract_value(rows.shape, 1)

            def place(i: int, at: Any) -> Any:
                array = context.make_array(called.args[i])(context, builder, args[i])
                return builder.gep(array.data, [at])

            middle = _load(builder, place(3, args[6]), wide, 8)
            targets = [place(i, args[6]) for i in (4, 5)]
            totals = [_load(builder, target, wide, 8) for target in targets]
            for k in range(ROWS):
                i = builder.add(args[2], _index(k))
                at = builder.add(builder.mul(i, d), args[6])
                numbers = _load(builder, builder.gep(rows.data, [at]), narrow, size)
                if size < 8:
                    numbers = builder.fpext(numbers, wide)
                gap = term = builder.fsub(numbers, middle, flags=flags)
                if is_weighted:
                    weight = _repeat(builder, builder.load(place(1, i)), COLUMNS)
                    term = builder.fmul(weight, gap, flags=flags)
                totals[0] = builder.fadd(totals[0], term, flags=flags)
                term = builder.fmul(term, gap, flags=flags)
                totals[1] = builder.fadd(totals[1], term, flags=flags)
            for target, total in zip(targets, totals, strict=True):
                _store(builder, total, target, 8)
            return context.get_dummy_value()

        return signature, generate

    return _piece(add)


add_gaps, add_weighted_gaps = _add_rows(False), _add_rows(True)


# Rows along which sums are formed at once.
AT_ONCE = 4


def _sum_rows(is_square: bool) -> Any:
    """Return a piece that fills in sums along `AT_ONCE` rows, of float32 or float64 in C order.

    Of squared gaps from `center`, or of gaps times `vector`. Sums are of float64, every fourth
    column in one, whatever the processor has. `rows` are their numbers, and `out` is filled from
    `place` on.
    """

    def fill(  # noqa: PLR0917 - numba takes arguments by position
        typing: Any, points: Any, rows: Any, center: Any, vector: Any, out: Any, place: Any
    ) -> Any:
        del typing, rows, place
        numbers = types.UniTuple(types.intp, AT_ONCE)  # type: ignore[no-untyped-call]
        signature = types.void(points, numbers, center, vector, out, types.intp)
        if not _are_side_by_side(points):  # it is not called, but compiled
            return signature, lambda context, *_: context.get_dummy_value()
        size, flags = points.dtype.bitwidth // 8, tuple(IN_ORDER)

        def generate(context: Any, builder: Any, called: Any, args: Any) -> Any:
            arrays = [
                context.make_array(called.args[i])(context, builder, args[i]) for i in (0, 2, 3, 4)
            ]
            first, middle, along, target = (array.data for array in arrays)
            d = builder.extract_value(arrays[0].shape, 1)
            starts = [
                builder.gep(first, [builder.mul(builder.extract_value(args[1], k), d)])
                for k in range(AT_ONCE)
            ]
            one, own = context.get_data_type(points.dtype), ir.DoubleType()
            ready, sums = _index(0), []
            for count in (COLUMNS, 1):
                wide, narrow = ir.VectorType(own, count), ir.VectorType(one, count)
                # The compiler keeps these in registers.
                totals = [
                    cgutils.alloca_once(builder, wide)  # type: ignore[no-untyped-call]
                    for _ in starts
                ]
                for total in totals:
                    builder.store(ir.Constant(wide, [0.0] * count), total)
                stop = builder.and_(d, _index(-count))
                steps = (ready, stop, _index(count))
                with cgutils.for_range_slice(builder, *steps, intp=_INDEX) as (j, _count_up):
                    less = _load(builder, builder.gep(middle, [j]), wide, 8)
                    times = _load(builder, builder.gep(along, [j]), wide, 8)
                    for start, total in zip(starts, totals, strict=True):
                        numbers = _load(builder, builder.gep(start, [j]), narrow, size)
                        if size < 8:
                            numbers = builder.fpext(numbers, wide)
                        gap = builder.fsub(numbers, less, flags=flags)
                        term = builder.fmul(gap, gap if is_square else times, flags=flags)
                        builder.store(builder.fadd(builder.load(total), term, flags=flags), total)
                sums.append([builder.load(total) for total in totals])
                ready = stop

            def halved(first: Any, second: Any) -> Any:
                """Add neighbours up, those of the first vector before those of the second."""
                even, odd = (
                    _shuffle(builder, first, second, [k, k + 2, k + 4, k + 6]) for k in (0, 1)
                )
                return builder.fadd(even, odd, flags=flags)

            a, b, c, e = sums[0]
            fours, rest = halved(halved(a, b), halved(c, e)), _join(builder, sums[1])
            total = builder.fadd(fours, rest, flags=flags)
            _store(builder, total, builder.gep(target, [args[5]]), 8)
            return context.get_dummy_value()

        return signature, generate

    return _piece(fill)


sum_squares, sum_products = _sum_rows(True), _sum_rows(False)


# Columns of the right matrix in a product that is formed at once.
RIGHT = 8

# Rows of the left one: their sums fill half of the registers that most processors have.
LEFT = 4


def _address(context: Any, builder: Any, kind: Any, value: Any, *place: Any) -> Any:
    """Return where a number of an array lies, whatever its layout."""
    array = context.make_array(kind)(context, builder, value)
    find: Any = cgutils.get_item_pointer
    return find(context, builder, kind, array, list(place), wraparound=False)


def _along_row(is_sum: bool) -> Any:
    """Return a piece that goes along a row of `source`, and fills or adds to one of `target`.

    It fills in numbers of `source` less those of `center`, then less those of `beside`, times a
    factor; or it adds the numbers times the factor, and of `center` only the length counts: that of
    the row. Both in float64.
    """

    def change(  # noqa: PLR0917 - numba takes arguments by position
        typing: Any,
        source: Any,
        row: Any,
        center: Any,
        beside: Any,
        factor: Any,
        target: Any,
        place: Any,
    ) -> Any:
        del typing, row, factor, place
        if not isinstance(source.dtype, types.Float) or source.dtype.bitwidth > 64:
            raise TypingError("rows must be float32 or float64")
        index = types.intp
        signature = types.void(source, index, center, beside, types.float64, target, index)
        size, flags = source.dtype.bitwidth // 8, tuple(IN_ORDER)

        def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
            kinds = (center, beside)
            less = [context.make_array(kinds[i])(context, builder, args[2 + i]) for i in range(2)]
            d = builder.extract_value(less[0].shape, 0)
            one, own = context.get_data_type(source.dtype), ir.DoubleType()

            def some(j: Any, count: int) -> None:
                wide = ir.VectorType(own, count)
                at = _address(context, builder, source, args[0], args[1], j)
                numbers = _load(builder, at, ir.VectorType(one, count), size)
                if size < 8:
                    numbers = builder.fpext(numbers, wide)
                factor = _repeat(builder, args[4], count)
                at = _address(context, builder, target, args[5], args[6], j)
                if is_sum:
                    numbers = builder.fmul(numbers, factor, flags=flags)
                    numbers = builder.fadd(_load(builder, at, wide, 8), numbers, flags=flags)
                else:
                    for other in less:
                        some_of_it = _load(builder, builder.gep(other.data, [j]), wide, 8)
                        numbers = builder.fsub(numbers, some_of_it, flags=flags)
                    numbers = builder.fmul(numbers, factor, flags=flags)
                _store(builder, numbers, at, 8)

            ready = _index(0)
            for count in (8, 4, 1) if _are_side_by_side(source) else (1,):
                stop = builder.and_(d, _index(-count))
                steps = (ready, stop, _index(count))
                with cgutils.for_range_slice(builder, *steps, intp=_INDEX) as (j, _count_up):
                    some(j, count)
                ready = stop
            return context.get_dummy_value()

        return signature, generate

    return _piece(change)


subtract_from_row, add_row = _along_row(False), _along_row(True)


def _products(is_turned: bool) -> Any:
    """Return a piece that fills in products of `LEFT` rows with `RIGHT` columns, in float64.

    Of `left`, or of its transpose, the rows are those from `i` on, and of `right` the columns those
    from `k` on. The first `terms` terms are added up in order, and sums are kept in registers.
    """

    def multiply(  # noqa: PLR0917 - numba takes arguments by position
        typing: Any, left: Any, i: Any, right: Any, k: Any, terms: Any, out: Any
    ) -> Any:
        del typing, i, k, terms
        index, flags = types.intp, tuple(IN_ORDER)

        def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
            numbers = ir.VectorType(ir.DoubleType(), RIGHT)
            zeros = ir.Constant(numbers, [0.0] * RIGHT)
            rows = [builder.add(args[1], _index(r)) for r in range(LEFT)]
            # The compiler keeps these in registers.
            totals = [
                cgutils.alloca_once(builder, numbers)  # type: ignore[no-untyped-call]
                for _ in rows
            ]
            for total in totals:
                builder.store(zeros, total)
            with cgutils.for_range(builder, args[4], intp=_INDEX) as loop:
                at = _address(context, builder, right, args[2], loop.index, args[3])
                vector = _load(builder, at, numbers, 8)
                for row, total in zip(rows, totals, strict=True):
                    place = (loop.index, row) if is_turned else (row, loop.index)
                    number = builder.load(_address(context, builder, left, args[0], *place))
                    term = builder.fmul(_repeat(builder, number, RIGHT), vector, flags=flags)
                    builder.store(builder.fadd(builder.load(total), term, flags=flags), total)
            for row, total in zip(rows, totals, strict=True):
                at = _address(context, builder, out, args[5], row, args[3])
                _store(builder, builder.load(total), at, 8)
            return context.get_dummy_value()

        return types.void(left, index, right, index, index, out), generate

    return _piece(multiply)


products, turned_products = _products(False), _products(True)
