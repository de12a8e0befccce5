"""torch.distributions: Weft's distributions, whose draws and densities are tensors of this face."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ... import distributions as core_distributions
from ...core import tensor as core
from ...core.errors import WeftError
from ..absent import absent
from ..adoption import adopt
from ..names import description
from ..parts import serve_parts
from ..phrasing import phrase
from . import transforms
from .submodules import divided

GIVING = frozenset(
    (
        *("sample", "rsample", "sample_n", "log_prob", "prob", "entropy", "cdf", "icdf"),
        *("enumerate_support", "perplexity", "inv", "log_abs_det_jacobian", "__call__"),
    )
)


def _adopting(kind: type) -> Any:
    """Return a class of distributions whose results are tensors of this face."""
    attributes: dict[str, Any] = {"__module__": __name__, "__doc__": description(kind.__doc__)}
    for name in dir(kind):
        held = _declared(kind, name)
        if name in GIVING and isinstance(held, FunctionType):
            attributes[name] = _giving(kind, name)
        elif _is_computed(held) and not name.startswith("_"):
            attributes[name] = _showing(kind, name)
    attributes["__init__"] = _beginning(kind)
    if _declared(kind, "__repr__") is vars(core_distributions.Distribution)["__repr__"]:
        attributes["__repr__"] = _shown
    return type(kind)(kind.__name__, (kind,), attributes)


def _shown(self: Any) -> str:
    """Return its name and parameters: numbers, or the sizes of tensors."""
    values = {name: adopt(getattr(self, name)) for name in self._parameter_names()}
    parts = [f"{n}: {x if x.numel() == 1 else x.size()}" for n, x in values.items()]
    return f"{type(self).__name__}({', '.join(parts)})"


def _declared(kind: type, name: str) -> Any:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _is_computed(held: Any) -> bool:
    """Tell whether an attribute is computed when it is read: a property, or one kept afterwards."""
    return isinstance(held, property) or (
        hasattr(type(held), "__get__")
        and not callable(held)
        and not isinstance(held, (staticmethod, classmethod))
    )


def _giving(kind: type, name: str) -> Any:
    behind: Any = getattr(kind, name)

    def give(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return adopt(behind(self, *args, **kwargs))
        except WeftError as error:
            raise phrase(error, f"Distribution.{name}", {"self": self, "args": args}) from None

    give.__name__, give.__doc__ = name, behind.__doc__
    return give


def _showing(kind: type, name: str) -> Any:
    declared: Any = _declared(kind, name)

    def show(self: Any) -> Any:
        return adopt(declared.__get__(self, type(self)))

    return property(show, doc=getattr(declared, "__doc__", None))


def _beginning(kind: type) -> Any:
    behind: Any = kind.__init__  # type: ignore[misc]  # of a class that is known

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807  (of the class)
        try:
            behind(self, *args, **kwargs)
        except WeftError as error:
            raise phrase(error, "Distribution.__init__", {"self": self}) from None
        for held in vars(self).values():
            if isinstance(held, core.Tensor):
                adopt(held)

    return __init__


CLASSES: dict[str, Any] = {}
for _name in dir(core_distributions):
    _found = getattr(core_distributions, _name)
    if isinstance(_found, type) and _name[0].isupper():
        CLASSES[_name] = (
            _adopting(_found) if issubclass(_found, core_distributions.Distribution) else _found
        )
globals().update(CLASSES)
constraints = core_distributions.constraints


def kl_divergence(p: Any, q: Any) -> Any:
    """Return the Kullback-Leibler divergence of one distribution from another."""
    return adopt(core_distributions.kl_divergence(p, q))


register_kl = core_distributions.register_kl
_FUNCTIONS = {"kl_divergence": kl_divergence, "register_kl": register_kl}
serve_parts(__name__, divided({**CLASSES, **_FUNCTIONS}))
serve_parts(__name__, {"constraints": constraints, "transforms": transforms})
__getattr__ = absent(globals(), {})
