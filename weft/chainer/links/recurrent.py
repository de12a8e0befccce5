"""Recurrent cells, with their states inside or outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions import activation, array
from ..initializers import as_initializer
from ..link import Chain
from ..variable import Variable
from .connection import Linear


def _interleaved(a: Any, i: Any, f: Any, o: Any) -> Any:
    """Return an initializer for four gates whose rows stand interleaved, as `lstm` reads them."""

    def fill(target: Any) -> None:
        for position, start in enumerate((a, i, f, o)):
            as_initializer(start)(target[position::4])

    return fill


class StatelessLSTM(Chain):
    """An LSTM whose states are given and returned."""

    def __init__(
        self,
        in_size: int | None,
        out_size: int | None = None,
        lateral_init: Any = None,
        upward_init: Any = None,
        bias_init: Any = None,
        forget_bias_init: Any = None,
    ) -> None:
        super().__init__()
        if out_size is None:
            in_size, out_size = None, in_size
        size: Any = out_size
        self.state_size = size
        bias = 0.0 if bias_init is None else bias_init
        biases = _interleaved(
            bias, bias, 1.0 if forget_bias_init is None else forget_bias_init, bias
        )
        with self.init_scope():
            self.upward = Linear(in_size, 4 * size, initialW=upward_init, initial_bias=biases)
            self.lateral = Linear(size, 4 * size, nobias=True, initialW=lateral_init)

    def forward(self, c: Any, h: Any, x: Any) -> tuple[Variable, Variable]:
        """Return the next cell state and output."""
        gates = self.upward(x)
        if h is not None:
            gates = gates + self.lateral(h)
        if c is None:
            c = Variable(np.zeros((x.shape[0], self.state_size), gates.dtype))
        return activation.lstm(c, gates)


class LSTM(StatelessLSTM):
    """An LSTM that keeps its states, `c` and `h`, from one call to the next."""

    def __init__(self, in_size: int | None, out_size: int | None = None, **options: Any) -> None:
        super().__init__(in_size, out_size, **options)
        self.reset_state()

    def reset_state(self) -> None:
        """Begin with no states."""
        self.c: Variable | None = None
        self.h: Variable | None = None

    def set_state(self, c: Variable, h: Variable) -> None:
        """Go on from other states."""
        self.c, self.h = c, h

    def forward(self, x: Any) -> Variable:  # type: ignore[override]  # states are inside
        """Return the next output."""
        gates = self.upward(x)
        batch = x.shape[0]
        rest = None
        if self.h is not None:
            held = self.h
            if held.shape[0] < batch:
                raise ValueError(
                    f"the batch size of x must be equal to or less than the size of the previous "
                    f"state h. Received: {batch} and {held.shape[0]}"
                )
            if held.shape[0] > batch:
                held, rest = held[:batch], held[batch:]
            gates = gates + self.lateral(held)
        if self.c is None:
            self.c = Variable(np.zeros((batch, self.state_size), gates.dtype))
        self.c, y = activation.lstm(self.c, gates)
        self.h = y if rest is None else array.concat([y, rest], axis=0)
        return y


class StatelessGRU(Chain):
    """A gated recurrent unit whose state is given and returned."""

    W: Linear
    W_r: Linear
    W_z: Linear
    U: Linear
    U_r: Linear
    U_z: Linear

    def __init__(
        self,
        in_size: int | None,
        out_size: int,
        init: Any = None,
        inner_init: Any = None,
        bias_init: Any = 0,
    ) -> None:
        super().__init__()
        self.out_size = out_size
        with self.init_scope():
            for name in ("W_r", "W_z", "W"):
                setattr(
                    self, name, Linear(in_size, out_size, initialW=init, initial_bias=bias_init)
                )
            for name in ("U_r", "U_z", "U"):
                setattr(
                    self,
                    name,
                    Linear(out_size, out_size, initialW=inner_init, initial_bias=bias_init),
                )

    def forward(self, h: Any, x: Any) -> Any:
        """Return the next state: (1 - z) h + z h~ ."""
        z, r, new = self.W_z(x), self.W_r(x), self.W(x)
        if h is None:
            return activation.sigmoid(z) * activation.tanh(new)
        z = activation.sigmoid(z + self.U_z(h))
        r = activation.sigmoid(r + self.U_r(h))
        new = activation.tanh(new + self.U(r * h))
        return (1 - z) * h + z * new


class StatefulGRU(StatelessGRU):
    """A gated recurrent unit that keeps its state, `h`."""

    def __init__(
        self,
        in_size: int | None,
        out_size: int,
        init: Any = None,
        inner_init: Any = None,
        bias_init: Any = 0,
    ) -> None:
        super().__init__(in_size, out_size, init, inner_init, bias_init)
        self.reset_state()

    def reset_state(self) -> None:
        """Begin with no state."""
        self.h: Any = None

    def set_state(self, h: Any) -> None:
        """Go on from another state."""
        self.h = h

    def forward(self, x: Any) -> Any:  # type: ignore[override]  # the state is inside
        """Return the next state."""
        self.h = super().forward(self.h, x)
        return self.h


class GRU(StatefulGRU):
    """The stateful unit."""


class NaryTreeLSTM(Chain):
    """A tree-LSTM for nodes with so many children, each with weights of its own."""

    def __init__(self, in_size: int | None, out_size: int, n_ary: int = 2) -> None:
        super().__init__()
        self.state_size, self.n_ary = out_size, n_ary
        with self.init_scope():
            self.W_x = Linear(in_size, (3 + n_ary) * out_size)
            for number in range(1, n_ary + 1):
                setattr(self, f"W_h{number}", Linear(out_size, (3 + n_ary) * out_size, nobias=True))

    def forward(self, *cshsx: Any) -> Any:
        """Return state and output from children's states, their outputs and an input (or None)."""
        cs, hs, x = cshsx[: self.n_ary], cshsx[self.n_ary : -1], cshsx[-1]
        known = next((v for v in cshsx if v is not None), None)
        if known is None:
            raise ValueError("at least one of the children's states and the input must be given")
        shape = (known.shape[0], self.state_size)
        gates: Any = self.W_x(x) if x is not None else None
        for number, h in enumerate(hs, 1):
            if h is not None:
                part = getattr(self, f"W_h{number}")(h)
                gates = part if gates is None else gates + part
        zeros = Variable(np.zeros(shape, known.dtype))
        return activation.tree_lstm(*(zeros if c is None else c for c in cs), gates)


class ChildSumTreeLSTM(Chain):
    """A tree-LSTM for nodes with any number of children, whose outputs are summed."""

    def __init__(self, in_size: int | None, out_size: int) -> None:
        super().__init__()
        self.state_size = out_size
        with self.init_scope():
            self.W_x = Linear(in_size, 4 * out_size)
            self.W_h_aio = Linear(out_size, 3 * out_size, nobias=True)
            self.W_h_f = Linear(out_size, out_size, nobias=True)

    def forward(self, *cshsx: Any) -> Any:
        """Return state and output from children's states, their outputs and an input (or None)."""
        count = len(cshsx) // 2
        cs, hs, x = cshsx[:count], cshsx[count:-1], cshsx[-1]
        pairs = [(c, h) for c, h in zip(cs, hs, strict=True) if c is not None and h is not None]
        if x is None and not pairs:
            raise ValueError("at least one of the children's states and the input must be given")
        gates: Any = self.W_x(x) if x is not None else 0.0
        own = array.split_axis(gates, [3 * self.state_size], 1) if x is not None else (0.0, 0.0)
        aio, f = own
        if pairs:
            total = pairs[0][1]
            for _, h in pairs[1:]:
                total = total + h
            aio = self.W_h_aio(total) + aio
        a, i, o = array.split_axis(aio, 3, 1)
        c = activation.sigmoid(i) * activation.tanh(a)
        for state, h in pairs:
            c = c + activation.sigmoid(self.W_h_f(h) + f) * state
        return c, activation.sigmoid(o) * activation.tanh(c)
