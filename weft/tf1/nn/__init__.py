"""`tf.nn`: functions of networks."""

from __future__ import annotations

from ...faces.absent import absent_names
from ..indexing import embedding_lookup as embedding_lookup
from ..math_ops import log_sigmoid as log_sigmoid
from ..math_ops import sigmoid as sigmoid
from ..math_ops import tanh as tanh
from . import rnn_cell as rnn_cell
from .activations import batch_normalization as batch_normalization
from .activations import bias_add as bias_add
from .activations import crelu as crelu
from .activations import dropout as dropout
from .activations import elu as elu
from .activations import fused_batch_norm as fused_batch_norm
from .activations import l2_loss as l2_loss
from .activations import l2_normalize as l2_normalize
from .activations import leaky_relu as leaky_relu
from .activations import local_response_normalization as local_response_normalization
from .activations import log_softmax as log_softmax
from .activations import lrn as lrn
from .activations import moments as moments
from .activations import relu as relu
from .activations import relu6 as relu6
from .activations import relu_layer as relu_layer
from .activations import selu as selu
from .activations import softmax as softmax
from .activations import softplus as softplus
from .activations import softsign as softsign
from .activations import swish as swish
from .activations import xw_plus_b as xw_plus_b
from .activations import zero_fraction as zero_fraction
from .losses import in_top_k as in_top_k
from .losses import log_poisson_loss as log_poisson_loss
from .losses import log_uniform_candidate_sampler as log_uniform_candidate_sampler
from .losses import nce_loss as nce_loss
from .losses import sampled_softmax_loss as sampled_softmax_loss
from .losses import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from .losses import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
from .losses import softmax_cross_entropy_with_logits_v2 as softmax_cross_entropy_with_logits_v2
from .losses import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from .losses import top_k as top_k
from .losses import weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits
from .pooling import avg_pool as avg_pool
from .pooling import avg_pool3d as avg_pool3d
from .pooling import max_pool as max_pool
from .pooling import max_pool3d as max_pool3d
from .pooling import pool as pool
from .rnn import bidirectional_dynamic_rnn as bidirectional_dynamic_rnn
from .rnn import dynamic_rnn as dynamic_rnn
from .rnn import static_bidirectional_rnn as static_bidirectional_rnn
from .rnn import static_rnn as static_rnn
from .windows import atrous_conv2d as atrous_conv2d
from .windows import conv1d as conv1d
from .windows import conv2d as conv2d
from .windows import conv2d_transpose as conv2d_transpose
from .windows import conv3d as conv3d
from .windows import conv3d_transpose as conv3d_transpose
from .windows import convolution as convolution
from .windows import depthwise_conv2d as depthwise_conv2d
from .windows import depthwise_conv2d_native as depthwise_conv2d_native
from .windows import separable_conv2d as separable_conv2d

avg_pool2d, max_pool2d = avg_pool, max_pool

_REASONS = {
    "raw_rnn": "use tf.nn.dynamic_rnn, or tf.while_loop with a TensorArray",
    "ctc_loss": "use weft.nn.functional.ctc_loss",
    "embedding_lookup_sparse": "use tf.nn.embedding_lookup and tf.segment_sum",
    "max_pool_with_argmax": "use weft.nn.functional.max_pool2d with return_indices=True",
    "quantized_conv2d": "there are no quantised operators: use tf.nn.conv2d",
}
__getattr__ = absent_names(globals(), _REASONS)
