"""`tf.contrib.layers`: initializers, regularizers and layers by their older names."""

from __future__ import annotations

from typing import Any

from ...faces.absent import absent_names
from .. import initializers, layers
from ..indexing import embedding_lookup, one_hot
from ..keys import GraphKeys
from ..math_ops import abs as absolute
from ..math_ops import add_n, multiply, tensordot
from ..nn import activations as nn
from ..nn.activations import l2_loss
from ..recording import Tensor, constant, convert_to_tensor
from ..reductions import reduce_sum
from ..variable_scope import get_variable, variable_scope

__all__ = [
    "batch_norm",
    "conv2d",
    "dropout",
    "embed_sequence",
    "flatten",
    "fully_connected",
    "l1_regularizer",
    "l2_regularizer",
    "max_pool2d",
    "one_hot_encoding",
    "variance_scaling_initializer",
    "xavier_initializer",
]


def xavier_initializer(uniform: bool = True, seed: Any = None, dtype: Any = "float32") -> Any:
    """Return Glorot's initializer."""
    kind = "uniform" if uniform else "truncated_normal"
    return initializers.VarianceScaling(1.0, "fan_avg", kind, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: Any = None,
    dtype: Any = "float32",
) -> Any:
    """Return an initializer that scales by the numbers of inputs and outputs."""
    kind = "uniform" if uniform else "truncated_normal"
    return initializers.VarianceScaling(factor, mode.lower(), kind, seed, dtype)


def l2_regularizer(scale: float, scope: Any = None) -> Any:
    """Return a penalty: scale times half the sum of squares."""
    if scale < 0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale}.")
    return lambda weights: multiply(constant(scale, weights.dtype), l2_loss(weights))


def l1_regularizer(scale: float, scope: Any = None) -> Any:
    """Return a penalty: scale times the sum of absolute values."""
    if scale < 0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale}.")
    return lambda weights: multiply(constant(scale, weights.dtype), reduce_sum(absolute(weights)))


def apply_regularization(regularizer: Any, weights_list: Any = None) -> Tensor:
    """Return the sum of the penalties of weights."""
    return add_n([regularizer(w) for w in weights_list])


def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = None,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """Return activation(x weights + biases); the activation is relu unless another is given."""
    with variable_scope(scope, "fully_connected", reuse=reuse):
        x = convert_to_tensor(inputs)
        depth = x.shape.sizes[-1] if x.shape.sizes else None
        if depth is None:
            raise ValueError(
                "The last dimension of the inputs to `Dense` should be defined. Found `None`."
            )
        weights = get_variable(
            "weights",
            [depth, num_outputs],
            x.dtype,
            weights_initializer or xavier_initializer(),
            weights_regularizer,
            trainable,
        )
        made = nn_product(x, weights)
        if normalizer_fn is not None:
            made = normalizer_fn(made, **(normalizer_params or {}))
        else:
            start = biases_initializer or initializers.Zeros()
            made = nn.bias_add(
                made,
                get_variable(
                    "biases", [num_outputs], x.dtype, start, biases_regularizer, trainable
                ),
            )
        return made if activation_fn is None else activation_fn(made)


linear = fully_connected


def nn_product(x: Any, weights: Any) -> Any:
    """Return x weights over the last axis."""
    rank = x.shape.ndims
    return x @ weights if rank in (None, 2) else tensordot(x, weights, [[rank - 1], [0]])


def conv2d(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: Any = None,
    rate: Any = 1,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = None,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """Return a convolution of images; the activation is relu unless another is given."""
    with variable_scope(scope, "Conv", reuse=reuse):
        made = layers.conv2d(
            inputs,
            num_outputs,
            kernel_size,
            stride,
            padding,
            dilation_rate=rate,
            use_bias=normalizer_fn is None,
            kernel_initializer=weights_initializer or xavier_initializer(),
            kernel_regularizer=weights_regularizer,
            bias_initializer=biases_initializer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name="conv",
        )
        made = made if normalizer_fn is None else normalizer_fn(made, **(normalizer_params or {}))
        return made if activation_fn is None else activation_fn(made)


convolution2d = conv2d


def max_pool2d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: Any = "NHWC",
    outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:
    """Return the maxima of windows of images."""
    made: Tensor = layers.max_pooling2d(inputs, kernel_size, stride, padding)
    return made


def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: Any = None,
) -> Tensor:
    """Return inputs with elements set to 0 at random, if training."""
    return layers.dropout(inputs, 1 - keep_prob, noise_shape, seed, is_training)


def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Tensor:
    """Return one vector for each example."""
    return layers.flatten(inputs)


def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    is_training: Any = True,
    reuse: Any = None,
    scope: Any = None,
    trainable: bool = True,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    **options: Any,
) -> Tensor:
    """Return normalised inputs; the statistics are moved by the operations of UPDATE_OPS."""
    with variable_scope(scope, "BatchNorm", reuse=reuse):
        made = layers.batch_normalization(
            inputs,
            -1,
            decay,
            epsilon,
            center,
            scale,
            training=is_training,
            trainable=trainable,
            name="bn",
        )
    return made if activation_fn is None else activation_fn(made)


def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:
    """Return classes as vectors that are one at their place."""
    return one_hot(labels, num_classes, on_value, off_value)


def embed_sequence(
    ids: Any,
    vocab_size: int,
    embed_dim: int,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Tensor:
    """Return rows of a table of its own by their numbers."""
    with variable_scope(scope, "EmbedSequence", reuse=reuse):
        table = get_variable(
            "embeddings",
            [vocab_size, embed_dim],
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
    return embedding_lookup(table, ids)


__getattr__ = absent_names(
    globals(), {"optimize_loss": "use optimizer.minimize", "stack": "call the layers one by one"}
)
