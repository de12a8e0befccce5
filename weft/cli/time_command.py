"""`weft time`: how long each layer takes."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from ..data import default_collate
from ..nn.places import beside
from .assemble import Run, build_run
from .saved_runs import open_source
from .timing import TimedCall, layer_calls, time_call, time_model


def time_layers(options: Namespace) -> int:
    """Print a table of the layers with their times."""
    source, _ = open_source(options.run, options.set)
    run = build_run(source, ("train",))
    inputs = _inputs(run, options.batch_size or run.config["data"]["batch_size"])
    run.model.train()
    calls = layer_calls(run.model, inputs)
    for call in calls:
        time_call(call, options.repeat)
    whole = time_model(run.model, inputs, options.repeat)
    if options.json:
        print(json.dumps(_plain(calls, whole), indent=1))
    else:
        print(_table(calls, whole))
    return 0


def _inputs(run: Run, size: int) -> tuple[Any, ...]:
    """Return the inputs of a batch of the first items; a small dataset is repeated."""
    dataset = run.data.splits["train"]
    batch = run.prepare(default_collate([dataset[i % len(dataset)] for i in range(size)]))
    inputs: tuple[Any, ...] = batch if run.prepare.position is None else batch[:-1]
    moved: tuple[Any, ...] = beside(run.model, inputs)
    return moved


def _plain(calls: list[TimedCall], whole: tuple[float, float]) -> dict[str, Any]:
    rows = [
        {"name": c.name, "type": c.kind, "forward": c.forward, "backward": c.backward}
        for c in calls
    ]
    return {"layers": rows, "forward": whole[0], "backward": whole[1]}


def _table(calls: list[TimedCall], whole: tuple[float, float]) -> str:
    total = sum(call.forward + call.backward for call in calls) or 1.0
    width = max([len("layer"), *(len(f"{c.name} ({c.kind})") for c in calls)])
    shapes = max([len("output"), *(len(c.shape) for c in calls)])
    head = (
        f"{'layer':<{width}}  {'output':<{shapes}}  {'forward':>10}  {'backward':>10}  {'share':>6}"
    )
    lines = [head, "-" * len(head)]
    for c in calls:
        share = (c.forward + c.backward) / total
        label = f"{c.name} ({c.kind})"
        lines.append(
            f"{label:<{width}}  {c.shape:<{shapes}}  {c.forward * 1e3:>7.3f} ms  "
            f"{c.backward * 1e3:>7.3f} ms  {share:>6.1%}"
        )
    lines += ["-" * len(head), f"all layers: {total * 1e3:.3f} ms"]
    lines.append(f"the model: forward {whole[0] * 1e3:.3f} ms, backward {whole[1] * 1e3:.3f} ms")
    return "\n".join(lines)
