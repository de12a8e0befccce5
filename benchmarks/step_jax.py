"""The networks of `steps.py` for JAX: functions of a dictionary of parameters.

Convolutions have their channels last, which XLA is fastest with on a processor; weights stay in the
layout of the other frameworks.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from step_nets import HIDDEN, VOCABULARY

Params = dict[str, Any]
Shapes = dict[str, tuple[int, ...]]


class JaxWorkload(NamedTuple):
    """The shapes of all parameters, and the loss from parameters and batch."""

    shapes: Shapes
    loss: Callable[..., Any]


# -- layers --------------------------------------------------------------------------------------


def linear(p: Params, name: str, x: Any) -> Any:
    """Return x @ weight.T + bias."""
    y = x @ p[f"{name}.weight"].T
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def conv(p: Params, name: str, x: Any, stride: int = 1) -> Any:
    """Return a convolution that keeps sizes, but for the stride."""
    w = p[f"{name}.weight"]
    padding = [(n // 2, n // 2) for n in w.shape[2:]]
    layout = ("NHWC", "OIHW", "NHWC")
    y = lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=layout)
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def normalize(p: Params, name: str, x: Any, axes: tuple[int, ...]) -> Any:
    """Return x of mean 0 and variance 1 over axes, scaled and shifted."""
    mean = x.mean(axes, keepdims=True)
    variance = jnp.square(x - mean).mean(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def cross_entropy(scores: Any, classes: Any) -> Any:
    """Return the mean negative logarithm of the probabilities of classes."""
    logs = jax.nn.log_softmax(scores)
    return -jnp.take_along_axis(logs, classes[:, None], axis=1).mean()


def token_loss(scores: Any, following: Any) -> Any:
    """Return the cross-entropy of the token that follows each."""
    return cross_entropy(scores.reshape(-1, VOCABULARY), following.reshape(-1))


def weight_and_bias(name: str, *shape: int) -> Shapes:
    """Return the shapes of a layer with a bias; of a norm, for one number."""
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


# -- networks ------------------------------------------------------------------------------------


def perceptron(p: Params, x: Any) -> Any:
    """Return three linear layers with ReLU between."""
    return linear(p, "4", jax.nn.relu(linear(p, "2", jax.nn.relu(linear(p, "0", x)))))


def perceptron_shapes(*sizes: int) -> Shapes:
    """Return the shapes of a perceptron."""
    pairs = enumerate(pairwise(sizes))
    return {k: s for i, (m, n) in pairs for k, s in weight_and_bias(str(2 * i), n, m).items()}


def mlp_loss(p: Params, x: Any, y: Any) -> Any:
    """Return the loss of the perceptron."""
    return cross_entropy(perceptron(p, x), y)


def dqn_loss(p: Params, x: Any, action: Any, target: Any) -> Any:
    """Return the Huber loss of the values of actions taken."""
    chosen = jnp.take_along_axis(perceptron(p, x), action[:, None], axis=1)[:, 0]
    error = jnp.abs(chosen - target)
    return jnp.where(error < 1, 0.5 * error * error, error - 0.5).mean()


CNN_SHAPES = {
    **weight_and_bias("0", 32, 1, 3, 3),
    **weight_and_bias("2", 64, 32, 3, 3),
    **weight_and_bias("6", 128, 64 * 14 * 14),
    **weight_and_bias("8", 10, 128),
}


def cnn_loss(p: Params, x: Any, y: Any) -> Any:
    """Return the loss of the convolutional network."""
    h = jax.nn.relu(conv(p, "0", x.transpose(0, 2, 3, 1)))
    h = jax.nn.relu(conv(p, "2", h))
    h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    h = jax.nn.relu(linear(p, "6", h.transpose(0, 3, 1, 2).reshape(len(x), -1)))
    return cross_entropy(linear(p, "8", h), y)


STAGES = ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))
BLOCKS = {  # by the numbers of the layers
    f"{3 + 2 * i + j}": (width if j else before, width, 1 if j else stride)
    for i, (before, width, stride) in enumerate(STAGES)
    for j in range(2)
}


def resnet_shapes() -> Shapes:
    """Return the shapes of the residual network."""
    shapes = {"0.weight": (64, 3, 3, 3), **weight_and_bias("1", 64)}
    for name, (before, width, _) in BLOCKS.items():
        shapes |= {f"{name}.conv1.weight": (width, before, 3, 3)}
        shapes |= {f"{name}.conv2.weight": (width, width, 3, 3)}
        shapes |= {**weight_and_bias(f"{name}.bn1", width), **weight_and_bias(f"{name}.bn2", width)}
        if before != width:
            shapes |= {f"{name}.down.0.weight": (width, before, 1, 1)}
            shapes |= weight_and_bias(f"{name}.down.1", width)
    return {**shapes, **weight_and_bias("13", 10, 512)}


def resnet_loss(p: Params, x: Any, y: Any) -> Any:
    """Return the loss of the residual network; nothing reads its running statistics."""

    def bn(name: str, x: Any) -> Any:
        return normalize(p, name, x, (0, 1, 2))

    h = jax.nn.relu(bn("1", conv(p, "0", x.transpose(0, 2, 3, 1))))
    for name, (before, width, stride) in BLOCKS.items():
        z = jax.nn.relu(bn(f"{name}.bn1", conv(p, f"{name}.conv1", h, stride)))
        z = bn(f"{name}.bn2", conv(p, f"{name}.conv2", z))
        if before != width:
            h = bn(f"{name}.down.1", conv(p, f"{name}.down.0", h, stride))
        h = jax.nn.relu(z + h)
    return cross_entropy(linear(p, "13", h.mean((1, 2))), y)


LSTM_SHAPES = {
    "embedding.weight": (VOCABULARY, HIDDEN),
    **{f"lstm.weight_{kind}_l0": (4 * HIDDEN, HIDDEN) for kind in ("ih", "hh")},
    **{f"lstm.bias_{kind}_l0": (4 * HIDDEN,) for kind in ("ih", "hh")},
    **weight_and_bias("head", VOCABULARY, HIDDEN),
}
CELL_SHAPES = {
    "embedding.weight": (VOCABULARY, HIDDEN),
    **weight_and_bias("of_input", 4 * HIDDEN, HIDDEN),
    **weight_and_bias("of_state", 4 * HIDDEN, HIDDEN),
    **weight_and_bias("head", VOCABULARY, HIDDEN),
}


def recurrent_loss(names: tuple[str, str, str, str]) -> Callable[..., Any]:
    """Return the loss of a recurrent model whose weights and biases have these names."""
    w_x, b_x, w_h, b_h = names

    def loss(p: Params, tokens: Any, following: Any) -> Any:
        xs = p["embedding.weight"][tokens].swapaxes(0, 1)
        shares = xs @ p[w_x].T + (p[b_x] + p[b_h])

        def step(state: Any, share: Any) -> tuple[Any, Any]:
            h, c = state
            i, f, g, o = jnp.split(share + h @ p[w_h].T, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros_like(xs[0])
        _, outputs = lax.scan(step, (zero, zero), shares)
        return token_loss(linear(p, "head", outputs.swapaxes(0, 1)), following)

    return loss


def gpt_shapes() -> Shapes:
    """Return the shapes of the transformer."""
    d = HIDDEN
    shapes = {"tokens.weight": (VOCABULARY, d), "places.weight": (128, d)}
    for b in (f"blocks.{i}" for i in range(4)):
        shapes |= {**weight_and_bias(f"{b}.ln1", d), **weight_and_bias(f"{b}.ln2", d)}
        shapes |= {**weight_and_bias(f"{b}.qkv", 3 * d, d), **weight_and_bias(f"{b}.proj", d, d)}
        shapes |= {
            **weight_and_bias(f"{b}.up", 4 * d, d),
            **weight_and_bias(f"{b}.down", d, 4 * d),
        }
    return {**shapes, **weight_and_bias("norm", d), "head.weight": (VOCABULARY, d)}


def gpt_loss(p: Params, tokens: Any, following: Any) -> Any:
    """Return the loss of the transformer."""
    x = p["tokens.weight"][tokens] + p["places.weight"][: tokens.shape[1]]
    for b in (f"blocks.{i}" for i in range(4)):
        x = x + _attention(p, b, normalize(p, f"{b}.ln1", x, (-1,)))
        h = jax.nn.gelu(linear(p, f"{b}.up", normalize(p, f"{b}.ln2", x, (-1,))), approximate=True)
        x = x + linear(p, f"{b}.down", h)
    return token_loss(linear(p, "head", normalize(p, "norm", x, (-1,))), following)


def _attention(p: Params, block: str, x: Any) -> Any:
    n, t, e = x.shape
    parts = linear(p, f"{block}.qkv", x).reshape(n, t, 3, 4, e // 4)
    q, k, v = (parts[:, :, i].swapaxes(1, 2) for i in range(3))
    scores = q @ k.swapaxes(2, 3) / (e // 4) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
    y = jax.nn.softmax(scores) @ v
    return linear(p, f"{block}.proj", y.swapaxes(1, 2).reshape(n, t, e))


def workloads() -> dict[str, JaxWorkload]:
    """Return all workloads."""
    lstm = ("lstm.weight_ih_l0", "lstm.bias_ih_l0", "lstm.weight_hh_l0", "lstm.bias_hh_l0")
    cell = ("of_input.weight", "of_input.bias", "of_state.weight", "of_state.bias")
    return {
        "mlp": JaxWorkload(perceptron_shapes(784, 512, 512, 10), mlp_loss),
        "dqn": JaxWorkload(perceptron_shapes(4, 128, 128, 2), dqn_loss),
        "cnn": JaxWorkload(CNN_SHAPES, cnn_loss),
        "resnet18": JaxWorkload(resnet_shapes(), resnet_loss),
        "lstm": JaxWorkload(LSTM_SHAPES, recurrent_loss(lstm)),
        "gpt": JaxWorkload(gpt_shapes(), gpt_loss),
        "cell": JaxWorkload(CELL_SHAPES, recurrent_loss(cell)),
    }
