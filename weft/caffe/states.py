"""Which layers a net has: phases, levels and stages, and the rules of layers about them."""

from __future__ import annotations

from .errors import CaffeError
from .message import Message, NetParameter


def filtered(net: Message) -> Message:
    """Return a net with the layers that its state includes.

    >>> net = NetParameter(state={"phase": "TEST"})
    >>> _ = net.layer.add(name="a", include=[{"phase": "TRAIN"}])
    >>> _ = net.layer.add(name="b", exclude=[{"phase": "TRAIN"}])
    >>> [layer.name for layer in filtered(net).layer]
    ['b']
    """
    made = NetParameter()
    kept = [layer for layer in net.layer if is_included(layer, net.state)]
    for field, value in net.set_fields():
        if field.name != "layer":
            _take(made, field.name, value)
    for layer in kept:
        made.layer.append(layer)
    return made


def is_included(layer: Message, state: Message) -> bool:
    """Tell whether a state includes a layer: by any rule of include, or by none of exclude."""
    if layer.has("include") and layer.has("exclude"):
        raise CaffeError(
            f"Layer {layer.name!r}: Specify either include rules or exclude rules; not both."
        )
    if layer.has("exclude"):
        return not any(meets(state, rule) for rule in layer.exclude)
    return not layer.has("include") or any(meets(state, rule) for rule in layer.include)


def meets(state: Message, rule: Message) -> bool:
    """Tell whether a state meets all that a rule asks for."""
    stages = set(state.stage)
    return (
        (not rule.has("phase") or rule.phase == state.phase)
        and (not rule.has("min_level") or state.level >= rule.min_level)
        and (not rule.has("max_level") or state.level <= rule.max_level)
        and stages.issuperset(rule.stage)
        and stages.isdisjoint(rule.not_stage)
    )


def _take(made: Message, name: str, value: object) -> None:
    made.merge(NetParameter(**{name: value}))
