"""Layouts and padding of layers with windows: channels last outside, channels first inside."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError, ShapeError
from ...nn import functional
from ...nn.arguments import as_sizes
from .base import Layer


class WindowLayer(Layer):
    """Base of convolutions and poolings.

    Inputs are (N, *positions, C), Keras's default, or (N, C, *positions) with
    data_format="channels_first". Weft computes channels first; axes are moved on the way in and
    out, and where such layers follow one another the compiler takes both moves away.
    """

    _spatial: int
    padding: str

    def take_layout(self, data_format: Any, padding: Any, choices: tuple[str, ...]) -> None:
        """Check and take where the channels are, and how edges are treated."""
        if data_format not in (None, "channels_last", "channels_first"):
            raise ArgumentError(
                f"{type(self).__name__}: data_format is 'channels_last' or 'channels_first'. "
                f"Received: {data_format!r}"
            )
        chosen = padding.lower() if isinstance(padding, str) else padding
        if chosen not in choices:
            raise ArgumentError(
                f"{type(self).__name__}: padding is one of {', '.join(choices)}. "
                f"Received: {padding!r}"
            )
        self.data_format, self.padding = data_format or "channels_last", chosen

    def sizes(self, name: str, value: Any) -> tuple[int, ...]:
        """Return one number for each axis of positions."""
        given = tuple(value) if isinstance(value, list) else value
        return as_sizes(self, name, given, self._spatial)

    def channels(self, input_shape: Any) -> int:
        """Return the number of channels of an input."""
        if len(input_shape) != self._spatial + 2:
            raise ShapeError(
                f"{self.name} takes inputs of {self._spatial + 2} dimensions, the batch included. "
                f"Received: {input_shape}"
            )
        found = input_shape[-1 if self.data_format == "channels_last" else 1]
        if found is None:
            raise ShapeError(f"{self.name}: the channels must be known. Received: {input_shape}")
        return int(found)

    def first(self, x: Any) -> Any:
        """Return an input with channels first."""
        if x.ndim != self._spatial + 2:
            self.channels(tuple(x.shape))
        return x.moveaxis(-1, 1) if self.data_format == "channels_last" else x

    def back(self, x: Any) -> Any:
        """Return an output in the layout of the inputs."""
        return x.moveaxis(1, -1) if self.data_format == "channels_last" else x


def same_widths(
    layer: Layer, x: Any, window: tuple[int, ...], strides: tuple[int, ...]
) -> list[int] | None:
    """Return how padding="same" pads (N, C, *positions), from the last axis backwards.

    Outputs are as many as strides begin in the input; what the padding cannot share equally it puts
    after the input. None: nothing is padded.
    """
    widths: list[int] = []
    for size, extent, stride in reversed(list(zip(x.shape[2:], window, strides, strict=True))):
        if stride == 1:
            total = extent - 1
        elif isinstance(size, int):
            total = max((-(-size // stride) - 1) * stride + extent - size, 0)
        else:
            raise ShapeError(
                f"{layer.name}: padding='same' with strides {strides} needs to know the sizes of "
                "its input"
            )
        widths += [total // 2, total - total // 2]
    return widths if any(widths) else None


def padded(x: Any, widths: list[int] | None, value: float = 0.0) -> Any:
    """Return an input with a number around it."""
    return x if widths is None else functional.pad(x, widths, value=value)
