"""The models of examples/export as ONNX files, written node by node with the same weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

OPSET, IR_VERSION = 17, 9
TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
Array = np.ndarray[Any, Any]


class Net:
    """A graph of ONNX under construction; values are names."""

    def __init__(self, states: Mapping[str, Array]) -> None:
        self.states = states
        self.nodes: list[Any] = []
        self.arrays: dict[str, Array] = {}

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its result, or several."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def array(self, array: Any, dtype: Any = np.int64) -> str:
        """Return the name of a constant."""
        name = f"c{len(self.arrays)}"
        self.arrays[name] = np.array(array, dtype)
        return name

    def state(self, name: str, change: Any = np.asarray) -> str:
        """Return the name of a weight, changed to the layout that an operator wants."""
        return self.array(change(self.states[name]), np.float32)

    def linear(self, x: str, name: str, bias: bool = True) -> str:
        """Return a linear layer."""
        inputs = [x, self.state(f"{name}/weight")] + ([self.state(f"{name}/bias")] if bias else [])
        return str(self.op("Gemm", *inputs, transB=1))

    def save(
        self, path: Path, inputs: Mapping[str, Array], outputs: Mapping[str, Sequence[int]]
    ) -> None:
        """Write the file; `outputs` are shapes of values."""
        graph = helper.make_graph(
            self.nodes,
            path.stem,
            [
                helper.make_tensor_value_info(n, TYPES[a.dtype.name], a.shape)
                for n, a in inputs.items()
            ],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
            [numpy_helper.from_array(a, n) for n, a in self.arrays.items()],
        )
        opsets = [helper.make_opsetid("", OPSET)]
        save(helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION), str(path))


def mlp(path: Path, states: Mapping[str, Array], x: Array) -> dict[str, Array]:
    """Write the classifier; return what it is fed."""
    net = Net(states)
    hidden = net.op("Relu", net.linear("x", "sequential/0"))
    scores = net.op("Softmax", net.linear(hidden, "sequential/2"), axis=-1)
    net.save(path, {"x": x}, {scores: (len(x), 10)})
    return {"x": x}


def lstm(path: Path, states: Mapping[str, Array], x: Array) -> dict[str, Array]:
    """Write the recurrent network; ONNX has its gates in another order, and time first."""
    net = Net(states)

    def gates(weight: Array) -> Array:
        i, f, g, o = np.split(weight, 4)
        return np.concatenate([i, o, f, g])[None]

    weights = [net.state(f"lstm/weight_{part}_l0", gates) for part in ("ih", "hh")]
    biases = [gates(states[f"lstm/bias_{part}_l0"]) for part in ("ih", "hh")]
    bias = net.array(np.concatenate(biases, 1), np.float32)
    turned = net.op("Transpose", "x", perm=[1, 0, 2])
    size = states["lstm/weight_hh_l0"].shape[1]
    y, _, _ = net.op("LSTM", turned, *weights, bias, outputs=3, hidden_size=size)
    out = net.op("Transpose", net.op("Squeeze", y, net.array([1])), perm=[1, 0, 2])
    net.save(path, {"x": x}, {out: (*x.shape[:2], size)})
    return {"x": x}


def resnet18(path: Path, states: Mapping[str, Array], x: Array) -> dict[str, Array]:
    """Write the convolutional network."""
    net = Net(states)

    def conv(x: str, name: str, norm: str, stride: int = 1) -> str:
        weight = states[f"resnet/{name}/weight"]
        pad = weight.shape[-1] // 2
        made = net.op(
            "Conv", x, net.state(f"resnet/{name}/weight"), strides=[stride] * 2, pads=[pad] * 4
        )
        parts = ("weight", "bias", "running_mean", "running_var")
        return str(
            net.op(
                "BatchNormalization",
                made,
                *(net.state(f"resnet/{norm}/{part}") for part in parts),
                epsilon=1e-5,
            )
        )

    y = net.op("Relu", conv("x", "conv1", "bn1", 2))
    y = net.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage in range(1, 5):
        for block in range(2):
            at, stride = f"layer{stage}/{block}", 2 if stage > 1 and block == 0 else 1
            inner = net.op("Relu", conv(y, f"{at}/conv1", f"{at}/bn1", stride))
            inner = conv(inner, f"{at}/conv2", f"{at}/bn2")
            if f"resnet/{at}/downsample/0/weight" in states:
                y = conv(y, f"{at}/downsample/0", f"{at}/downsample/1", stride)
            y = net.op("Relu", net.op("Add", inner, y))
    flat = net.op("Flatten", net.op("GlobalAveragePool", y))
    scores = net.linear(flat, "resnet/fc")
    net.save(path, {"x": x}, {scores: (len(x), 1000)})
    return {"x": x}


def gpt(path: Path, states: Mapping[str, Array], token: Array) -> dict[str, Array]:
    """Write the step of the language model; position and cache are inputs, the cache an output."""
    net, root = Net(states), "decoder/net"
    cache = states["decoder/cache"]
    layers, _, heads, length, size = cache.shape
    places = net.array(np.arange(length))
    x = net.op(
        "Add",
        net.op("Gather", net.state(f"{root}/wte/weight"), "token"),
        net.op("Gather", net.state(f"{root}/wpe/weight"), "position"),
    )
    now = net.op("Reshape", net.op("Equal", places, "position"), net.array([1, 1, length, 1]))
    seen = net.op("LessOrEqual", places, "position")
    lowest = net.array(-np.inf, np.float32)
    kept = []

    def norm(x: str, name: str) -> str:
        scale, bias = (net.state(f"{name}/{part}") for part in ("weight", "bias"))
        return str(net.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5))

    def gelu(x: str) -> str:
        cube = net.op("Mul", net.op("Mul", x, x), x)
        inner = net.op("Add", x, net.op("Mul", cube, net.array(0.044715, np.float32)))
        bent = net.op("Tanh", net.op("Mul", inner, net.array(np.sqrt(2 / np.pi), np.float32)))
        half = net.op("Mul", x, net.array(0.5, np.float32))
        return str(net.op("Mul", half, net.op("Add", bent, net.array(1, np.float32))))

    for i in range(layers):
        at = f"{root}/h/{i}"
        qkv = net.linear(norm(x, f"{at}/ln_1"), f"{at}/attn/c_attn")
        parts = net.op("Reshape", qkv, net.array([3, heads, 1, size]))
        q = net.op("Slice", parts, net.array([0]), net.array([1]), net.array([0]))
        new = net.op("Slice", parts, net.array([1]), net.array([3]), net.array([0]))
        old = net.op("Gather", "cache", net.array(i), axis=0)
        both = net.op("Where", now, new, old)
        kept.append(net.op("Unsqueeze", both, net.array([0])))
        k, v = (net.op("Gather", both, net.array(j), axis=0) for j in range(2))
        column = net.op("Reshape", q, net.array([heads, size, 1]))
        scores = net.op("Reshape", net.op("MatMul", k, column), net.array([heads, length]))
        scaled = net.op("Div", scores, net.array(size**0.5, np.float32))
        weights = net.op("Softmax", net.op("Where", seen, scaled, lowest), axis=-1)
        row = net.op("Reshape", weights, net.array([heads, 1, length]))
        gathered = net.op("Reshape", net.op("MatMul", row, v), net.array([1, heads * size]))
        x = net.op("Add", x, net.linear(gathered, f"{at}/attn/c_proj"))
        inner = gelu(net.linear(norm(x, f"{at}/ln_2"), f"{at}/mlp/c_fc"))
        x = net.op("Add", x, net.linear(inner, f"{at}/mlp/c_proj"))
    after = net.op("Concat", *kept, axis=0)
    normed = norm(x, f"{root}/ln_f")
    out = net.op("Gemm", normed, net.state(f"{root}/wte/weight"), transB=1)
    fed = {"token": token, "position": states["decoder/position"].reshape(1), "cache": cache}
    net.save(path, fed, {out: (1, len(states[f"{root}/wte/weight"])), after: cache.shape})
    return fed


WRITERS = {"mlp": mlp, "resnet18": resnet18, "lstm": lstm, "gpt": gpt}
