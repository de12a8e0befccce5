"""Models as text and files: the architecture is JSON, the weights are safetensors.

`save` writes one safetensors file with the JSON in its metadata. The JSON has the form of Keras 2's
`to_json` for functional and sequential models, so that such texts can be read too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..io import FileFormatError, load, load_metadata, save
from ..train.registry import hint
from . import layers
from .functional import Functional
from .layers.base import Layer
from .layers.core import InputLayer
from .model import Model
from .sequential import Sequential

_KEY = "keras_model"


# -- architecture --------------------------------------------------------------------------------


def described(layer: Any) -> dict[str, Any]:
    """Return the class and configuration of a layer or model."""
    if not isinstance(layer, Layer):
        raise ArgumentTypeError(
            f"a {type(layer).__name__} has no configuration: only layers of weft.keras can be "
            "described; save_weights saves the weights of any model"
        )
    kind = "Functional" if isinstance(layer, Functional) else type(layer).__name__
    if type(layer).get_config is Layer.get_config and isinstance(layer, Model):
        raise ArgumentError(
            f"{layer.name}: a subclass of Model must define get_config to be saved whole; "
            "save_weights saves its weights"
        )
    return {"class_name": kind, "config": layer.get_config()}


def functional_config(model: Functional) -> dict[str, Any]:
    """Return the layers of a functional model, each with its calls."""
    graph = model.graph
    inputs = dict(zip(graph.inputs, model.inputs, strict=True))
    places: dict[str, tuple[str, int]] = {name: (x.name, 0) for name, x in inputs.items()}
    calls: dict[str, list[Any]] = {}
    for step in graph.steps:
        name = graph.__dict__[step.module].name
        made = calls.setdefault(name, [])
        places[step.name] = name, len(made)
        made.append([_inbound(places, ref, dict(step.options)) for ref in step.inputs])
    listed = [
        {**described(layer), "name": layer.name, "inbound_nodes": calls.get(layer.name, [])}
        for layer in model.layers
    ]
    return {
        "name": model.name,
        "trainable": model.trainable,
        "layers": listed,
        "input_layers": [[x.name, 0, 0] for x in model.inputs],
        "output_layers": [_inbound(places, ref)[:3] for ref in graph.outputs or ()],
        "output_keys": model._output_keys,
        "input_keys": model.input_names,
    }


def _inbound(places: dict[str, tuple[str, int]], reference: str, options: Any = None) -> list[Any]:
    name, _, index = reference.partition(".")
    return [*places[name], int(index or 0), options or {}]


def functional_from_config(config: Mapping[str, Any], custom: Mapping[str, Any]) -> Functional:
    """Return the functional model of a configuration: its layers are made, then called."""
    made: dict[str, Any] = {}
    for entry in config["layers"]:
        made[entry["name"]] = layer_from(entry, custom)
    outputs: dict[tuple[str, int], Any] = {
        (name, 0): layer.calls[0].outputs
        for name, layer in made.items()
        if isinstance(layer, InputLayer)
    }
    waiting = [
        (entry["name"], number, node)
        for entry in config["layers"]
        for number, node in enumerate(entry.get("inbound_nodes", []))
    ]
    while waiting:
        left = [item for item in waiting if not _call_again(made, outputs, *item)]
        if len(left) == len(waiting):
            names = sorted({name for name, _, _ in left})
            raise ArgumentError(f"the layers {names} read what no layer before them makes")
        waiting = left
    begin = [_output(outputs, place) for place in _places(config["input_layers"])]
    end = [_output(outputs, place) for place in _places(config["output_layers"])]
    keys = config.get("output_keys")
    given = config.get("input_keys") or [x.name for x in begin]
    by_key: Any = dict(zip(given, begin, strict=True))
    wanted: Any = dict(zip(keys, end, strict=True)) if keys else end
    model = Functional(by_key, wanted, name=config.get("name"))
    if not config.get("trainable", True):
        model.trainable = False
    return model


def _places(listed: Any) -> list[Any]:
    """Return a list of places; Keras writes a single one without the list around it."""
    return [listed] if listed and isinstance(listed[0], str) else list(listed)


def _call_again(
    made: dict[str, Any], outputs: dict[tuple[str, int], Any], name: str, number: int, node: Any
) -> bool:
    """Make a call if all that it reads is there; tell whether."""
    places = _places(node)
    if any((place[0], place[1]) not in outputs for place in places):
        return False
    if number and (name, number - 1) not in outputs:
        return False
    read = [_output(outputs, place) for place in places]
    options = dict(places[0][3]) if len(places[0]) > 3 else {}
    result = made[name](read if len(read) > 1 else read[0], **options)
    outputs[name, number] = result if isinstance(result, list) else [result]
    return True


def _output(outputs: dict[tuple[str, int], Any], place: Any) -> Any:
    found = outputs.get((place[0], place[1]))
    if found is None:
        raise ArgumentError(f"the model has no layer {place[0]!r} with a call {place[1]}")
    return found[place[2]]


def layer_from(entry: Mapping[str, Any], custom: Mapping[str, Any]) -> Any:
    """Return a layer or model from its class's name and configuration."""
    kind, config = entry["class_name"], dict(entry["config"])
    if kind in custom:
        return custom[kind].from_config(config)
    if kind in ("Functional", "Model"):
        return functional_from_config(config, custom)
    if kind == "Sequential":
        return Sequential.from_config(config, custom)
    if kind not in layers.__all__:
        raise ArgumentError(
            f"there is no layer {kind!r}; {hint(kind, layers.__all__)} Layers of your own are "
            "passed as custom_objects={'Name': Class}"
        )
    _restore_parts(config, custom)
    return getattr(layers, kind).from_config(_known(config))


def _restore_parts(config: dict[str, Any], custom: Mapping[str, Any]) -> None:
    """Put what is saved by name back: wrapped layers, functions and activations of the user's."""
    if isinstance(config.get("layer"), Mapping):
        config["layer"] = layer_from(config["layer"], custom)
    for name in ("function", "activation", "recurrent_activation"):
        if isinstance(config.get(name), str) and config[name] in custom:
            config[name] = custom[config[name]]
    if isinstance(config.get("function"), str):
        raise ArgumentError(
            f"the function {config['function']!r} of a Lambda is not part of the file: pass "
            "custom_objects={'" + config["function"] + "': function}"
        )


def _known(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration without what Keras writes at its defaults and this face has not."""
    idle = ("sparse", "ragged", "module", "registered_name", "build_config", "time_major")
    kept = {name: value for name, value in config.items() if name not in idle}
    kind = kept.get("dtype")
    if isinstance(kind, Mapping):  # a policy of Keras 3
        kept["dtype"] = kind.get("config", {}).get("name")
    if kept.get("groups") == 1 and "depth_multiplier" in kept:
        kept.pop("groups")
    return {name: value for name, value in kept.items() if value is not None}


def model_from_json(text: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the model that `to_json` described, with new weights."""
    try:
        entry = json.loads(text)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"model_from_json takes the text of to_json ({error})") from None
    return model_from_config(entry, custom_objects)


def model_from_config(
    config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
) -> Any:
    """Return a model from its class's name and configuration, with new weights."""
    given: Any = config
    if not isinstance(given, Mapping) or not {"class_name", "config"} <= set(given):
        raise ArgumentError("a configuration has a 'class_name' and a 'config'")
    return layer_from(config, custom_objects or {})


def clone_model(model: Any) -> Any:
    """Return a model of the same architecture with new weights."""
    return model_from_config(described(model))


# -- files ---------------------------------------------------------------------------------------


def save_model(model: Any, filepath: Any, overwrite: bool = True) -> None:
    """Write architecture, weights and what `compile` was told to one safetensors file."""
    entry = described(model)
    told = model.__dict__.get("_told")
    text = json.dumps({**entry, "compile_config": told})
    save(_target(filepath, overwrite), model.state_dict(), {_KEY: text})


def load_model(
    filepath: Any, custom_objects: Mapping[str, Any] | None = None, compile: bool = True
) -> Any:
    """Return a model that `model.save` wrote, compiled as it was."""
    source = _source(filepath)
    metadata = load_metadata(source)
    if _KEY not in metadata:
        raise FileFormatError(
            f"{source} holds weights without an architecture: make the model and use load_weights"
        )
    entry = json.loads(metadata[_KEY])
    custom = dict(custom_objects or {})
    model = model_from_config(entry, custom)
    model.load_state_dict(load(source))
    told = entry.get("compile_config")
    if compile and told and told["optimizer"] is not None:
        told = {name: _with_custom(value, custom) for name, value in told.items()}
        model.compile(**told)
    return model


def _with_custom(value: Any, custom: Mapping[str, Any]) -> Any:
    """Return losses and metrics with functions of the user's in the places of their names."""
    if isinstance(value, dict):
        return {name: _with_custom(each, custom) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_custom(each, custom) for each in value]
    return custom.get(value, value) if isinstance(value, str) else value


def save_weights(model: Any, filepath: Any, overwrite: bool = True) -> None:
    """Write the weights as safetensors."""
    save(_target(filepath, overwrite), model.state_dict())


def load_weights(model: Any, filepath: Any) -> None:
    """Take the weights from a file that `save_weights` or `save` wrote."""
    model.load_state_dict(load(_source(filepath)))


def _target(filepath: Any, overwrite: bool) -> Path:
    path = Path(filepath)
    if path.exists() and not overwrite:
        raise ArgumentError(f"{path} is there already; overwrite=True replaces it")
    return path


def _source(filepath: Any) -> Path:
    path = Path(filepath)
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}")
    with path.open("rb") as file:
        head = file.read(8)
    if head.startswith((b"PK\x03\x04", b"\x89HDF")):
        raise FileFormatError(
            f"{path} was written by Keras itself, as a zip archive or HDF5. Read it there, and "
            "bring the architecture over by to_json and the weights by get_weights and set_weights"
        )
    return path
