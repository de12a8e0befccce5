"""A variational autoencoder (Kingma, Welling 2014, arXiv:1312.6114) and its loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.tensor import Tensor
from ...ops.random.draw import randn, randn_like
from ..arguments import as_choice, as_number, as_size
from ..calls import F
from ..linear import Linear
from ..module import Module
from .mlp import MLP


class VAE(Module):
    """Encode a sample as a normal distribution, draw from it, and decode.

    input_shape   shape of one sample, e.g. [1, 28, 28]
    latent        size of the code
    hidden        sizes of the encoder's hidden layers; the decoder has them in reverse

    It returns the triple (scores of the reconstruction, mean, logarithm of the variance); in
    evaluation mode the mean is decoded.

    >>> import weft as wf
    >>> [tuple(y.shape) for y in VAE([1, 4, 4], latent=2, hidden=[8])(wf.zeros(3, 1, 4, 4))]
    [(3, 1, 4, 4), (3, 2), (3, 2)]
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        latent: int = 16,
        hidden: Sequence[int] = (256,),
        activation: str = "relu",
    ) -> None:
        super().__init__()
        if not isinstance(input_shape, (list, tuple)) or not hidden:
            raise ArgumentTypeError(
                "VAE: input_shape and hidden must be lists of sizes. "
                f"Received: {input_shape!r} and {hidden!r}"
            )
        self.input_shape = tuple(as_size(self, "each size of input_shape", n) for n in input_shape)
        self.latent = as_size(self, "latent", latent)
        size = math.prod(self.input_shape)
        *inner, last = hidden
        self.encoder = MLP(size, last, inner, activation)
        self.mean = Linear(last, latent)
        self.log_variance = Linear(last, latent)
        self.decoder = MLP(latent, size, list(reversed(hidden)), activation)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log variance of the codes of samples."""
        hidden = F.relu(self.encoder(x))
        return self.mean(hidden), self.log_variance(hidden)

    def decode(self, code: Tensor) -> Tensor:
        """Return the scores of samples; their sigmoid lies between 0 and 1."""
        return F.reshape(self.decoder(code), (code.shape[0], *self.input_shape))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return reconstruction, mean and log variance."""
        mean, log_variance = self.encode(x)
        code = mean
        if self.training:  # the reparametrisation of their section 2.4
            code = mean + F.exp(log_variance * 0.5) * randn_like(mean)
        return self.decode(code), mean, log_variance

    def sample(self, count: int) -> Tensor:
        """Return new samples, with values between 0 and 1."""
        return F.sigmoid(self.decode(randn(count, self.latent, dtype=self.mean.weight.dtype)))


class VAELoss(Module):
    """The negative evidence lower bound per sample: reconstruction error plus divergence.

    likelihood   "bernoulli" for values between 0 and 1, "gaussian" for any
    beta         weight of the divergence (Higgins et al. 2017)

    The output is the triple that VAE returns; the result has "loss", "reconstruction" and "kl".
    """

    def __init__(self, likelihood: str = "bernoulli", beta: float = 1.0) -> None:
        super().__init__()
        self.likelihood = as_choice(self, "likelihood", likelihood, ("bernoulli", "gaussian"))
        self.beta = as_number(self, "beta", beta, 0.0)

    def forward(self, output: Any, target: Tensor) -> dict[str, Tensor]:
        """Return the loss and its parts."""
        if not isinstance(output, tuple) or len(output) != 3:
            raise ArgumentError(
                "VAELoss: the output must be (reconstruction, mean, log variance), as VAE "
                f"returns. Received: {type(output).__name__}"
            )
        x, mean, log_variance = output
        if self.likelihood == "bernoulli":
            error = F.binary_cross_entropy_with_logits(x, target, reduction="sum")
        else:
            error = F.mse_loss(x, target, reduction="sum") * 0.5
        count = max(int(target.shape[0]), 1)
        spread = 1.0 + log_variance - F.square(mean) - F.exp(log_variance)
        reconstruction, kl = error / count, F.sum(spread) * (-0.5 / count)
        return {
            "loss": reconstruction + self.beta * kl,
            "reconstruction": reconstruction,
            "kl": kl,
        }
