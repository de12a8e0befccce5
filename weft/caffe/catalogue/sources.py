"""Layers without bottoms, whose tops are what a net is given: inputs, and made-up data."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

from ...core.tensor import Tensor
from ..blobs import OLD
from ..fillers import fill
from ..message import FillerParameter, Message
from .base import MANY, Layer, Limits, Shape, layer

Array: TypeAlias = NDArray[Any]


@layer("Input")
class Input(Layer):
    """Tops that the program fills."""

    bottoms = (0, 0)
    tops = (1, MANY)

    def setup(self, shapes: list[Shape]) -> None:
        """Check that there is a shape for each top, or one for all."""
        given = list(self.param.input_param.shape)
        tops = len(self.param.top)
        self.check(
            len(given) in {0, 1, tops},
            f"Must specify 'shape' once, once per top blob, or not at all: {tops} tops vs. "
            f"{len(given)} shapes.",
        )
        self.check(
            given, "gives no shape; Weft needs one to build the net: input_param { shape: ... }"
        )
        sizes = [self.checked_shape(tuple(s.dim), "input_param") for s in given]
        self.shapes = sizes * tops if len(sizes) == 1 else sizes

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shapes of the tops."""
        return self.shapes


class Sourced(Layer):
    """A layer whose tops come from an InputSource."""

    bottoms = (0, 0)
    tops = (1, MANY)

    def __init__(
        self, param: Message, phase: int, source: Any, limits: Limits | None = None
    ) -> None:
        self.__dict__["source"] = source
        super().__init__(param, [], phase, limits)

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shapes of the tops."""
        found = [tuple(shape) for shape in self.source.shapes()]
        self.check(
            len(found) >= len(self.param.top),
            f"{self.param.type} Layer brings {len(found)} blobs. Received: "
            f"{len(self.param.top)} tops",
        )
        return found[: len(self.param.top)]

    def forward(self, *bottoms: Tensor) -> tuple[Tensor, ...]:
        """Its tops are given to the net."""
        raise NotImplementedError


@layer("DummyData")
class DummyData(Layer):
    """What fillers make; those that draw do so anew for each batch. It is its own InputSource."""

    bottoms = (0, 0)
    tops = (1, MANY)

    def setup(self, shapes: list[Shape]) -> None:
        """Find the shape and the filler of each top."""
        options, tops = self.param.dummy_data_param, len(self.param.top)
        self.sizes = [self.checked_shape(s, "dummy_data_param") for s in self._given()]
        fillers = list(options.data_filler)
        self.check(
            len(fillers) in {0, 1, tops},
            f"Number of data fillers must be 0, 1 or equal to the number of tops: {tops}; "
            f"you specified {len(fillers)} data fillers.",
        )
        fillers = fillers or [FillerParameter()]
        self.fillers = fillers * tops if len(fillers) == 1 else fillers
        self.filled: list[Array] = []

    def _given(self) -> list[Shape]:
        options, tops = self.param.dummy_data_param, len(self.param.top)
        given = [tuple(s.dim) for s in options.shape]
        if not given:
            sizes = [list(getattr(options, name)) for name in OLD]
            self.check(
                all(len(s) in {1, tops} for s in sizes),
                f"Must specify {', '.join(OLD)} once, or once for each top, or 'shape'",
            )
            given = list(zip(*(s * tops if len(s) == 1 else s for s in sizes), strict=True))
        self.check(len(given) in {1, tops}, f"{tops} tops need 1 or {tops} shapes: {given}")
        return given * tops if len(given) == 1 else given

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shapes of the tops."""
        return self.sizes

    def shapes(self) -> tuple[Shape, ...]:
        """Return the shapes of the tops."""
        return tuple(self.sizes)

    def next(self) -> tuple[Array, ...]:
        """Return what the fillers make; constants are made once."""
        pairs = list(zip(self.fillers, self.sizes, strict=True))
        if not self.filled:
            self.filled = [fill(*pair) for pair in pairs]
        else:
            self.filled = [
                old if filler.type == "constant" else fill(filler, size)
                for (filler, size), old in zip(pairs, self.filled, strict=True)
            ]
        return tuple(self.filled)
