"""Parameter groups: what may be given to an optimizer, and the checks of every hyperparameter."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.tensor import Tensor

Group = dict[str, Any]

# Every group has these besides the optimizer's own hyperparameters: Caffe's multipliers, which
# scale `lr` and `weight_decay` for this group whatever a schedule makes of them.
MULTIPLIERS = {"lr_mult": 1.0, "decay_mult": 1.0}
FACTORS = {"lr": "lr_mult", "weight_decay": "decay_mult"}
# What may stand in a group without being a hyperparameter.
BOOKKEEPING = ("params", "param_names", "name", "initial_lr")


def as_groups(params: Any) -> list[Group]:
    """Return the groups that parameters, (name, parameter) pairs or dictionaries describe."""
    if isinstance(params, Tensor):
        raise ArgumentTypeError(
            "an optimizer takes an iterable of parameters. Received: one tensor; write [tensor]"
        )
    if hasattr(params, "named_parameters"):
        raise ArgumentTypeError(
            f"an optimizer takes parameters. Received: a {type(params).__name__}; "
            "pass model.parameters() or model.named_parameters()"
        )
    items = [params] if isinstance(params, Mapping) else _listed(params)
    if not items:
        raise ArgumentError("an optimizer needs at least one parameter. Received: none")
    if all(isinstance(item, Mapping) for item in items):
        return [dict(item) for item in items]
    return [{"params": items}]


def complete_group(group: Mapping[str, Any], defaults: Mapping[str, Any]) -> Group:
    """Return a group with its parameters listed and checked, and every hyperparameter present."""
    if "params" not in group:
        raise ArgumentError(f"a parameter group needs 'params'. Received: {sorted(group)}")
    check_names(group, defaults)
    names, params = _named(group["params"])
    settings = {**defaults, **MULTIPLIERS, **group, "params": params}
    if names is not None:
        settings["param_names"] = names
    complete = checked_settings(settings)
    _check_eps(complete.get("eps"), defaults.get("eps"))
    return complete


def _check_eps(given: Any, default: Any) -> None:
    """Raise if an optimizer with one eps is given several."""
    if isinstance(given, tuple) and not isinstance(default, tuple):
        raise ArgumentTypeError(f"eps must be a number. Received: {given!r}")


def checked_settings(settings: Mapping[str, Any]) -> Group:
    """Return hyperparameters in canonical form; raise at the first that is out of range.

    Numbers become Python's own, which leave the precision of an array alone: a float64 of NumPy
    would widen it.
    """
    return {n: CHECKS[n](n, value) if n in CHECKS else value for n, value in settings.items()}


def effective_settings(group: Mapping[str, Any]) -> Group:
    """Return the hyperparameters of a group with the multipliers applied."""
    settings = checked_settings(
        {n: v for n, v in group.items() if n not in ("params", "param_names")}
    )
    for name, factor in FACTORS.items():
        if name in settings:
            settings[name] = settings[name] * settings[factor]
    return settings


def match_groups(
    named_parameters: Iterable[tuple[str, Tensor]], rules: Mapping[str, Mapping[str, Any]]
) -> list[Group]:
    """Return groups with per-parameter settings, chosen by name patterns.

    rules    pattern ("fc.*", "*.bias") -> hyperparameters and multipliers; the first pattern that
             matches counts, and what matches none goes into a group of its own.

    >>> import weft as wf
    >>> w, b = wf.tensor([1.0], requires_grad=True), wf.tensor([0.0], requires_grad=True)
    >>> groups = match_groups([("w", w), ("b", b)], {"b": {"lr_mult": 2.0, "decay_mult": 0.0}})
    >>> [group["lr_mult"] for group in wf.optim.SGD(groups, lr=0.1).param_groups]
    [1.0, 2.0]
    """
    members: dict[str | None, list[tuple[str, Tensor]]] = {None: [], **{p: [] for p in rules}}
    for name, parameter in named_parameters:
        pattern = next((p for p in rules if fnmatchcase(name, p)), None)
        members[pattern].append((name, parameter))
    unused = [pattern for pattern in rules if not members[pattern]]
    if unused:
        raise ArgumentError(f"match_groups: no parameter is named like {unused[0]!r}")
    return [
        {"params": found, **({} if pattern is None else rules[pattern])}
        for pattern, found in members.items()
        if found
    ]


def _listed(params: Any) -> list[Any]:
    try:
        return list(params)
    except TypeError:
        raise ArgumentTypeError(
            f"an optimizer takes an iterable of parameters. Received: {type(params).__name__}"
        ) from None


def _named(params: Any) -> tuple[list[str] | None, list[Tensor]]:
    items: list[Any] = [params] if isinstance(params, Tensor) else _listed(params)
    pairs = [isinstance(item, tuple) and len(item) == 2 for item in items]
    if any(pairs) and not all(pairs):
        raise ArgumentTypeError("name all parameters of a group or none of them")
    names = [name for name, _ in items] if any(pairs) else None
    tensors = [item[1] for item in items] if any(pairs) else items
    for position, tensor in enumerate(tensors):
        _check_parameter(names[position] if names else f"number {position}", tensor)
    return names, tensors


def _check_parameter(name: str, tensor: Any) -> None:
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"parameter {name} is no tensor. Received: {type(tensor).__name__}")
    if not tensor.is_leaf:
        raise ArgumentError(
            f"parameter {name} is the result of an operation; only leaves can be optimized"
        )


def check_names(group: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Raise at the first name of a group that is no hyperparameter."""
    known = [*defaults, *MULTIPLIERS, *BOOKKEEPING]
    for name in group:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"
            raise ArgumentError(f"this optimizer has no hyperparameter {name!r}{hint}")


# -- checks of hyperparameters: each returns the value in canonical form ---------------------------


def number(name: str, value: Any) -> float:
    """Return a real number as a float."""
    if isinstance(value, (bool, str)):
        raise ArgumentTypeError(f"{name} must be a number. Received: {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{name} must be a number. Received: {value!r}") from None


def positive_int(name: str, value: Any) -> int:
    """Return a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ArgumentError(f"{name} must be a positive integer. Received: {value!r}")
    return value


def non_negative(name: str, value: Any) -> float:
    """Return a finite number that is not negative."""
    result = number(name, value)
    if not 0.0 <= result < math.inf:
        raise ArgumentError(f"{name} must be finite and not negative. Received: {value!r}")
    return result


def fraction(name: str, value: Any) -> float:
    """Return a number of [0, 1)."""
    result = number(name, value)
    if not 0.0 <= result < 1.0:
        raise ArgumentError(f"{name} must be at least 0 and less than 1. Received: {value!r}")
    return result


def share(name: str, value: Any) -> float:
    """Return a number of [0, 1]."""
    result = number(name, value)
    if not 0.0 <= result <= 1.0:
        raise ArgumentError(f"{name} must lie between 0 and 1. Received: {value!r}")
    return result


def fractions(name: str, value: Any) -> tuple[float, ...]:
    """Return a tuple of numbers of [0, 1)."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ArgumentTypeError(f"{name} must be a tuple of numbers. Received: {value!r}")
    return tuple(fraction(name, item) for item in value)


def numbers(name: str, value: Any) -> tuple[float, ...]:
    """Return a tuple of numbers."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ArgumentTypeError(f"{name} must be a tuple of numbers. Received: {value!r}")
    return tuple(number(name, item) for item in value)


def epsilon(name: str, value: Any) -> Any:
    """Return a number that is not negative, or a tuple of such, of which some may be None."""
    if isinstance(value, (tuple, list)):
        return tuple(None if x is None else non_negative(name, x) for x in value)
    return non_negative(name, value)


def boolean(name: str, value: Any) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be True or False. Received: {value!r}")
    return value


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "lr": non_negative,
    "lr_mult": non_negative,
    "decay_mult": non_negative,
    "momentum": non_negative,
    "dampening": number,
    "nesterov": boolean,
    "weight_decay": non_negative,
    "decoupled_weight_decay": boolean,
    "maximize": boolean,
    "eps": epsilon,
    "betas": fractions,
    "amsgrad": boolean,
    "alpha": share,
    "rho": share,
    "centered": boolean,
    "lr_decay": non_negative,
    "initial_accumulator_value": non_negative,
    "momentum_decay": non_negative,
    "lambd": non_negative,
    "t0": number,
    "etas": numbers,
    "step_sizes": numbers,
    "beta2_decay": number,
    "d": number,
    "ns_coefficients": numbers,
    "ns_steps": positive_int,
    "tolerance_grad": non_negative,
    "tolerance_change": non_negative,
}
