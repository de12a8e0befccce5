"""Recurrent networks over time: a batch for each step, smaller where sequences have ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.op import F
from ...core.tensor import Tensor
from ..configuration import config
from ..utils.type_check import expect
from ._common import function

Cell = Callable[..., tuple[Tensor, ...]]


def _lstm_cell(
    x: Tensor, states: tuple[Tensor, ...], w: Sequence[Tensor], b: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    h, c = states
    i, f, a, o = F.split(_gates(x, h, w, b, 4), h.shape[1], 1)
    c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(a)
    return F.sigmoid(o) * F.tanh(c), c


def _gates(x: Tensor, h: Tensor, w: Sequence[Tensor], b: Sequence[Tensor], count: int) -> Tensor:
    from_x = F.linear(x, F.concat(list(w[:count]), 0), F.concat(list(b[:count]), 0))
    return from_x + F.linear(h, F.concat(list(w[count:]), 0), F.concat(list(b[count:]), 0))


def _gru_cell(
    x: Tensor, states: tuple[Tensor, ...], w: Sequence[Tensor], b: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    (h,) = states
    from_x = F.linear(x, F.concat(list(w[:3]), 0), F.concat(list(b[:3]), 0))
    from_h = F.linear(h, F.concat(list(w[3:]), 0), F.concat(list(b[3:]), 0))
    rx, zx, nx = F.split(from_x, h.shape[1], 1)
    rh, zh, nh = F.split(from_h, h.shape[1], 1)
    r, z = F.sigmoid(rx + rh), F.sigmoid(zx + zh)
    return ((1 - z) * F.tanh(nx + r * nh) + z * h,)


def _plain_cell(activation: str) -> Cell:
    def cell(
        x: Tensor, states: tuple[Tensor, ...], w: Sequence[Tensor], b: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        return (getattr(F, activation)(F.linear(x, w[0], b[0]) + F.linear(states[0], w[1], b[1])),)

    return cell


_CELLS: dict[str, Cell] = {"tanh": _plain_cell("tanh"), "relu": _plain_cell("relu")}


def _run(
    cell: Cell, batches: list[Tensor], states: tuple[Tensor, ...], w: Any, b: Any, backwards: bool
) -> tuple[list[Tensor], tuple[Tensor, ...]]:
    """Run a layer over batches of shrinking size; return its outputs by time and last states.

    States of sequences that have ended stay; backwards, a sequence joins when its end is reached.
    """
    order = reversed(range(len(batches))) if backwards else range(len(batches))
    outputs: list[Any] = [None] * len(batches)
    for t in order:
        rows = batches[t].shape[0]
        part = tuple(s[:rows] for s in states)
        new = cell(batches[t], part, w, b)
        outputs[t] = new[0]
        states = tuple(
            n if s.shape[0] == rows else F.concat([n, s[rows:]], 0)
            for n, s in zip(new, states, strict=True)
        )
    return outputs, states


def _layers(
    cell: Cell,
    n_layers: int,
    dropout_ratio: float,
    states: tuple[Tensor, ...],
    ws: Any,
    bs: Any,
    xs: Sequence[Tensor],
    directions: int,
) -> tuple[Any, ...]:
    batches = list(xs)
    sizes = [x.shape[0] for x in batches]
    expect(
        "n_step_rnn",
        sizes == sorted(sizes, reverse=True),
        "batches, one for each time step, that do not grow",
        str(sizes),
    )
    last: list[tuple[Tensor, ...]] = []
    for layer in range(n_layers):
        if layer:
            batches = [F.dropout(x, dropout_ratio, bool(config.train)) for x in batches]
        found = []
        for direction in range(directions):
            index = layer * directions + direction
            start = tuple(s[index] for s in states)
            outputs, ended = _run(cell, batches, start, ws[index], bs[index], direction == 1)
            found.append(outputs)
            last.append(ended)
        batches = [
            F.concat(list(steps), 1) if directions > 1 else steps[0]
            for steps in zip(*found, strict=True)
        ]
    finals = tuple(F.stack(list(of_layers)) for of_layers in zip(*last, strict=True))
    return (*finals, tuple(batches))


def _n_step(name: str, cell: Cell | None, kinds: int, directions: int) -> Any:
    """Return a function of Chainer's over layers of a cell with one or two states."""
    if kinds == 2:

        def with_cells(
            n_layers: int, dropout_ratio: float, hx: Any, cx: Any, ws: Any, bs: Any, xs: Any
        ) -> Any:
            return _layers(
                cell or _CELLS["tanh"], n_layers, dropout_ratio, (hx, cx), ws, bs, xs, directions
            )

        compute: Callable[..., Any] = with_cells
    elif cell is not None:

        def with_state(
            n_layers: int, dropout_ratio: float, hx: Any, ws: Any, bs: Any, xs: Any
        ) -> Any:
            return _layers(cell, n_layers, dropout_ratio, (hx,), ws, bs, xs, directions)

        compute = with_state
    else:

        def with_activation(
            n_layers: int,
            dropout_ratio: float,
            hx: Any,
            ws: Any,
            bs: Any,
            xs: Any,
            activation: str = "tanh",
        ) -> Any:
            if activation not in _CELLS:
                raise ValueError(f"Invalid activation: {activation!r}; it is 'tanh' or 'relu'")
            return _layers(
                _CELLS[activation], n_layers, dropout_ratio, (hx,), ws, bs, xs, directions
            )

        compute = with_activation
    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = f"Run layers over batches, one for each time step: {name[7:].upper()}."
    return function(compute)


n_step_lstm = _n_step("n_step_lstm", _lstm_cell, 2, 1)
n_step_bilstm = _n_step("n_step_bilstm", _lstm_cell, 2, 2)
n_step_gru = _n_step("n_step_gru", _gru_cell, 1, 1)
n_step_bigru = _n_step("n_step_bigru", _gru_cell, 1, 2)
n_step_rnn = _n_step("n_step_rnn", None, 1, 1)
n_step_birnn = _n_step("n_step_birnn", None, 1, 2)
