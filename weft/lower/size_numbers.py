"""Numbers that follow from sizes which every run is told, as constants of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.dim import SizeVar, evaluate
from ..core.dim.number import number_value
from ..core.dtype import DType
from ..core.operands import scalar_array
from ..graph.node import map_attr


@dataclass(frozen=True)
class SizeNumber:
    """A number that is computed from sizes (see core/dim/number.py), and its dtype."""

    expression: Any
    dtype: DType

    def at(self, sizes: Mapping[SizeVar, int]) -> np.ndarray[Any, Any]:
        """Return the number for given sizes, as an array."""
        known = map_attr(lambda item: evaluate(item, sizes), self.expression)
        return scalar_array(number_value(known), self.dtype)
