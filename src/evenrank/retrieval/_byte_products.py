"""Sums of products of bytes, by an instruction of the processor that the compiler does not choose by itself."""

# The compiler infers the types here; the docstrings list those of the arguments.
# mypy: ignore-errors

from __future__ import annotations

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

ROWS = 32
"""Rows multiplied at once: two registers of 16 sums."""
POINTS = 8
"""Points multiplied at once."""

_REGISTERS = ROWS // 16
_WORD, _SIZE = ir.IntType(32), ir.IntType(64)
_LANES, _BYTES = ir.VectorType(_WORD, 16), ir.VectorType(ir.IntType(8), 64)


def able() -> bool:
    """Whether the processor has the instruction (AVX-512 VNNI), and compiled loops may use what it has.

    Versions of LLVM differ in how they type its operands: in those before 22 it is not used.
    """
    if config.DISABLE_JIT or not config.ENABLE_AVX or config.CPU_NAME or config.CPU_FEATURES:
        return False
    return binding.llvm_version_info[0] >= 22 and bool(binding.get_host_cpu_features().get("avx512vnni", False))


@intrinsic
def multiply(_, rows, points, groups, start, sums):
    """Writes ``sums`` [POINTS, ROWS] int32: ``start`` [ROWS] int32 plus the products of ``rows`` [groups, ROWS, 4] int8
    and ``points`` [groups, POINTS, 4] uint8; all of them contiguous."""

    def generate(context, builder, signature, arguments):
        def place(number, kind):
            array = cgutils.create_struct_proxy(signature.args[number])(context, builder, arguments[number])
            return builder.bitcast(array.data, kind.as_pointer())

        def load(array, at, width, column):
            at = builder.add(builder.mul(at, ir.Constant(_SIZE, width)), ir.Constant(_SIZE, column))
            return builder.load(builder.gep(array, [at]), align=4)

        rows, points, start, sums = place(0, _LANES), place(1, _WORD), place(3, _LANES), place(4, _LANES)
        kind = ir.FunctionType(_LANES, [_LANES, _BYTES, _BYTES])
        instruction = builder.module.declare_intrinsic("llvm.x86.avx512.vpdpbusd.512", (), kind)
        zero = ir.Constant(_SIZE, 0)
        first = [load(start, zero, _REGISTERS, register) for register in range(_REGISTERS)] * POINTS
        before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.branch(loop)

        builder.position_at_end(loop)
        group, held = builder.phi(_SIZE), [builder.phi(_LANES) for _ in first]
        four = [builder.bitcast(load(rows, group, _REGISTERS, register), _BYTES) for register in range(_REGISTERS)]
        found = []
        for point in range(POINTS):
            lanes = builder.insert_element(
                ir.Constant(_LANES, ir.Undefined), load(points, group, POINTS, point), ir.Constant(_WORD, 0)
            )
            lanes = builder.bitcast(builder.shuffle_vector(lanes, lanes, ir.Constant(_LANES, [0] * 16)), _BYTES)
            own = held[point * _REGISTERS : (point + 1) * _REGISTERS]
            found += [builder.call(instruction, [total, lanes, one]) for total, one in zip(own, four, strict=True)]
        following = builder.add(group, ir.Constant(_SIZE, 1))
        for phi, one, other in zip([group, *held], [zero, *first], [following, *found], strict=True):
            phi.add_incoming(one, before)
            phi.add_incoming(other, loop)
        builder.cbranch(builder.icmp_signed("<", following, arguments[2]), loop, after)

        builder.position_at_end(after)
        for number, total in enumerate(found):
            builder.store(total, builder.gep(sums, [ir.Constant(_SIZE, number)]), align=4)
        return context.get_dummy_value()

    return types.void(rows, points, types.int64, start, sums), generate
