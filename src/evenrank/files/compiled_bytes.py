"""What compiled loops over bytes share: hashes, and many bytes at once.

The functions are a few instructions each, of vectors where the machine has them; the definition in plain Python is
``py_func``. The first byte is the lowest bit.
"""

from __future__ import annotations

import numpy as np

from .compiled import compiled
from .errors import require
from .hashing import FNV_OFFSET, FNV_PRIME

require("a loop over bytes", "fast", "numba", "llvmlite")

from llvmlite import ir  # noqa: E402
from numba import types  # noqa: E402
from numba.core import cgutils, config  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

# The compiler infers the types here; those of the arguments are in the docstrings.
# mypy: ignore-errors


WIDTH = 64
_BYTE, _WORD, _NUMBER = ir.IntType(8), ir.IntType(64), ir.IntType(32)
_LANES = ir.VectorType(_BYTE, WIDTH)


def _equal_mask(data, place, byte):
    return np.uint64(sum(int(data[place + np.uint64(i)] == byte) << i for i in range(WIDTH)))


def _within_mask(data, place, fold, first, count):
    return np.uint64(sum(int(0 <= (int(data[place + np.uint64(i)]) | fold) - first < count) << i for i in range(WIDTH)))


def _eight_bytes(data, place):
    return np.uint64(sum(int(data[place + np.uint64(i)]) << (8 * i) for i in range(8)))


def _lowest_bit(mask):
    return np.uint64((int(mask) & -int(mask)).bit_length() - 1 if mask else WIDTH)


def _count_bits(mask):
    return np.uint64(int(mask).bit_count())


def _copy_bytes(out, at, data, place, count):
    for i in range(int(count)):
        out[at + np.uint64(i)] = data[place + np.uint64(i)]


def _loaded(context, builder, kind, array, place, wanted):
    start = context.make_array(kind)(context, builder, array).data
    return builder.load(builder.bitcast(builder.gep(start, [place]), wanted.as_pointer()), align=1)


def _each(builder, value):
    """A vector of 64 times the byte."""
    one = builder.insert_element(ir.Constant(_LANES, ir.Undefined), value, ir.Constant(_NUMBER, 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_NUMBER, WIDTH), [0] * WIDTH))


@intrinsic
def equal_mask(context, data, place, byte):
    """Where ``data[place : place + 64]`` uint8 are ``byte``."""

    def build(context, builder, signature, arguments):
        array, start, value = arguments
        lanes = _loaded(context, builder, signature.args[0], array, start, _LANES)
        return builder.bitcast(builder.icmp_unsigned("==", lanes, _each(builder, value)), _WORD)

    return types.uint64(data, types.uint64, types.uint8), build


@intrinsic
def within_mask(context, data, place, fold, first, count):
    """Where ``data[place : place + 64]`` uint8, with the bits ``fold`` set, are one of ``count`` values from
    ``first``."""

    def build(context, builder, signature, arguments):
        array, start, *values = arguments
        lanes = _loaded(context, builder, signature.args[0], array, start, _LANES)
        fold, first, count = (_each(builder, value) for value in values)
        lanes = builder.sub(builder.or_(lanes, fold), first)
        return builder.bitcast(builder.icmp_unsigned("<", lanes, count), _WORD)

    return types.uint64(data, types.uint64, types.uint8, types.uint8, types.uint8), build


@intrinsic
def eight_bytes(context, data, place):
    """``data[place : place + 8]`` uint8 as a number uint64, the first byte the lowest."""

    def build(context, builder, signature, arguments):
        return _loaded(context, builder, signature.args[0], *arguments, _WORD)

    return types.uint64(data, types.uint64), build


@intrinsic
def lowest_bit(context, mask):
    """How many zeros are below the lowest one of ``mask`` uint64: 64 if it has none."""

    def build(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), build


@intrinsic
def count_bits(context, mask):
    """How many ones ``mask`` uint64 has."""

    def build(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


@intrinsic
def copy_bytes(context, out, at, data, place, count):
    """Copies ``count`` bytes, ``data[place:]``, to ``out[at:]`` (uint8 both, no part of each other)."""

    def build(context, builder, signature, arguments):
        out, at, data, place, count = arguments
        to, source = (
            builder.gep(context.make_array(kind)(context, builder, array).data, [start])
            for kind, array, start in ((signature.args[0], out, at), (signature.args[2], data, place))
        )
        cgutils.raw_memcpy(builder, to, source, count, 1)
        return context.get_dummy_value()

    return types.void(out, types.uint64, data, types.uint64, types.uint64), build


for _name in ("copy_bytes", "equal_mask", "within_mask", "eight_bytes", "lowest_bit", "count_bits"):
    globals()[_name].py_func = globals()[f"_{_name}"]
    if config.DISABLE_JIT:
        globals()[_name] = globals()[f"_{_name}"]


OFFSET = np.uint64(FNV_OFFSET)
PRIME = np.uint64(FNV_PRIME)


@compiled(forceinline=True, _nrt=False)
def mixed(value):
    """``mix`` of a value uint64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled(forceinline=True, _nrt=False)
def hashed(data, start, end, value):
    """``fnv`` of the bytes ``data`` uint8 from ``start`` to ``end``, from the start ``value`` uint64."""
    for place in range(start, end):
        value = (value ^ np.uint64(data[place])) * PRIME
    return value
