"""What lower layers take from higher ones: the whole list, and the only place that fills slots.

A layer imports downward only. Where one must call upward (a method of Graph that a pass implements)
it declares a slot by `injected` (core/imports.py), and here stands what fills it. Modules are
imported when the slot is first used. tests/architecture/layers.py gives the reason for each.
"""

from __future__ import annotations

from typing import Any

from .autodiff.reverse import backward
from .autodiff.unchaining import unchain, unchain_backward
from .core.imports import deferred_imports, inject
from .core.tensor import Tensor
from .ops.movement.axes import PROPERTIES

INJECTED = {
    "backend_names": "weft.backends:backend_names",
    "device_names": "weft.backends:device_names",
    "device_count": "weft.backends:device_count",
    "device_runtime": "weft.eager.on_devices:RUNTIME",
    "large_kernels": "weft.eager",
    "multiply_matrices": "weft.backends.cpu.runtime.products:multiply",
    "cond_of_batches": "weft.autodiff.batching.control:cond_of_batches",
    "loop_of_batches": "weft.autodiff.batching.control:loop_of_batches",
    "compile_for_sizes": "weft.compiler.stages:compile_for_sizes",
    "compile_program": "weft.compiler.stages:compile_program",
    "export_program": "weft.compiler.exported:export_program",
    "Graph.optimize": "weft.compiler.budget:optimize",
    "Graph.memory_plan": "weft.compiler.memory:memory_plan",
    "Graph.draw": "weft.viz.draw:draw",
    "Graph.repr_svg": "weft.viz.draw:repr_svg",
    "Graph.write_tensorboard": "weft.viz.tensorboard:write_tensorboard_graph",
    "Graph.save": "weft.io.graphs:save_graph",
    "Graph.load": "weft.io.graphs:load_graph",
    "Module.compile": "weft.train.keras:compile",
    "Module.evaluate": "weft.train.keras:evaluate",
    "Module.export": "weft.capture.exporting:export",
    "Module.fit": "weft.train.keras:fit",
    "Module.predict": "weft.train.keras:predict",
}


def _assign(self: Tensor, value: Any) -> Tensor:
    """Give this tensor another value: now, or in a graph at the end of each run that fetches it."""
    with deferred_imports:
        from .graph.frontend import assign  # noqa: PLC0415  (graphs, which eager programs lack)
    return assign(self, value)


def install() -> None:
    """Fill the slots, and give Tensor the methods that layers above it implement."""
    inject(INJECTED)
    Tensor.backward = backward
    Tensor.unchain = unchain
    Tensor.unchain_backward = unchain_backward
    Tensor.assign = _assign
    for name, getter in PROPERTIES.items():
        setattr(Tensor, name, property(getter))
