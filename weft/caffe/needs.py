"""Which layers run backward, by Caffe's rules: what a loss depends on and what learns from it."""

from __future__ import annotations

from typing import NamedTuple

from .network import Network


class Needs(NamedTuple):
    """For each layer: whether it runs backward, and to which of its bottoms."""

    layers: list[bool]
    bottoms: list[list[bool]]


def backward_needs(net: Network, force: bool = False) -> Needs:
    """Return what runs backward; `force` is the net's force_backward."""
    layers: list[bool] = []
    bottoms: list[list[bool]] = []
    known: dict[str, bool] = {}
    for step in net.steps:
        down = [known[name] for name in step.bottoms]
        given = list(step.layer.param.propagate_down)
        if given:
            down = [a or b for a, b in zip(down, given, strict=True)]
        learns = any(spec.spec.lr_mult for spec in step.layer.blob_specs)
        need = learns or any(down) or (force and not step.is_source)
        down = [(d or force) and ok for d, ok in zip(down, step.propagate, strict=True)]
        layers.append(need)
        bottoms.append(down)
        known.update(dict.fromkeys(step.tops, need or (force and step.is_source)))
    contributing = _contributing(net)
    return Needs(
        [need and (force or under) for need, under in zip(layers, contributing, strict=True)],
        [
            [d and (force or under) for d in down]
            for down, under in zip(bottoms, contributing, strict=True)
        ],
    )


def _contributing(net: Network) -> list[bool]:
    """Tell for each layer whether a loss depends on it."""
    under: set[str] = set()
    found = []
    for step in reversed(net.steps):
        counts = any(step.loss_weights) or not under.isdisjoint(step.tops)
        found.append(counts)
        under -= set(step.tops) - set(step.bottoms)
        if counts:
            under.update(
                name for name, down in zip(step.bottoms, step.propagate, strict=True) if down
            )
    return found[::-1]
