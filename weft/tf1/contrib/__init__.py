"""`tf.contrib`: what tutorials use of it."""

from __future__ import annotations

from ...faces.absent import absent_names
from . import framework, layers, rnn

__all__ = ["framework", "layers", "rnn"]

_REASONS = {
    "learn": "use tf.keras, or a session of your own",
    "seq2seq": "use tf.nn.dynamic_rnn with tf.while_loop",
    "legacy_seq2seq": "use tf.nn.dynamic_rnn with tf.while_loop",
    "slim": "use tf.layers",
    "tensorboard": "use tf.summary",
    "distributions": "use weft's own: weft.chainer.distributions, or formulas",
    "factorization": "write k-means by tf.argmin and tf.unsorted_segment_sum",
    "tensor_forest": "there are no decision trees here",
    "eager": "import weft: it runs eagerly",
}
__getattr__ = absent_names(globals(), _REASONS)
