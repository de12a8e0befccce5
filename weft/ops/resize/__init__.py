"""Changing the size of images: interpolation, sampling at a grid, pixels to channels and back."""

from . import axis, grid, interpolate, shuffle

__all__ = ["axis", "grid", "interpolate", "shuffle"]
