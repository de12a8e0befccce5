"""The model of a run: built layer by layer, each tried on an example before the next is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..io import load
from ..nn import Module
from ..nn.models import LayerGraph
from ..nn.summary import evaluation_mode
from ..ops.creation import tensor
from ..train.names import ARCHITECTURES, LAYERS
from ..train.registry import Entry
from .config import ConfigSource
from .errors import BUILD_ERRORS
from .model_schema import LAYER

_CHANNELS, _LAST = 1, -1
# Sizes of a layer that its input tells, and the axis that has them.
_AXES = {
    "normalized_shape": _LAST,
    "num_channels": _CHANNELS,
    "num_features": _CHANNELS,
    "input_size": _LAST,
    "embed_dim": _LAST,
    "d_model": _LAST,
}


def build_model(
    source: ConfigSource, config: Mapping[str, Any], inputs: Sequence[Any], facts: Mapping[str, Any]
) -> Module:
    """Return the model, with all sizes settled and shapes checked on example inputs."""
    settings = config["model"]
    if "layers" in settings:
        model: Module = _layered(source, settings, inputs)
    else:
        model = _architecture(source, settings, inputs, facts)
    if "weights" in settings:
        _load_weights(source, settings["weights"], model)
    _freeze(source, settings["freeze"], model)
    return model


def run_example(model: Module, inputs: Sequence[Any]) -> Any:
    """Return the output for example inputs, in evaluation mode and unrecorded."""
    with evaluation_mode(model), no_grad():
        return model(*inputs)


def build(entry: Entry, options: Mapping[str, Any]) -> Any:
    """Make what an entry stands for; lists become tensors where those are wanted."""
    absent = {
        name: None
        for name, option in entry.options.items()
        if option.required and option.may_be_none and name not in options
    }
    given = {
        name: tensor(value) if _wants_tensor(entry, name) and isinstance(value, list) else value
        for name, value in options.items()
    }
    return entry(**absent, **given)


def _wants_tensor(entry: Entry, name: str) -> bool:
    return name in {"weight", "pos_weight"} and name in entry.options


# -- layers --------------------------------------------------------------------------------------


def _layered(
    source: ConfigSource, settings: Mapping[str, Any], inputs: Sequence[Any]
) -> LayerGraph:
    names = settings["inputs"]
    if len(names) != len(inputs):
        raise source.error(
            ("model", "inputs"),
            f"the model has {len(names)} inputs ({', '.join(names)}), the data gives {len(inputs)}",
        )
    _check_input_shape(source, settings, inputs)
    graph = LayerGraph(names, settings.get("outputs"))
    values = graph.start(inputs)
    for i, layer in enumerate(settings["layers"]):
        _append(source, graph, i, layer, values)
    return graph


def _append(
    source: ConfigSource,
    graph: LayerGraph,
    i: int,
    layer: Mapping[str, Any],
    values: dict[str, Any],
) -> None:
    """Make a layer, add it to the graph, and run it on the values so far."""
    keys = ("model", "layers", i)
    name, read = layer["name"], layer.get("inputs") or [graph.last]
    label = f"layer {name!r} ({layer.get('type', 'shared')})"
    module: Module | str = layer.get("share", "")
    with source.blaming(keys, label):
        if "share" not in layer:
            module = _made_layer(layer, [values[r.partition(".")[0]] for r in read])
        graph.append(name, module, read)
    step = graph.steps[-1]
    try:
        with evaluation_mode(graph.__dict__[step.module]), no_grad():
            values[name] = graph.run_step(step, values)
    except BUILD_ERRORS as error:
        shapes = ", ".join(_shape(values[r.partition(".")[0]]) for r in read)
        raise source.error(keys, f"{label} does not fit its input {shapes}: {error}") from error


def _made_layer(layer: Mapping[str, Any], read: list[Any]) -> Module:
    entry = LAYERS[layer["type"]]
    options = {n: v for n, v in layer.items() if n in entry.options and n not in LAYER}
    shape = _first_shape(read)
    for name, axis in _AXES.items():
        option = entry.options.get(name)
        missing = option is not None and option.required and not option.may_be_none
        if missing and name not in options and len(shape) > abs(axis):
            options[name] = shape[axis]
    made: Module = build(entry, options)
    return made


def _first_shape(read: list[Any]) -> tuple[int, ...]:
    value = read[0] if read else None
    value = value[0] if isinstance(value, tuple) and value else value
    return tuple(value.shape) if isinstance(value, Tensor) else ()


def _shape(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{tuple(value.shape)} of {value.dtype}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_shape, value))})"
    return type(value).__name__


def _check_input_shape(
    source: ConfigSource, settings: Mapping[str, Any], inputs: Sequence[Any]
) -> None:
    declared = settings.get("input_shape")
    found = list(inputs[0].shape[1:]) if inputs and isinstance(inputs[0], Tensor) else None
    if declared is not None and declared != found:
        raise source.error(
            ("model", "input_shape"),
            f"the data gives samples of shape {found}, not {declared}",
        )


# -- architectures -------------------------------------------------------------------------------


def _architecture(
    source: ConfigSource,
    settings: Mapping[str, Any],
    inputs: Sequence[Any],
    facts: Mapping[str, Any],
) -> Module:
    entry = ARCHITECTURES[settings["type"]]
    options = {name: value for name, value in settings.items() if name in entry.options}
    for name, value in _known(inputs, facts).items():
        if name in entry.options and name not in options:
            options[name] = value
    missing = [
        name
        for name, option in entry.options.items()
        if option.required and not option.may_be_none and name not in options
    ]
    label = f"architecture {entry.name!r}"
    if missing:
        raise source.error(("model",), f"{label} needs the option {missing[0]!r}")
    with source.blaming(("model",), label):
        model: Module = build(entry, options)
    try:
        run_example(model, inputs)
    except BUILD_ERRORS as error:
        shapes = ", ".join(map(_shape, inputs))
        raise source.error(
            ("model",), f"{label} does not fit the data, {shapes}: {error}"
        ) from error
    return model


def _known(inputs: Sequence[Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the data tells."""
    known = {name: facts[name] for name in ("num_classes", "vocab_size") if name in facts}
    if "num_classes" in facts:
        known["out_features"] = facts["num_classes"]
    first = inputs[0] if inputs else None
    if isinstance(first, Tensor) and first.ndim > 1:
        shape = tuple(first.shape[1:])
        known.update(in_channels=shape[0], input_shape=list(shape), in_features=math.prod(shape))
    return known


# -- weights and freezing ------------------------------------------------------------------------


def _load_weights(source: ConfigSource, settings: Mapping[str, Any], model: Module) -> None:
    skip, rename = settings.get("skip", []), settings.get("rename", {})
    keys = ("model", "weights")
    with source.blaming(keys, "weights"):
        found = load(settings["path"])
        renamed = {_renamed(name, rename): value for name, value in found.items()}
        state = {
            name: value
            for name, value in renamed.items()
            if not any(fnmatchcase(name, pattern) for pattern in skip)
        }
        strict = settings.get("strict", True) and not skip
        report = model.load_state_dict(state, strict=strict)
    unexpected = [n for n in report.missing if not any(fnmatchcase(n, p) for p in skip)]
    if settings.get("strict", True) and (unexpected or report.unexpected or report.mismatched):
        wrong = (*unexpected, *report.unexpected, *report.mismatched)
        raise source.error(
            keys, f"weights: {wrong[0]} does not fit the model; add it to skip, or strict = false"
        )


def _renamed(name: str, rename: Mapping[str, str]) -> str:
    for old, new in rename.items():
        if name.startswith(old):
            return new + name[len(old) :]
    return name


def _freeze(source: ConfigSource, patterns: Sequence[str], model: Module) -> None:
    names = dict(model.named_parameters())
    for i, pattern in enumerate(patterns):
        found = [name for name in names if fnmatchcase(name, pattern)]
        if not found:
            raise source.error(
                ("model", "freeze", i),
                f"no parameter is named like {pattern!r}; there are: {', '.join(names):.200}",
            )
        for name in found:
            names[name].requires_grad = False
    if names and not any(p.requires_grad for p in names.values()):
        raise source.error(
            ("model", "freeze"), "all parameters are frozen; nothing is left to train"
        )
