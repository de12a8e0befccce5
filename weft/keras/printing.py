"""The table that `model.summary()` prints."""

from __future__ import annotations

from typing import Any

from ..nn.summary import format_memory

_HEAD = ("Layer (type)", "Output shape", "Weights", "Connected to")


def summary_of(model: Any) -> str:
    """Return a table of a model's layers, their output shapes, weights and inputs."""
    graph = getattr(model, "graph", None)
    feeds = _feeds(model) if graph is not None else {}
    rows = [_HEAD]
    for layer in model.layers:
        shapes = ", ".join(_shapes(layer)) or "?"
        count = f"{_count(layer):,}" if not layer._pending else "not built"
        rows.append(
            (f"{layer.name} ({type(layer).__name__})", shapes, count, feeds.get(layer.name, ""))
        )
    shown = 4 if graph is not None else 3
    widths = [max(len(row[i]) for row in rows) for i in range(shown)]
    lines = ["  ".join(row[i].ljust(widths[i]) for i in range(shown)).rstrip() for row in rows]
    rule = "-" * (sum(widths) + 2 * (shown - 1))
    text = [f'Model: "{model.name}"', rule, lines[0], rule, *lines[1:], rule]
    return "\n".join([*text, *_totals(model)])


def _shapes(layer: Any) -> list[str]:
    found = [str(y.shape) for call in layer.calls[-1:] for y in call.outputs]
    return found or [str(y.shape) for y in getattr(layer, "outputs", [])]


def _count(layer: Any) -> int:
    own = getattr(layer, "own_weights", None)
    return sum(int(weight.numpy().size) for weight in own()) if own is not None else 0


def _feeds(model: Any) -> dict[str, str]:
    """Return for each layer the names of those that feed it, over all of its calls."""
    graph = model.graph
    layer_names = {step.name: graph.__dict__[step.module].name for step in graph.steps}
    layer_names.update(zip(graph.inputs, model.input_names, strict=True))
    found: dict[str, list[str]] = {}
    for step in graph.steps:
        names = [layer_names[reference.partition(".")[0]] for reference in step.inputs]
        found.setdefault(layer_names[step.name], []).extend(names)
    return {name: ", ".join(dict.fromkeys(names)) for name, names in found.items()}


def _totals(model: Any) -> list[str]:
    if any(layer._pending for layer in model.layers):
        return ["Weights: not built yet"]
    weights = {id(w.tensor): w for w in model.own_weights()}.values()
    total = sum(int(w.numpy().size) for w in weights)
    trained = sum(int(w.numpy().size) for w in weights if w.trainable)
    size = sum(w.numpy().nbytes for w in weights)
    return [
        f"Total weights: {total:,} ({format_memory(size)})",
        f"Trained: {trained:,}",
        f"Not trained: {total - trained:,}",
    ]
