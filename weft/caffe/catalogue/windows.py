"""Kernels, strides, pads and dilations, as layers give them: once, for each axis, or as h, w."""

from __future__ import annotations

from typing import Any

from ..message import Message
from .base import Layer, Shape


def per_axis(layer: Layer, options: Message, name: str, axes: int, default: int | None) -> Shape:
    """Return a repeated option of convolutions for each spatial axis."""
    short = name.partition("_")[0]
    h, w = f"{short}_h", f"{short}_w"
    given = list(getattr(options, name))
    if h in options.TYPE.fields and (options.has(h) or options.has(w)):
        layer.check(axes == 2, f"{h} & {w} can only be used for 2D convolution")
        layer.check(not given, f"Either {name} or {h}/{w} should be specified; not both")
        return (getattr(options, h), getattr(options, w))
    if not given:
        layer.check(default is not None, f"{name} must be specified once, or {axes} times")
        return (default or 0,) * axes
    layer.check(
        len(given) in {1, axes},
        f"{name} must be specified once, or once per spatial dimension ({name} specified "
        f"{len(given)} times; {axes} spatial dims)",
    )
    return tuple(given) * (axes if len(given) == 1 else 1)


def pair(layer: Layer, options: Message, name: str) -> tuple[int, int]:
    """Return an option of pooling for height and width."""
    short = name.partition("_")[0]
    h, w = f"{short}_h", f"{short}_w"
    if options.has(h) or options.has(w):
        layer.check(not options.has(name), f"{name} OR {h}, {w}, not both")
        return getattr(options, h), getattr(options, w)
    value: Any = getattr(options, name)
    return value, value
