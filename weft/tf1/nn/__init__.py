"""`tf.nn`: functions of networks."""

from __future__ import annotations

from ...faces.absent import absent_names
from ..indexing import embedding_lookup
from ..math_ops import log_sigmoid, sigmoid, tanh
from . import rnn_cell
from .activations import (
    batch_normalization,
    bias_add,
    crelu,
    dropout,
    elu,
    fused_batch_norm,
    l2_loss,
    l2_normalize,
    leaky_relu,
    local_response_normalization,
    log_softmax,
    lrn,
    moments,
    relu,
    relu6,
    relu_layer,
    selu,
    softmax,
    softplus,
    softsign,
    swish,
    xw_plus_b,
    zero_fraction,
)
from .losses import (
    in_top_k,
    log_poisson_loss,
    log_uniform_candidate_sampler,
    nce_loss,
    sampled_softmax_loss,
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
    top_k,
    weighted_cross_entropy_with_logits,
)
from .rnn import (
    bidirectional_dynamic_rnn,
    dynamic_rnn,
    static_bidirectional_rnn,
    static_rnn,
)
from .windows import (
    atrous_conv2d,
    avg_pool,
    avg_pool3d,
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    convolution,
    depthwise_conv2d,
    depthwise_conv2d_native,
    max_pool,
    max_pool3d,
    pool,
    separable_conv2d,
)

avg_pool2d, max_pool2d = avg_pool, max_pool

__all__ = sorted(
    name
    for name in dir()
    if not name.startswith("_") and name not in ("annotations", "absent_names")
)

_REASONS = {
    "raw_rnn": "use tf.nn.dynamic_rnn, or tf.while_loop with a TensorArray",
    "ctc_loss": "use weft.nn.functional.ctc_loss",
    "embedding_lookup_sparse": "use tf.nn.embedding_lookup and tf.segment_sum",
    "max_pool_with_argmax": "use weft.nn.functional.max_pool2d with return_indices=True",
    "quantized_conv2d": "there are no quantised operators: use tf.nn.conv2d",
}
__getattr__ = absent_names(globals(), _REASONS)
