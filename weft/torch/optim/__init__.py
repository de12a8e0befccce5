"""torch.optim: Weft's optimizers, which take PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from ... import optim as core_optim
from ...core.recordings import OPTIMIZERS as KEPT
from ..absent import absent
from ..legacy import UNUSED
from ..names import description, names
from ..parts import serve_parts
from ..phrasing import phrase, phrased
from . import lr_scheduler, swa_utils
from .states import shown, state_dict

Optimizer = core_optim.Optimizer
NAMES = names("""
    ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD
    SparseAdam
""")


class _OptimizerClass(type(core_optim.Optimizer)):  # type: ignore[misc]  # the class of an ABC
    """An optimizer of Weft's is one of the class of its name here."""

    def __instancecheck__(cls, instance: Any) -> bool:
        behind = cls.__dict__.get("_behind")
        return (
            super().__instancecheck__(instance) if behind is None else isinstance(instance, behind)
        )


def _optimizer_class(name: str) -> Any:
    behind: Any = getattr(core_optim, name)

    def __init__(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        if not isinstance(params, dict) and hasattr(params, "_node"):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                "dicts, but got torch.FloatTensor"
            )
        given = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        if any(isinstance(g, dict) and isinstance(g.get("params"), set) for g in given):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        options = {n: v for n, v in kwargs.items() if n not in UNUSED}
        try:
            behind.__init__(self, given, *args, **options)
        except Exception as error:
            facts = {"params": given, "args": (self, given, *args), **options}
            raise phrase(error, f"{name}.__init__", facts) from None

    methods = ("load_state_dict", "add_param_group", *(("step",) if name == "LBFGS" else ()))
    attributes = {
        "__init__": __init__,
        **{n: phrased(getattr(behind, n), f"{name}.{n}") for n in methods},
        "__repr__": shown,
        **({} if name == "LBFGS" else {"state_dict": state_dict}),
        "__doc__": description(behind.__doc__),
        "__module__": __name__,
    }
    return _OptimizerClass(name, (behind,), {**attributes, "_behind": behind})


CLASSES: dict[str, Any] = {name: _optimizer_class(name) for name in NAMES}
globals().update(CLASSES)
KEPT.append(__name__)
serve_parts(__name__, {name.lower(): {name: kind} for name, kind in CLASSES.items()})
serve_parts(__name__, {"optimizer": {"Optimizer": Optimizer, "required": object()}})
__all__ = ["Optimizer", "lr_scheduler", "swa_utils"]

__getattr__ = absent(globals(), {})
