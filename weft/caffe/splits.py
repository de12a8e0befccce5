"""Split layers: one for each blob that several layers read, as Caffe inserts and names them."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from .errors import CaffeError
from .message import LayerParameter, Message, NetParameter

Place: TypeAlias = tuple[int, int]  # of a top: the number of its layer, and its own


def split_name(blob: str, layer: str, index: int) -> str:
    """Return the name of the layer that splits a top."""
    return f"{blob}_{layer}_{index}_split"


def with_splits(net: Message) -> Message:
    """Return a net in which each blob is read once."""
    sources, readers = _sources(net)
    made = NetParameter(name=net.name) if net.has("name") else NetParameter()
    taken: Counter[Place] = Counter()
    for number, layer in enumerate(net.layer):
        copy = layer.copy()
        for index in range(len(copy.bottom)):
            place = sources[number, index]
            if readers[place] > 1:
                copy.bottom[index] = _part(net, place, taken[place])
                taken[place] += 1
        made.layer.append(copy)
        _add_splits(net, made, number, readers, taken)
    for name in ("force_backward", "debug_info"):
        if net.has(name):
            setattr(made, name, getattr(net, name))
    made.state.merge(net.state)
    return made


def _sources(net: Message) -> tuple[dict[Place, Place], Counter[Place]]:
    """Return where each bottom comes from, and how often each top is read or counts as a loss."""
    last: dict[str, Place] = {}
    sources: dict[Place, Place] = {}
    readers: Counter[Place] = Counter()
    for number, layer in enumerate(net.layer):
        for index, name in enumerate(layer.bottom):
            if name not in last:
                known = ", ".join(map(repr, last)) or "none"
                raise CaffeError(
                    f"Unknown bottom blob {name!r} (layer {layer.name!r}, bottom index {index}); "
                    f"blobs so far: {known:.300}"
                )
            sources[number, index] = last[name]
            readers[last[name]] += 1
        for index, name in enumerate(layer.top):
            last[name] = (number, index)
        for index in range(min(len(layer.top), len(layer.loss_weight))):
            if layer.loss_weight[index]:
                readers[number, index] += 1
    return sources, readers


def _part(net: Message, place: Place, which: int) -> str:
    layer = net.layer[place[0]]
    return f"{split_name(layer.top[place[1]], layer.name, place[1])}_{which}"


def _add_splits(
    net: Message, made: Message, number: int, readers: Counter[Place], taken: Counter[Place]
) -> None:
    layer = net.layer[number]
    for index, top in enumerate(layer.top):
        count = readers[number, index]
        if count <= 1:
            continue
        split = LayerParameter(name=split_name(top, layer.name, index), type="Split", bottom=[top])
        split.top.extend(_part(net, (number, index), k) for k in range(count))
        weight = layer.loss_weight[index] if index < len(layer.loss_weight) else 0.0
        if weight:
            made.layer[-1].clear("loss_weight")
            split.loss_weight.extend([weight, *(0.0,) * (count - 1)])
            taken[number, index] += 1  # the first part is the loss
        made.layer.append(split)
