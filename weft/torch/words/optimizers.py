"""What PyTorch says of the settings of optimizers and schedules."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError, ArgumentTypeError
from ..names import names
from .refused import Refused, Rule, always

NAMES = names("""
    ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD
    SparseAdam
""")
# The settings that are refused one by one, as PyTorch names them.
SETTINGS = {
    "lr": "learning rate",
    "momentum": "momentum value",
    "weight_decay": "weight_decay value",
    "eps": "epsilon value",
    "alpha": "alpha value",
    "rho": "rho value",
}


def optimizer(refused: Refused) -> Exception | None:
    """Say it of a setting, or of what is to be trained."""
    return _parameters(refused) or _setting(refused)


def _setting(refused: Refused) -> Exception | None:
    if not refused.is_a(ArgumentError):
        return None
    given = {**refused.given}
    if len(refused["args"]) > 2:
        given.setdefault("lr", refused["args"][2])
    for name, words in SETTINGS.items():
        value = given.get(name)
        if isinstance(value, (int, float)) and not value >= 0:
            return ValueError(f"Invalid {words}: {value}")
    for place, beta in enumerate(given.get("betas") or ()):
        if not 0 <= beta < 1:
            return ValueError(f"Invalid beta parameter at index {place}: {beta}")
    if given.get("nesterov"):
        return ValueError("Nesterov momentum requires a momentum and zero dampening")
    return None


def _parameters(refused: Refused) -> Exception | None:
    seen: list[Any] = []
    for x in _members(refused["params"]):
        if not hasattr(x, "_node"):
            return TypeError(
                f"optimizer can only optimize Tensors, but one of the params is {type(x).__name__}"
            )
        if not x.is_leaf:
            return ValueError("can't optimize a non-leaf Tensor")
        if any(x is other for other in seen):
            return ValueError("some parameters appear in more than one parameter group")
        seen.append(x)
    return None


def _members(params: Any) -> list[Any]:
    found: list[Any] = []
    for x in params:
        part = x["params"] if isinstance(x, dict) else x
        found += [part] if not isinstance(part, (list, tuple)) else part
    return [x[1] if isinstance(x, tuple) else x for x in found]


def loaded(refused: Refused) -> Exception | None:
    """Say it of a state that belongs to another optimizer."""
    own, state = refused["args"][:2]
    if len(state["param_groups"]) != len(own.param_groups):
        return ValueError("loaded state dict has a different number of parameter groups")
    return ValueError(
        "loaded state dict contains a parameter group that doesn't match the size of optimizer's "
        "group"
    )


def group(refused: Refused) -> Exception | None:
    """Say it of a group that is added."""
    given = refused["args"][1]
    if refused.is_a(ArgumentTypeError) and not isinstance(given, dict):
        return TypeError(f"param_group must be a dict, but got {type(given)}")
    return None


# -- schedules ------------------------------------------------------------------------------------


def schedule(refused: Refused) -> Exception | None:
    """Say it of what is scheduled."""
    target = refused["optimizer"]
    if refused.is_a(ArgumentTypeError):
        return TypeError(f"{type(target).__name__} is not an Optimizer")
    return None


def one_cycle(refused: Refused) -> Exception | None:
    """Say it of how long a cycle is."""
    if refused["total_steps"] is None and None in (refused["epochs"], refused["steps_per_epoch"]):
        return ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return schedule(refused)


def plateau(refused: Refused) -> Exception | None:
    """Say it of when, and by how much, a rate is reduced."""
    mode, factor = refused["mode"], refused["factor"]
    if mode is not None and mode not in ("min", "max"):
        return ValueError(f"mode {mode} is unknown!")
    if factor is not None and factor >= 1:
        return ValueError("Factor should be < 1.0.")
    return schedule(refused)


def functions(refused: Refused) -> Exception | None:
    """Say it of functions, one for each group."""
    if refused.is_a(ArgumentTypeError):
        return schedule(refused)
    wanted, given = len(refused["optimizer"].param_groups), len(refused["lr_lambda"])
    return ValueError(f"Expected {wanted} lr_lambdas, but got {given}")


SCHEDULES = names("""
    ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR
    ExponentialLR LinearLR MultiStepLR PolynomialLR SequentialLR StepLR
""")
RULES: dict[str, Rule] = {
    **{f"{name}.__init__": optimizer for name in NAMES},
    **{f"{name}.load_state_dict": loaded for name in NAMES},
    **{f"{name}.add_param_group": group for name in NAMES},
    "LBFGS.step": always(
        TypeError, "LBFGS.step() missing 1 required positional argument: 'closure'"
    ),
    **{f"{name}.__init__": schedule for name in SCHEDULES},
    "OneCycleLR.__init__": one_cycle,
    "ReduceLROnPlateau.__init__": plateau,
    "LambdaLR.__init__": functions,
    "MultiplicativeLR.__init__": functions,
}
