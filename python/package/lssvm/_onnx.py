"""A model as an ONNX graph.

Everything is computed in double precision, whatever the precision of the model: a score is
a small difference of large terms, and the rounding of two programs in single precision
would add up. Training rows and weights are stored in the precision of the model. A Fourier
transform becomes a product with its matrix, a linear kernel one vector for each output.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

_OPSET = 17

# A graph is one protobuf message, of at most 2 GB; 1 MB of it is left to the nodes.
# Tensors in files beside it would lift the limit, and be one more thing to lose.
_MOST_BYTES = 2**31 - 2**20


def write_onnx(core: Any, classes: np.ndarray | None, path: str) -> None:
    """Write the graph of a model of the core; `classes` for a classifier."""
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError as error:
        raise ImportError("to_onnx needs the package onnx: pip install onnx") from error

    told = json.loads(core.description)
    support, weights = core.support, core.weights
    single = core.precision == "f32"
    graph = _Graph()
    n_features = width = told["input"]["n_features"]
    x = graph.node("Cast", "X", to=TensorProto.DOUBLE)
    for step in told["pipeline"]["steps"]:
        x = _STEPS[step["step"]](graph, x, step | {"n_features": width})
        if step["step"] == "fourier":
            width = support.shape[1]
    if told["kernel"]["name"] == "linear":
        normals = support.T.astype(np.float64) @ weights.astype(np.float64)
        scores = graph.node("MatMul", x, graph.double(normals))
    else:
        omega = _kernel(graph, x, told["kernel"], support)
        scores = graph.node("MatMul", omega, graph.widened(weights))
    scores = graph.node("Add", scores, graph.double(core.bias))
    kind = TensorProto.FLOAT if single else TensorProto.DOUBLE
    rows = "rows"
    if classes is None:
        graph.node("Cast", scores, to=kind, output="variable")
        outputs = [helper.make_tensor_value_info("variable", kind, [rows, weights.shape[1]])]
    else:
        best = graph.node("ArgMax", scores, axis=1, keepdims=0)
        if classes.dtype.kind in "iub":
            names, label = classes.astype(np.int64), TensorProto.INT64
        elif classes.dtype.kind == "f":
            names, label = classes.astype(np.float32), TensorProto.FLOAT
        else:
            names, label = classes, TensorProto.STRING
        graph.node("Gather", graph.constant(names), best, axis=0, output="label")
        graph.node("Cast", scores, to=kind, output="scores")
        p = _probabilities(graph, scores, told.get("scaling"))
        graph.node("Cast", p, to=kind, output="probabilities")
        outputs = [
            helper.make_tensor_value_info("label", label, [rows]),
            helper.make_tensor_value_info("scores", kind, [rows, len(classes)]),
            helper.make_tensor_value_info("probabilities", kind, [rows, len(classes)]),
        ]
    inputs = [helper.make_tensor_value_info("X", kind, [rows, n_features])]
    made = helper.make_graph(graph.nodes, "lssvm", inputs, outputs, graph.constants)
    model = helper.make_model(
        made,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        producer_name="lssvm",
        ir_version=8,
    )
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _probabilities(graph: _Graph, scores: str, scaling: dict[str, Any] | None) -> str:
    """Softmax of the scores, scaled if the model is calibrated."""
    if scaling is not None:
        scores = graph.node("Mul", scores, graph.double(scaling["slope"]))
        scores = graph.node("Add", scores, graph.double(scaling["offsets"]))
    return graph.node("Softmax", scores, axis=1)


class _Graph:
    """Nodes and constants, named by number."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.n_bytes = 0

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        name = output or f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        from onnx import TensorProto, helper, numpy_helper

        name = f"constant{len(self.constants)}"
        array = np.asarray(value)
        self.n_bytes += array.nbytes
        if self.n_bytes > _MOST_BYTES:
            raise ValueError(
                f"to_onnx: a graph has at most 2 GB, and the training rows and weights of this "
                f"model have more; fit it with precision='f32' (half of them), or with fewer "
                f"rows, or keep it in the file of save()"
            )
        if array.dtype.kind in "OU":
            text: Any = [str(item).encode() for item in array]
            tensor = helper.make_tensor(name, TensorProto.STRING, array.shape, text)
            self.constants.append(tensor)
            return name
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def double(self, value: Any) -> str:
        return self.constant(np.asarray(value, dtype=np.float64))

    def widened(self, value: np.ndarray) -> str:
        """Stored as it is, used in double precision."""
        from onnx import TensorProto

        name = self.constant(value)
        return name if value.dtype == np.float64 else self.node("Cast", name, to=TensorProto.DOUBLE)


# ----- preprocessing, in double precision


def _center(graph: _Graph, x: str, _: Any = None) -> str:
    mean = graph.node("ReduceMean", x, axes=[1], keepdims=1)
    return graph.node("Sub", x, mean)


def _unit_norm(graph: _Graph, x: str, _: Any = None) -> str:
    """Rows of unit length; a row without length stays zero."""
    squares = graph.node("ReduceSumSquare", x, axes=[1], keepdims=1)
    norm = graph.node("Sqrt", squares)
    # A constant row, centred, is rounding noise here and zero in the core.
    small = graph.node("Less", norm, graph.double(1e-12))
    safe = graph.node("Where", small, graph.double(np.inf), norm)
    return graph.node("Div", x, safe)


def _window(graph: _Graph, x: str, step: dict[str, Any]) -> str:
    channels, height, width = step["image"]
    c = step["spec"]["c"]
    c = 4 / (height * width) if c is None else c
    first = step["spec"].get("first", 1)
    i, j = np.mgrid[first : height + first, first : width + first]
    weights = np.exp(-c * ((i - height / 2) ** 2 + (j - width / 2) ** 2)).ravel()
    return graph.node("Mul", x, graph.double(np.tile(weights, channels)))


def _standardize(graph: _Graph, x: str, step: dict[str, Any]) -> str:
    centred = graph.node("Sub", x, graph.double(step["mean"]))
    return graph.node("Div", centred, graph.double(step["scale"]))


def _min_max(graph: _Graph, x: str, step: dict[str, Any]) -> str:
    shifted = graph.node("Sub", x, graph.double(step["min"]))
    return graph.node("Div", shifted, graph.double(step["range"]))


def _fourier(graph: _Graph, x: str, step: dict[str, Any]) -> str:
    spec = step["spec"]
    pixels = _unit_norm(graph, _center(graph, x))
    matrix, one_block = _transform(step)
    squares = [
        graph.node("Mul", part, part)
        for part in (
            graph.node("MatMul", pixels, graph.double(matrix.real)),
            graph.node("MatMul", pixels, graph.double(matrix.imag)),
        )
    ]
    square = graph.node("Add", *squares)
    size = graph.node("Pow", square, graph.double(spec["exponent"] / 2))
    if one_block:
        # The sum of the row, which is zero; rounding left a trace of it.
        keep = np.ones(matrix.shape[1])
        keep[0] = 0
        size = graph.node("Mul", size, graph.double(keep))
    size = _unit_norm(graph, _center(graph, size))
    both = graph.node("Concat", pixels, size, axis=1)
    return graph.node("Mul", both, graph.double(np.sqrt(0.5)))


def _transform(step: dict[str, Any]) -> tuple[np.ndarray, bool]:
    """The matrix that takes rows to the kept half of their spectrum."""
    spec, image = step["spec"], step["image"]
    n_features = step["n_features"]
    source = np.arange(n_features)
    if image is not None and spec["order"] == "columns":
        source = source.reshape(image).transpose(0, 2, 1).ravel()
    identity = np.eye(n_features)[:, source]
    if spec["transform"] == "1d":
        return np.fft.fft(identity, axis=1)[:, : (n_features + 1) // 2], True
    channels, height, width = image
    size = height * width
    if spec["transform"] == "1d-channel":
        blocks = np.fft.fft(identity.reshape(n_features, channels, size), axis=2)
    else:
        shape = (width, height) if spec["order"] == "columns" else (height, width)
        blocks = np.fft.fft2(identity.reshape(n_features, channels, *shape))
    kept = blocks.reshape(n_features, channels, size)[:, :, : (size + 1) // 2]
    return kept.reshape(n_features, -1), channels == 1


_STEPS: dict[str, Any] = {
    "center": _center,
    "unit-norm": _unit_norm,
    "window": _window,
    "standardize": _standardize,
    "min-max": _min_max,
    "fourier": _fourier,
}


# ----- kernel


def _kernel(graph: _Graph, x: str, kernel: dict[str, Any], support: np.ndarray) -> str:
    name = kernel["name"]
    if name == "laplacian":
        rows = graph.node("Unsqueeze", x, graph.constant(np.array([1])))
        gaps = graph.node("Sub", rows, graph.widened(support[np.newaxis]))
        distance = graph.node("ReduceL1", gaps, axes=[2], keepdims=0)
        return graph.node("Exp", graph.node("Mul", distance, graph.double(-kernel["gamma"])))
    if name == "rbf":
        product = graph.node("MatMul", x, graph.widened(support.T))
        own = graph.node("ReduceSumSquare", x, axes=[1], keepdims=1)
        squares = np.einsum("ij,ij->i", support, support, dtype=np.float64)
        twice = graph.node("Mul", product, graph.double(2))
        distance = graph.node("Sub", graph.node("Add", own, graph.double(squares)), twice)
        distance = graph.node("Max", distance, graph.double(0))
        return graph.node("Exp", graph.node("Mul", distance, graph.double(-kernel["gamma"])))
    # A factor for each feature: onnxruntime would make a single one part of the product, and
    # round it to single precision.
    factors = np.full(support.shape[1], kernel["gamma"])
    scaled = graph.node("Mul", x, graph.double(factors))
    product = graph.node("MatMul", scaled, graph.widened(support.T))
    shifted = graph.node("Add", product, graph.double(kernel["coef0"]))
    if name == "poly":
        return graph.node("Pow", shifted, graph.double(kernel["degree"]))
    return graph.node("Tanh", shifted)
