"""The schema of a model: an architecture by name, or layers with their inputs by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..train.names import ARCHITECTURES, LAYERS
from ..train.registry import hint
from .schema import (
    REQUIRED,
    Field,
    ValuePlace,
    any_text,
    checked_fields,
    either,
    flag,
    identifier,
    integer,
    is_table,
    known_keys,
    listing,
    mapping,
    table,
    text,
    typed,
)

# Options that the data or the layer before tells, see model.py.
KNOWN_BY_DATA = frozenset({"num_classes", "vocab_size", "in_channels", "input_shape"})
KNOWN_BY_INPUT = frozenset(
    {"normalized_shape", "num_channels", "input_size", "embed_dim", "d_model", "num_features"}
)
_STRINGS = listing(text)

WEIGHTS = {
    "path": Field(text, REQUIRED),
    "strict": Field(flag, default=True),
    "skip": Field(_STRINGS, []),
    "rename": Field(mapping(any_text), {}),
}
COMMON = {
    "weights": Field(
        either((str, lambda place, value: {"path": text(place, value)}), (dict, table(WEIGHTS)))
    ),
    "freeze": Field(_STRINGS, []),
}
LAYER = {
    "name": Field(identifier),
    "inputs": Field(
        either((str, lambda place, value: [text(place, value)]), (list, listing(text, least=1)))
    ),
    "share": Field(text),
}


def _check_layer(place: ValuePlace, value: Any) -> Any:
    if not is_table(place, value):
        return value
    if "share" in value and "type" not in value:
        known_keys(place, value, LAYER)
        return checked_fields(place, value, LAYER)
    if "share" in value:
        place.at("share").problem("a layer that shares another's parameters has no type of its own")
    return typed(LAYERS, LAYER, KNOWN_BY_INPUT.__contains__)(place, value)


LAYERED = {
    "inputs": Field(listing(identifier, least=1)),
    "outputs": Field(either((str, lambda place, value: [text(place, value)]), (list, _STRINGS))),
    "input_shape": Field(listing(integer(1))),
    "layers": Field(listing(_check_layer, least=1), REQUIRED),
}


def check_model(place: ValuePlace, value: Any) -> Any:
    """Check a model, and that each layer reads what is there."""
    if not is_table(place, value):
        return value
    if "layers" in value and "type" in value:
        place.at("type").problem("model has both layers and type; keep one of them")
        return value
    if "layers" in value:
        known_keys(place, value, [*LAYERED, *COMMON])
        resolved = checked_fields(place, value, {**LAYERED, **COMMON})
        return _named(place, resolved) if not place.problems else resolved
    if "type" not in value:
        place.problem("model needs 'type', the name of an architecture, or [[model.layers]]")
        known_keys(place, value, [*LAYERED, *COMMON, "type"])
        return value
    return typed(ARCHITECTURES, COMMON, KNOWN_BY_DATA.__contains__)(place, value)


# -- names and references ------------------------------------------------------------------------


def _named(place: ValuePlace, model: dict[str, Any]) -> dict[str, Any]:
    """Give every layer a name, and check that every name that is read was made before."""
    model.setdefault("inputs", ["input"])
    made: list[str] = list(model["inputs"])
    shared: list[str] = []
    counts: dict[str, int] = {}
    for i, layer in enumerate(model["layers"]):
        here = place.at("layers").at(i)
        layer.setdefault("name", _default_name(layer, counts, made))
        if layer["name"] in made:
            here.at("name").problem(f"there is an input or a layer named {layer['name']!r} already")
        for j, reference in enumerate(layer.get("inputs", [])):
            _check_reference(here.at("inputs").at(j), reference, made)
        if "share" in layer and layer["share"] not in shared:
            known = hint(layer["share"], shared)
            here.at("share").problem(f"there is no earlier layer {layer['share']!r}; {known}")
        made.append(layer["name"])
        shared.append(layer["name"])
    for i, reference in enumerate(model.get("outputs", [])):
        _check_reference(place.at("outputs").at(i), reference, made)
    return model


def _default_name(layer: Mapping[str, Any], counts: dict[str, int], made: list[str]) -> str:
    kind = str(layer.get("type", "shared")).lower()
    while True:
        counts[kind] = counts.get(kind, 0) + 1
        name = f"{kind}_{counts[kind]}"
        if name not in made:
            return name


def _check_reference(place: ValuePlace, reference: str, made: list[str]) -> None:
    name, dot, index = reference.partition(".")
    if name not in made or (dot and not index.isdigit()):
        place.problem(f"there is no earlier input or layer {reference!r}; {hint(name, made)}")
