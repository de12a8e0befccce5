"""Line search for the strong Wolfe conditions, with cubic interpolation.

Nocedal & Wright, Numerical Optimization (2006), algorithms 3.5 (bracketing) and 3.6 (zoom), with
the safeguards of minFunc (Schmidt 2005) that PyTorch uses too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Objective = Callable[[float], tuple[float, Array]]


class LinePoint(NamedTuple):
    """A place on the line: step length, loss, gradient, and slope along the line."""

    t: float
    f: float
    g: Array
    slope: float


class Wolfe(NamedTuple):
    """The strong Wolfe conditions relative to the start of the line."""

    start: LinePoint
    decrease: float = 1e-4
    curvature: float = 0.9

    def too_high(self, point: LinePoint) -> bool:
        """Tell whether the loss fell too little; one that is not a number did not fall."""
        return not point.f <= self.start.f + self.decrease * point.t * self.start.slope

    def flat_enough(self, point: LinePoint) -> bool:
        """Tell whether the slope has become small."""
        return abs(point.slope) <= -self.curvature * self.start.slope


def strong_wolfe(
    objective: Objective,
    t: float,
    direction: Array,
    start: LinePoint,
    *,
    tolerance_change: float = 1e-9,
    max_trials: int = 25,
) -> tuple[LinePoint, int]:
    """Return a point that satisfies the conditions, and the number of evaluations.

    If the trials run out, the best point of the last bracket is returned.
    """
    line = _Line(objective, direction)
    wolfe = Wolfe(start)
    bracket, found = _bracket(line, wolfe, t, max_trials)
    if found is None:
        length = float(np.abs(direction).max())
        found = _zoom(line, wolfe, bracket, tolerance_change / length, max_trials)
    return found, line.evaluations


class _Line:
    """The objective along a direction, counting its evaluations."""

    def __init__(self, objective: Objective, direction: Array) -> None:
        self._objective = objective
        self._direction = direction
        self.evaluations = 0

    def at(self, t: float) -> LinePoint:
        f, g = self._objective(t)
        self.evaluations += 1
        return LinePoint(t, f, g, float(g @ self._direction))


def _bracket(
    line: _Line, wolfe: Wolfe, t: float, max_trials: int
) -> tuple[tuple[LinePoint, LinePoint], LinePoint | None]:
    """Lengthen the step until an acceptable point lies between two, or is found."""
    previous, point = wolfe.start, line.at(t)
    for trial in range(max_trials):
        if wolfe.too_high(point) or (trial > 1 and point.f >= previous.f):
            return (previous, point), None
        if wolfe.flat_enough(point):
            return (point, point), point
        if point.slope >= 0:
            return (previous, point), None
        shortest, longest = point.t + 0.01 * (point.t - previous.t), point.t * 10.0
        t = minimum_of_cubic(previous, point, (shortest, longest))
        previous, point = point, line.at(t)
    return (wolfe.start, point), None


def _zoom(
    line: _Line,
    wolfe: Wolfe,
    bracket: tuple[LinePoint, LinePoint],
    tolerance: float,
    max_trials: int,
) -> LinePoint:
    """Narrow a bracket around an acceptable point."""
    low, high = sorted(bracket, key=_height)
    stuck = False
    while line.evaluations <= max_trials and abs(high.t - low.t) >= tolerance:
        first, second = sorted((low, high), key=lambda p: p.t)
        t, stuck = _inside(minimum_of_cubic(first, second), first.t, second.t, stuck)
        point = line.at(t)
        if wolfe.too_high(point) or point.f >= low.f:
            low, high = sorted((low, point), key=_height)
        elif wolfe.flat_enough(point):
            return point
        else:
            turned = point.slope * (high.t - low.t) >= 0
            low, high = point, (low if turned else high)
    return low


def _height(point: LinePoint) -> float:
    return math.inf if math.isnan(point.f) else point.f


def _inside(t: float, left: float, right: float, stuck: bool) -> tuple[float, bool]:
    """Keep a trial away from the ends: at the second time near one, move it inwards."""
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if not stuck and left < t < right:
        return t, True
    return (right - margin if abs(t - right) < abs(t - left) else left + margin), False


def minimum_of_cubic(
    a: LinePoint, b: LinePoint, bounds: tuple[float, float] | None = None
) -> float:
    """Return where the cubic through two points and slopes is lowest, within bounds.

    Nocedal & Wright, equation 3.59; where it has no minimum, the middle.
    """
    low, high = bounds or (min(a.t, b.t), max(a.t, b.t))
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:
        return (low + high) / 2.0
    d1 = a.slope + b.slope - 3.0 * (a.f - b.f) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not 0.0 <= square < math.inf:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    divisor = b.slope - a.slope + 2.0 * d2
    if divisor == 0.0:
        return (low + high) / 2.0
    lowest = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / divisor)
    return (low + high) / 2.0 if math.isnan(lowest) else min(max(lowest, low), high)
