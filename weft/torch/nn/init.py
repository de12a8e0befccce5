"""torch.nn.init: values that parameters begin with."""

from __future__ import annotations

from inspect import unwrap
from typing import Any

from ...nn import init as core_init
from ..names import names
from ..phrasing import phrased

NAMES = names("""
    uniform_ normal_ trunc_normal_ constant_ ones_ zeros_ eye_ dirac_ xavier_uniform_
    xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_ sparse_
""")
calculate_gain = core_init.calculate_gain


def _filling(name: str) -> Any:
    """Return a function that fills a tensor, also one that is a view of a parameter."""
    behind: Any = unwrap(getattr(core_init, name))

    def fill(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        return behind(tensor, *args, **kwargs)

    fill.__name__ = name
    fill.__doc__ = behind.__doc__
    return phrased(fill, name)


FUNCTIONS: dict[str, Any] = {name: _filling(name) for name in NAMES}
# The names without an underscore are PyTorch's old ones.
FUNCTIONS |= {
    name.removesuffix("_"): FUNCTIONS[name] for name in NAMES if name not in ("ones_", "zeros_")
}
globals().update(FUNCTIONS)


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    """Return how many inputs and outputs a weight has."""
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    return core_init.fans(tensor)
