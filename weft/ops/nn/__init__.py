"""Network functions, with PyTorch's names and signatures: composites written in operators.

They check their arguments first, so that a message names the function the user called. Imports core
and `ops.random`; reaches other operators through `F`.
"""

from . import (
    attention,
    classes,
    cross_entropy,
    ctc,
    distance,
    dropout,
    embedding_bag,
    gate,
    gradient,
    loss_binary,
    loss_margin,
    loss_regression,
    normalize,
    softmax,
)

__all__ = [
    "attention",
    "classes",
    "cross_entropy",
    "ctc",
    "distance",
    "dropout",
    "embedding_bag",
    "gate",
    "gradient",
    "loss_binary",
    "loss_margin",
    "loss_regression",
    "normalize",
    "softmax",
]
