"""The states of a library: where each lies, in it or in a file of safetensors beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....graph.state import State
from .data import little_endian

_CODES = {
    "bool": "BOOL",
    "bfloat16": "BF16",
    **{f"{kind}{n}": f"{kind[0].upper()}{n}" for kind in ("int", "uint") for n in (8, 16, 32, 64)},
    **{f"float{n}": f"F{n}" for n in (16, 32, 64)},
}
_LINE = 64


class KeptState(NamedTuple):
    """A state of a library: its value when it was exported, and where it lies among the others."""

    name: str
    value: np.ndarray[Any, Any]
    changes: bool
    offset: int


class Weights(NamedTuple):
    """All states, and in which order they lie in a file."""

    states: list[KeptState]
    order: list[int]
    nbytes: int

    @property
    def header(self) -> bytes:
        """Return the beginning of a safetensors file with these states, a multiple of a line."""
        described: dict[str, Any] = {"__metadata__": {"format": "weft.export", "version": "1"}}
        for i in self.order:
            state = self.states[i]
            described[state.name] = {
                "dtype": _CODES[state.value.dtype.name],
                "shape": list(state.value.shape),
                "data_offsets": [state.offset, state.offset + state.value.nbytes],
            }
        text = json.dumps(described, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-(len(text) + 8) % _LINE)
        return len(text).to_bytes(8, "little") + text

    def data(self) -> Iterator[bytes]:
        """Yield the bytes of all states, one behind the other."""
        for i in self.order:
            yield little_endian(self.states[i].value)


def read_weights(states: Sequence[State], names: Sequence[str], changed: set[Any]) -> Weights:
    """Return states with their values now; `changed` are the keys of those that runs write.

    The format allows no gaps. So those come first whose size is a multiple of a cache line, and all
    of them begin at one; then others, wide elements first, at multiples of their elements.
    """
    values = [np.ascontiguousarray(state.read()).reshape(state.type.shape) for state in states]
    order = sorted(
        range(len(states)), key=lambda i: (values[i].nbytes % _LINE != 0, -values[i].itemsize, i)
    )
    offsets, at = [0] * len(states), 0
    for i in order:
        offsets[i] = at
        at += values[i].nbytes
    kept = [
        KeptState(name, value, state.key in changed, offset)
        for name, value, state, offset in zip(names, values, states, offsets, strict=True)
    ]
    return Weights(kept, order, at)
