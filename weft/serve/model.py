"""A model as a server knows it: what runs, what is done before and behind, what is told of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.dtype import Array
from ..core.errors import ArgumentError, ArgumentTypeError
from ..graph.graph import Graph
from ..graph.node import Value
from ..train.captured import Compile
from .programs import GraphProgram, ModuleProgram, ServedProgram, input_values, request_value

Item = tuple[Any, ...]  # an array or tensor for each input
Row = dict[str, Any]


@dataclass
class ServedModel:
    """A model and, of a trained run, how its inputs are prepared and its outputs are read.

    program   computes outputs
    prepare   what is done to an item before the model: standardizing, transforms
    readers   by the type of a body (image/png), what makes items of it
    items_of  what makes items of a list in JSON that holds no arrays: of records, of texts
    rows_of   what to say of outputs: classes and probabilities, the so many likeliest
    about     what the page of the model tells besides its inputs and outputs
    """

    program: ServedProgram
    prepare: Callable[[Item], Item] | None = None
    readers: Mapping[str, Callable[[bytes], Sequence[Item]]] = field(default_factory=dict)
    items_of: Callable[[list[Any]], Sequence[Item]] | None = None
    rows_of: Callable[[Sequence[Array], int], list[Row]] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    inputs: list[Value] = field(init=False)  # what a request gives: any number of items

    def __post_init__(self) -> None:
        self.inputs = [request_value(value) for value in self.program.inputs]


def served_model(
    model: Any,
    *,
    inputs: Any = None,
    outputs: Sequence[Any] | None = None,
    classes: Sequence[str] | None = None,
    compile: Compile = "auto",
) -> ServedModel:
    """Return a module, a function of tensors, a graph or the file of one as a server knows it."""
    if isinstance(model, ServedModel):
        return model
    about = {} if classes is None else {"classes": _named(classes)}
    if isinstance(model, str | os.PathLike):
        model = Graph.load(Path(model))
    if isinstance(model, Graph):
        if inputs is not None:
            raise ArgumentError("serve: a graph has placeholders; inputs belong to modules")
        return ServedModel(GraphProgram(model, outputs), about=about)
    if not callable(model) or isinstance(model, type):
        raise ArgumentTypeError(
            "serve: expected a module, a function of tensors, a wf.Graph or the path of a saved "
            f"one. Received: {type(model).__name__} {model!r:.60}"
        )
    if inputs is None:
        raise ArgumentError(
            "serve: say what an item of the model's input is: inputs=((784,), 'float32'), an "
            "example, or a dictionary of those by name"
        )
    if outputs is not None:
        raise ArgumentError("serve: outputs are for graphs; a module returns what it returns")
    return ServedModel(ModuleProgram(model, input_values(inputs), compile), about=about)


def _named(classes: Any) -> list[str]:
    several = isinstance(classes, Iterable) and not isinstance(classes, str)
    names: list[Any] = list(classes) if several else [classes]
    if not several or not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(
            f"serve: classes must be a list of names. Received: {classes!r:.60}"
        )
    return names
