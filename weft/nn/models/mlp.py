"""MLP: a perceptron with any number of hidden layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.errors import ArgumentTypeError
from ...core.tensor import Tensor
from ..activation import GELU, SELU, LeakyReLU, ReLU, Sigmoid, SiLU, Tanh
from ..arguments import as_choice, as_flag, as_probability
from ..batch_norm import BatchNorm1d
from ..calls import F
from ..containers import Sequential
from ..dropout import Dropout
from ..linear import Linear
from ..module import Module

ACTIVATIONS: dict[str, Callable[[], Module]] = {
    "relu": ReLU,
    "gelu": GELU,
    "silu": SiLU,
    "selu": SELU,
    "leaky_relu": LeakyReLU,
    "tanh": Tanh,
    "sigmoid": Sigmoid,
}


class MLP(Module):
    """Flatten each sample, then linear layers with activations between them.

    in_features   numbers in a sample; None: the first input tells
    hidden        sizes of the hidden layers; none makes it a linear model
    activation    "relu", "gelu", "silu", "selu", "leaky_relu", "tanh" or "sigmoid"
    dropout       share of hidden units dropped in training
    batch_norm    normalise before each activation

    >>> import weft as wf
    >>> MLP(4, 3, hidden=[8, 8])(wf.zeros(5, 2, 2)).shape
    (5, 3)
    """

    def __init__(
        self,
        in_features: int | None,
        out_features: int,
        hidden: Sequence[int] = (128,),
        activation: str = "relu",
        dropout: float = 0.0,
        batch_norm: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if not isinstance(hidden, (list, tuple)):
            raise ArgumentTypeError(f"MLP: hidden must be a list of sizes. Received: {hidden!r}")
        as_choice(self, "activation", activation, tuple(ACTIVATIONS))
        as_probability(self, "dropout", dropout)
        normalize = as_flag(self, "batch_norm", batch_norm)
        layers: list[Module] = []
        size = in_features
        for width in hidden:
            layers.append(Linear(size, width, bias=bias and not normalize))
            if normalize:
                layers.append(BatchNorm1d(width))
            layers.append(ACTIVATIONS[activation]())
            if dropout:
                layers.append(Dropout(dropout))
            size = width
        self.layers = Sequential(*layers, Linear(size, out_features, bias=bias))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs (N, out_features) of samples (N, ...)."""
        result: Tensor = self.layers(F.flatten(x, 1) if x.ndim != 2 else x)
        return result
