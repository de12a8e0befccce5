"""Random programs of values that live long, for the tests of memory and rematerialisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

import weft as wf
from weft import nn

Unary = Callable[[Any], Any]

# Each takes a (4, 6) value and returns a (4, 6) value; together they cover views of all kinds,
# overwriting, copies, contractions, several results and draws.
UNARY: list[Unary] = [
    wf.tanh,
    wf.sin,
    wf.sigmoid,
    lambda x: x * 2.0 + 1.0,
    lambda x: x.reshape(6, 4).T,
    lambda x: x.T.reshape(4, 6),
    lambda x: wf.flip(x, 1),
    lambda x: wf.concat([x[2:], x[:2]], 0),
    lambda x: x[:, ::-1],
    lambda x: wf.broadcast_to(x[1:2], (4, 6)),
    lambda x: x - x.mean(axis=0),
    lambda x: x.sum(axis=1, keepdims=True) * 0.1 + x,
    lambda x: wf.concat(list(reversed(wf.split(x, 3, 1))), 1),
    lambda x: wf.stop_gradient(x) + x,
    lambda x: x @ (x.T @ x) * 0.1,
    lambda x: wf.softmax(x, 1),
    wf.relu,
    lambda x: nn.functional.dropout(x, 0.5),
    lambda x: wf.unsqueeze(x, 0).squeeze(0),
]
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x * y,
    wf.maximum,
    lambda x, y: x - y[0],
    lambda x, y: x + y.reshape(6, 4).T,
    lambda x, y: wf.where(x > 0, x, y),
    lambda x, y: (x @ y.T).sum() * 0.1 + x,
]
STEPS = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)),
    min_size=8,
    max_size=60,
)


def apply_steps(x: Any, steps: Sequence[tuple[int, int, int]]) -> list[Any]:
    """Return all values that a program makes, the given one first."""
    pool = [x]
    for choice, a, b in steps:
        which = choice % (len(UNARY) + len(BINARY))
        left, right = _recent(pool, a), _recent(pool, b)
        if which < len(UNARY):
            pool.append(UNARY[which](left))
        else:
            pool.append(BINARY[which - len(UNARY)](left, right))
    return pool


def _recent(pool: list[Any], pick: int) -> Any:
    """Return one of the last values, most often the last: deep programs, with some branches."""
    return pool[-1] if pick % 3 else pool[max(0, len(pool) - 1 - pick % 7)]
