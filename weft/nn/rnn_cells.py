"""One time step of a recurrent net: the step functions, and RNNCell, GRUCell and LSTMCell.

A step takes the input's share of the gates, computed beforehand (for all time steps at once where
there are several), and the state, a tuple whose first member is the output. Gate order, names and
layouts are PyTorch's: i, f, g, o for LSTM and r, z, n for GRU, stacked along the first axis of each
weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from ..core.errors import ArgumentTypeError, ShapeError
from ..core.tensor import Tensor
from . import init
from .arguments import as_choice, as_flag, as_size
from .calls import F
from .module import Module
from .parameter import Parameter, new_parameter

State = tuple[Tensor, ...]


class CellWeights(NamedTuple):
    """The weights of one layer in one direction; all but the first two may be absent."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None = None
    bias_hh: Tensor | None = None
    weight_hr: Tensor | None = None


# -- the steps -----------------------------------------------------------------------------------


def tanh_step(x: Tensor, state: State, weights: CellWeights) -> State:
    """Return tanh(x + W_hh h) (Elman 1990)."""
    return (F.tanh(x + F.linear(state[0], weights.weight_hh)),)


def relu_step(x: Tensor, state: State, weights: CellWeights) -> State:
    """Return relu(x + W_hh h)."""
    return (F.relu(x + F.linear(state[0], weights.weight_hh)),)


def lstm_step(x: Tensor, state: State, weights: CellWeights) -> State:
    """Return the next output and cell state (Hochreiter and Schmidhuber 1997, with forget gate).

    With weight_hr the output is projected to fewer features (Sak et al. 2014, arXiv:1402.1128).
    """
    h, c = state
    i, f, g, o = F.split(x + F.linear(h, weights.weight_hh), c.shape[-1], -1)
    c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
    h = F.sigmoid(o) * F.tanh(c)
    return h if weights.weight_hr is None else F.linear(h, weights.weight_hr), c


def gru_step(x: Tensor, state: State, weights: CellWeights) -> State:
    """Return the next output (Cho et al. 2014, arXiv:1406.1078).

    The reset gate multiplies W_hn h + b_hn, as in cuDNN and PyTorch, so b_hh cannot join the
    input's share.
    """
    (h,) = state
    size = h.shape[-1]
    x_gates, x_new = F.split(x, (2 * size, size), -1)
    recurrent = F.linear(h, weights.weight_hh, weights.bias_hh)
    h_gates, h_new = F.split(recurrent, (2 * size, size), -1)
    r, z = F.split(F.sigmoid(x_gates + h_gates), size, -1)
    n = F.tanh(x_new + r * h_new)
    return (n + z * (h - n),)


class CellKind(NamedTuple):
    """What tells the recurrent nets apart."""

    step: Callable[[Tensor, State, CellWeights], State]
    gates: int  # blocks of hidden_size rows in each weight
    states: int  # tensors in the state
    bias_in_step: bool  # the step adds bias_hh itself

    def input_share(self, x: Tensor, weights: CellWeights) -> Tensor:
        """Return W_ih x + b for inputs (..., in): one product for any number of time steps."""
        bias = weights.bias_ih
        if bias is not None and not self.bias_in_step:
            bias = bias + weights.bias_hh
        return F.linear(x, weights.weight_ih, bias)


KINDS = {
    "RNN_TANH": CellKind(tanh_step, 1, 1, False),
    "RNN_RELU": CellKind(relu_step, 1, 1, False),
    "LSTM": CellKind(lstm_step, 4, 2, False),
    "GRU": CellKind(gru_step, 3, 1, True),
}


# -- the cells as modules ------------------------------------------------------------------------


class _Cell(Module):
    """What the cells share: sizes, weights, and inputs with or without a batch."""

    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, bias: bool, device: Any, dtype: Any
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = as_size(self, "input_size", input_size)
        self.hidden_size = as_size(self, "hidden_size", hidden_size)
        self.bias = as_flag(self, "bias", bias)
        rows = KINDS[mode].gates * self.hidden_size
        self.weight_ih = new_parameter((rows, self.input_size), dtype, device)
        self.weight_hh = new_parameter((rows, self.hidden_size), dtype, device)
        for name in ("bias_ih", "bias_hh"):
            made = new_parameter((rows,), dtype, device) if bias else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights uniformly from +-1 / sqrt(hidden_size)."""
        draw_recurrent(self, self.hidden_size)

    def _next(self, input: Tensor, state: tuple[Tensor | None, ...]) -> State:
        """Return the state after one more input, (batch, in) or (in,)."""
        check_features(self, input, self.input_size, ndims=(1, 2), layout="(batch, in) or (in,)")
        expected = (*input.shape[:-1], self.hidden_size)
        for given in state:
            if given is not None and not same_dims(given.shape, expected):
                raise ShapeError(
                    f"{type(self).__name__}: the state must have shape {expected} beside input of "
                    f"shape {input.shape}. Received: {given.shape}"
                )
        kind = KINDS[self.mode]
        weights = CellWeights(self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        share = kind.input_share(input, weights)
        filled = tuple(zeros_beside(share, self.hidden_size) if s is None else s for s in state)
        return kind.step(share, filled, weights)

    def extra_repr(self) -> str:
        """Return the sizes, and what differs from the defaults."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_Cell):
    """One step of an Elman net: h' = tanh(W_ih x + b_ih + W_hh h + b_hh).

    >>> import weft as wf
    >>> cell = RNNCell(10, 20)
    >>> cell(wf.zeros(3, 10), wf.zeros(3, 20)).shape
    (3, 20)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            rnn_mode("RNNCell", nonlinearity), input_size, hidden_size, bias, device, dtype
        )
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state; `hx` is zero if not given."""
        return self._next(input, (hx,))[0]

    def extra_repr(self) -> str:
        """Return the sizes, and what differs from the defaults."""
        shown = super().extra_repr()
        return shown if self.nonlinearity == "tanh" else f"{shown}, nonlinearity='relu'"


class _GatedCell(_Cell):
    _gates: ClassVar[str]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(self._gates, input_size, hidden_size, bias, device, dtype)


class GRUCell(_GatedCell):
    """One step of a gated recurrent unit.

    >>> import weft as wf
    >>> GRUCell(10, 20)(wf.zeros(3, 10)).shape
    (3, 20)
    """

    _gates = "GRU"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state; `hx` is zero if not given."""
        return self._next(input, (hx,))[0]


class LSTMCell(_GatedCell):
    """One step of a long short-term memory.

    >>> import weft as wf
    >>> h, c = LSTMCell(10, 20)(wf.zeros(3, 10))
    >>> h.shape, c.shape
    ((3, 20), (3, 20))
    """

    _gates = "LSTM"

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the next output and cell state; both are zero if not given."""
        h, c = self._next(input, (None, None) if hx is None else check_pair(self, hx))
        return h, c


# -- shared with the layers ----------------------------------------------------------------------


def draw_recurrent(module: Module, hidden_size: int) -> None:
    """Draw all parameters of a module uniformly from +-1 / sqrt(hidden_size)."""
    bound = 1 / math.sqrt(hidden_size)
    for parameter in module.parameters(recurse=False):
        init.uniform_(parameter, -bound, bound)


def rnn_mode(layer: str, nonlinearity: str) -> str:
    """Return the kind of Elman net that uses a nonlinearity."""
    return f"RNN_{as_choice(layer, 'nonlinearity', nonlinearity, ('tanh', 'relu'))}".upper()


def zeros_beside(x: Tensor, size: int) -> Tensor:
    """Return zeros of shape (..., size) beside x (..., n >= size), whose sizes may be unknown."""
    return F.zeros_like(F.stop_gradient(x[..., :size]))


def same_dims(given: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    """Tell whether two shapes agree wherever both are known (a graph may not know them yet)."""
    return len(given) == len(expected) and all(
        a == b or a is None or b is None for a, b in zip(given, expected, strict=True)
    )


def check_features(
    module: Module, x: Any, size: int, *, ndims: tuple[int, ...], layout: str
) -> None:
    """Raise unless x is a tensor of one of the layouts whose last size is the expected one."""
    name = type(module).__name__
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(f"{name}: input must be a tensor. Received: {type(x).__name__}")
    if x.ndim not in ndims or x.shape[-1] not in (size, None):
        raise ShapeError(
            f"{name}: input must have shape {layout} with {size} features. Received: {x.shape}"
        )


def check_pair(module: Module, hx: Any) -> tuple[Tensor, Tensor]:
    """Return the state of an LSTM; raise unless it is a pair of tensors."""
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise ArgumentTypeError(
            f"{type(module).__name__}: hx must be a pair (h, c) of tensors. "
            f"Received: {type(hx).__name__}"
        )
    return hx[0], hx[1]
