"""The state of a draw: which key and counter of the Philox generator its numbers come from.

A random operator takes the state as its first input, a uint64 tensor of three words: the low and
the high word of the key, and the counter. So it is a pure function, and the only side effect is the
reservation of counters, made here and nowhere else. How many blocks a draw reserves follows from
the operator's rule in BLOCKS, from shapes, dtypes and attributes alone, never from values: the same
program draws the same numbers in every mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...core.dispatch import canonical
from ...core.dtype import uint64
from ...core.errors import ArgumentTypeError, DTypeError, ShapeError
from ...core.op import Op
from ...core.rng import Generator, default_generator
from ...core.tensor import Tensor, wrap

WORD = (1 << 64) - 1
STATE_SHAPE = (3,)
BLOCKS: dict[str, Callable[..., int]] = {}
RuleT = TypeVar("RuleT", bound=Callable[..., int])


def blocks_rule(op: Op) -> Callable[[RuleT], RuleT]:
    """Attach the rule that counts the blocks an operator consumes.

    It receives the inputs after the state (anything with a shape and a dtype) and the attributes.
    """

    def attach(rule: RuleT) -> RuleT:
        BLOCKS[op.name] = rule
        return rule

    return attach


def draw(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], generator: Any) -> Any:
    """Reserve a state and apply a random operator to it; a bad argument reserves nothing."""
    attrs = canonical(op, (None, *inputs), attrs)
    state = reserve_state(generator, BLOCKS[op.name](*inputs, *attrs))
    return op(state, *inputs, *attrs)


def reserve_state(generator: Generator | None, blocks: int) -> Tensor:
    """Take the next blocks of a generator (None = the default one) and return their state."""
    if generator is None:
        generator = default_generator
    elif not isinstance(generator, Generator):
        raise ArgumentTypeError(
            "generator must be a wf.Generator or None. "
            f"Received: {type(generator).__name__} {generator!r:.60}"
        )
    return wrap(make_state(*generator.reserve(blocks)))


def make_state(key: int, counter: int) -> np.ndarray[Any, Any]:
    """Return a key and a counter as the words of a state."""
    return np.array((key & WORD, key >> 64, counter), uint64)


def read_state(state: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Return the key and the counter that a state holds."""
    check_state(state)
    low, high, counter = state.tolist()
    return low | high << 64, counter


def check_state(state: Any) -> None:
    """Raise unless an operand can be the state of a draw."""
    if state.dtype != uint64:
        raise DTypeError(f"state must be of dtype uint64. Received: {state.dtype}")
    if tuple(state.shape) != STATE_SHAPE:
        raise ShapeError(
            f"state must have shape {STATE_SHAPE}: two words of the key, and the counter. "
            f"Received: {state.shape}"
        )


def get_rng_state() -> dict[str, str]:
    """Return the state of the default generator, to give to set_rng_state later."""
    return default_generator.get_state()


def set_rng_state(state: dict[str, str]) -> None:
    """Let the default generator continue where get_rng_state was called."""
    default_generator.set_state(state)
