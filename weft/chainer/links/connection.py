"""Linear layers, embeddings and small links around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import initializers as init
from ..configuration import config
from ..functions import activation, array, connection, loss, maths, noise, pooling
from ..link import Chain, Link
from ..utils import WalkerAlias
from ..variable import Parameter as TrainedVariable
from ..variable import Variable
from .convolution import Convolution2D


class Linear(Link):
    """x W^T + b; the size of the input may come with the first one (None)."""

    def __init__(
        self,
        in_size: int | None,
        out_size: int | None = None,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
        n_batch_axes: int = 1,
    ) -> None:
        super().__init__()
        if out_size is None:
            in_size, out_size = None, in_size
        self.in_size, self.out_size = in_size, out_size
        with self.init_scope():
            self.W = TrainedVariable(init.chosen(initialW, init.LeCunNormal()))
            if in_size is not None:
                self._initialize_params(in_size)
            self.b = None if nobias else TrainedVariable(init.chosen(initial_bias, 0.0), out_size)

    def _initialize_params(self, in_size: int) -> None:
        self.W.initialize((self.out_size, in_size))

    def forward(self, x: Any, n_batch_axes: int = 1) -> Variable:
        """Return the linear map of x."""
        if not self.W.is_initialized:
            self._initialize_params(int(np.prod(x.shape[n_batch_axes:])))
        return connection.linear(x, self.W, self.b, n_batch_axes)


class Bilinear(Link):
    """A bilinear map of two inputs, with linear terms unless `nobias`."""

    def __init__(
        self,
        left_size: int,
        right_size: int,
        out_size: int,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
    ) -> None:
        super().__init__()
        self.nobias = nobias
        with self.init_scope():
            shape = (left_size, right_size, out_size)
            self.W = TrainedVariable(init.chosen(initialW, init.LeCunNormal()), shape)
            if not nobias:
                of_v1, of_v2, of_b = initial_bias or (None, None, None)
                self.V1 = TrainedVariable(
                    init.chosen(of_v1, init.LeCunNormal()), (left_size, out_size)
                )
                self.V2 = TrainedVariable(
                    init.chosen(of_v2, init.LeCunNormal()), (right_size, out_size)
                )
                self.b = TrainedVariable(init.chosen(of_b, 0.0), out_size)

    def forward(self, e1: Any, e2: Any) -> Variable:
        """Return the bilinear map of two inputs."""
        if self.nobias:
            return connection.bilinear(e1, e2, self.W)
        return connection.bilinear(e1, e2, self.W, self.V1, self.V2, self.b)


class EmbedID(Link):
    """A vector for each number."""

    def __init__(
        self, in_size: int, out_size: int, initialW: Any = None, ignore_label: int | None = None
    ) -> None:
        super().__init__()
        self.ignore_label = ignore_label
        with self.init_scope():
            self.W = TrainedVariable(init.chosen(initialW, init.Normal(1.0)), (in_size, out_size))

    def forward(self, x: Any) -> Variable:
        """Return the vectors of numbers."""
        return connection.embed_id(x, self.W, self.ignore_label)


class Bias(Link):
    """Add a parameter that begins at an axis."""

    def __init__(self, axis: int = 1, shape: Any = None) -> None:
        super().__init__()
        self.axis = axis
        if shape is not None:
            with self.init_scope():
                self.b = TrainedVariable(0.0, shape)

    def forward(self, *xs: Any) -> Variable:
        """Return x with the parameter, or a second input, added."""
        return maths.bias(xs[0], xs[1] if len(xs) > 1 else self.b, self.axis)


class Scale(Chain):
    """Multiply by a parameter that begins at an axis."""

    def __init__(
        self, axis: int = 1, W_shape: Any = None, bias_term: bool = False, bias_shape: Any = None
    ) -> None:
        super().__init__()
        self.axis = axis
        with self.init_scope():
            if W_shape is not None:
                self.W = TrainedVariable(1.0, W_shape)
            if bias_term:
                self.bias = Bias(axis, W_shape if W_shape is not None else bias_shape)

    def forward(self, *xs: Any) -> Variable:
        """Return x multiplied by the parameter, or by a second input."""
        scaled = maths.scale(xs[0], xs[1] if len(xs) > 1 else self.W, self.axis)
        return self.bias(scaled) if hasattr(self, "bias") else scaled


class Highway(Chain):
    """Let a gate mix a layer's output with its input."""

    def __init__(
        self,
        in_out_size: int,
        nobias: bool = False,
        activate: Callable[..., Any] = activation.relu,
        init_Wh: Any = None,
        init_Wt: Any = None,
        init_bh: Any = None,
        init_bt: Any = -1,
    ) -> None:
        super().__init__()
        self.activate = activate
        with self.init_scope():
            self.plain = Linear(in_out_size, in_out_size, nobias, init_Wh, init_bh)
            self.transform = Linear(in_out_size, in_out_size, nobias, init_Wt, init_bt)

    def forward(self, x: Any) -> Any:
        """Return the mixture."""
        gate = activation.sigmoid(self.transform(x))
        return self.activate(self.plain(x)) * gate + x * (1 - gate)


class Maxout(Chain):
    """A linear layer followed by maxout."""

    def __init__(
        self,
        in_size: int | None,
        out_size: int,
        pool_size: int,
        initialW: Any = None,
        initial_bias: Any = 0,
    ) -> None:
        super().__init__()
        self.out_size, self.pool_size = out_size, pool_size
        with self.init_scope():
            self.linear = Linear(
                in_size, out_size * pool_size, initialW=initialW, initial_bias=initial_bias
            )

    def forward(self, x: Any) -> Variable:
        """Return the largest of each `pool_size` units."""
        return activation.maxout(self.linear(x), self.pool_size)


class NegativeSampling(Link):
    """The loss of telling words from words drawn by their frequency."""

    def __init__(
        self, in_size: int, counts: Any, sample_size: int, power: float = 0.75, dtype: Any = None
    ) -> None:
        super().__init__()
        self.sample_size = sample_size
        self.sampler = WalkerAlias(np.power(np.asarray(counts, np.float64), power))
        with self.init_scope():
            self.W = TrainedVariable(0.0, (len(counts), in_size))

    def forward(self, x: Any, t: Any, reduce: str = "sum", **_: Any) -> Variable:
        """Return the loss of vectors x and words t."""
        return loss.negative_sampling(x, t, self.W, self.sampler.sample, self.sample_size, reduce)


class PReLU(Link):
    """Leaky relu whose slopes are trained."""

    def __init__(self, shape: Any = (), init: float = 0.25) -> None:
        super().__init__()
        with self.init_scope():
            self.W = TrainedVariable(init, shape)

    def forward(self, x: Any) -> Variable:
        """Return x with slopes where it is negative."""
        return activation.prelu(x, self.W)


class Swish(Link):
    """x sigmoid(beta x) with a trained beta."""

    def __init__(self, beta_shape: Any, beta_init: float = 1.0) -> None:
        super().__init__()
        with self.init_scope():
            self.beta = TrainedVariable(beta_init, beta_shape)

    def forward(self, x: Any) -> Variable:
        """Return swish of x."""
        return activation.swish(x, self.beta)


class Parameter(Link):
    """A link that returns its parameter."""

    def __init__(self, array: Any) -> None:
        super().__init__()
        with self.init_scope():
            self.W = TrainedVariable(np.asarray(array))

    def forward(self) -> TrainedVariable:
        """Return the parameter."""
        return self.W


class SimplifiedDropconnect(Link):
    """A linear layer that drops weights in training."""

    def __init__(
        self,
        in_size: int,
        out_size: int,
        ratio: float = 0.5,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
    ) -> None:
        super().__init__()
        self.ratio = ratio
        with self.init_scope():
            self.W = TrainedVariable(init.chosen(initialW, init.LeCunNormal()), (out_size, in_size))
            self.b = None if nobias else TrainedVariable(init.chosen(initial_bias, 0.0), out_size)

    def forward(self, x: Any, **_: Any) -> Variable:
        """Return the linear map of x."""
        if not config.train:
            return connection.linear(x, self.W, self.b)
        return noise.simplified_dropconnect(x, self.W, self.b, self.ratio)


class Inception(Chain):
    """Four branches of convolutions and pooling, joined by channels."""

    def __init__(
        self,
        in_channels: int | None,
        out1: int,
        proj3: int,
        out3: int,
        proj5: int,
        out5: int,
        proj_pool: int,
        conv_init: Any = None,
        bias_init: Any = None,
    ) -> None:
        super().__init__()
        made = {"initialW": conv_init, "initial_bias": bias_init}
        with self.init_scope():
            self.conv1 = Convolution2D(in_channels, out1, 1, **made)
            self.proj3 = Convolution2D(in_channels, proj3, 1, **made)
            self.conv3 = Convolution2D(proj3, out3, 3, pad=1, **made)
            self.proj5 = Convolution2D(in_channels, proj5, 1, **made)
            self.conv5 = Convolution2D(proj5, out5, 5, pad=2, **made)
            self.projp = Convolution2D(in_channels, proj_pool, 1, **made)

    def forward(self, x: Any) -> Variable:
        """Return the branches side by side."""
        branches = (
            self.conv1(x),
            self.conv3(activation.relu(self.proj3(x))),
            self.conv5(activation.relu(self.proj5(x))),
            self.projp(pooling.max_pooling_2d(x, 3, stride=1, pad=1)),
        )
        return activation.relu(array.concat(branches, axis=1))
