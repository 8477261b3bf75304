"""What of an exported graph need not be computed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evenrank.io.types import Array

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

# What is computed for each token by itself.
_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Pow", "Sqrt")
_BY_TOKEN = frozenset((*_ARITHMETIC, "Erf", "Gelu", "LayerNormalization", "MatMul", "Relu", "Sigmoid", "Tanh"))
_TOKENS, _RANK = 1, 3
"""The axis of tokens in tensors [batch, tokens, features]."""


def keep_first_token(file: Path) -> None:
    """Where a model reads only its first token's vector, has the layers after the last attention compute only that.

    Of 6 layers this saves an eighth of the products. Changes ``file``; leaves a graph that it does not understand.
    """
    import onnx

    model = onnx.load(str(file))
    known = onnx.shape_inference.infer_shapes(model).graph
    ranks = {one.name: len(one.type.tensor_type.shape.dim) for one in (*known.value_info, *known.input)}
    if _narrow(model.graph, ranks):
        onnx.save(model, str(file))


def _narrow(graph: GraphProto, ranks: dict[str, int]) -> bool:
    """Takes the first token before what is computed for each token by itself, in place of after it."""
    from onnx import helper, numpy_helper

    constants = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        elif node.op_type == "Identity" and node.input[0] in constants:  # weights that are equal are kept once
            constants[node.output[0]] = constants[node.input[0]]
    inner = _before_first(graph, constants)
    made = {node.output[0] for node in inner}
    narrow: dict[str, str] = {}
    nodes: list[NodeProto] = []
    bounds = ["first_token_start", "first_token_end", "first_token_axis"]
    for node in graph.node:
        for place, name in enumerate(node.input):
            if node.output[0] not in made or name in made or name in constants:
                continue
            if name not in narrow:
                narrow[name] = f"{name}_first_token"
                nodes.append(helper.make_node("Slice", [name, *bounds], [narrow[name]], name=narrow[name]))
            node.input[place] = narrow[name]
        nodes.append(node)
    if not narrow or any(ranks.get(name) != _RANK for name in narrow):
        return False
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(
        numpy_helper.from_array(np.array([value], np.int64), name)
        for name, value in zip(bounds, (0, 1, _TOKENS), strict=True)
    )
    return True


def _before_first(graph: GraphProto, constants: dict[str, Array]) -> list[NodeProto]:
    """The nodes, each of tokens by themselves, of whose outputs only the first token is read."""
    users: dict[str, list[NodeProto]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            users[name].append(node)
    given = {one.name for one in graph.output}
    found: list[NodeProto] = []
    # Nodes stand after those whose outputs they read.
    for node in reversed(graph.node):
        name = node.output[0]
        if name in given or not users[name] or not _by_token(node, constants):
            continue
        if all(user in found or _takes_first(user, constants) for user in users[name]):
            found.append(node)
    return found


def _takes_first(node: NodeProto, constants: dict[str, Array]) -> bool:
    index = constants.get(node.input[1]) if node.op_type == "Gather" and _axis(node, 0) == _TOKENS else None
    return index is not None and index.ndim == 0 and int(index) == 0


def _by_token(node: NodeProto, constants: dict[str, Array]) -> bool:
    if node.op_type not in _BY_TOKEN:
        return False
    if node.op_type == "MatMul":
        weights = constants.get(node.input[1])
        return node.input[0] not in constants and weights is not None and weights.ndim == 2
    if node.op_type == "LayerNormalization" and _axis(node, -1) != -1:
        return False
    return all(constants[name].ndim <= 1 for name in node.input if name in constants)


def _axis(node: NodeProto, usual: int) -> int:
    return next((one.i for one in node.attribute if one.name == "axis"), usual)
