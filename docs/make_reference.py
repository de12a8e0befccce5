"""Write docs/reference.md: every public name with its signature and first line of documentation.

    python docs/make_reference.py

A test compares the file with what this program would write.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import weft as wf
from weft.core.namespaces import namespaces
from weft.core.op import find

PAGE = Path(__file__).parent / "reference.md"
INTRODUCTION = """# Reference

Every public function, with the first line of its documentation; `help(wf.exp)` shows the rest. This
page is written by `python docs/make_reference.py`.
"""
SECTIONS = {  # of the packages that declare operators
    "elementwise": "Elementwise",
    "reduce": "Reductions",
    "movement": "Movement",
    "index": "Indexing",
    "linalg": "Products",
}

PACKAGES = {
    "Layers: `wf.nn.`": wf.nn,
    "Initialisers: `wf.nn.init.`": wf.nn.init,
    "Optimizers: `wf.optim.`": wf.optim,
    "Schedules: `wf.optim.lr.`": wf.optim.lr,
    "Distributions: `wf.distributions.`": wf.distributions,
    "Windows: `wf.signal.windows.`": wf.signal.windows,
    "Saving: `wf.io.`": wf.io,
    "Debugging: `wf.debug.`": wf.debug,
    "Summaries: `wf.summary.`": wf.summary,
    "Data: `wf.data.`": wf.data,
    "Image transforms: `wf.data.transforms.`": wf.data.transforms,
    "Training: `wf.train.`": wf.train,
    "Metrics: `wf.train.metrics.`": wf.train.metrics,
    "Serving: `wf.serve.`": wf.serve,
}


def reference() -> str:
    """Return the text of the page."""
    operators = namespaces["wf"]
    other = sorted(set(wf.__all__) - set(operators))
    functions = [name for name in other if callable(getattr(wf, name))]
    parts = [INTRODUCTION, _section("Tensors, modes and derivatives: `wf.`", wf, functions)]
    packages = {name: find(target).__module__.split(".")[2] for name, target in operators.items()}
    for package, title in SECTIONS.items():
        names = [name for name, where in packages.items() if where == package]
        parts.append(_section(f"{title}: `wf.`", wf, names))
    parts.append(_section("Linear algebra: `wf.linalg.`", wf.linalg, wf.linalg.__all__))
    parts.append(_section("Masked: `wf.masked.`", wf.masked, wf.masked.__all__))
    parts.append(_section("Special functions: `wf.special.`", wf.special, wf.special.__all__))
    functional = wf.nn.functional
    parts.append(_section("Networks: `wf.nn.functional.`", functional, functional.__all__))
    parts.append(_section("Checking: `wf.autodiff.`", wf.autodiff, wf.autodiff.__all__))
    for title, module in PACKAGES.items():
        names = [name for name in module.__all__ if callable(getattr(module, name))]
        parts.append(_section(title, module, names))
    return "\n".join(parts)


def _section(title: str, module: Any, names: Any) -> str:
    rows = [
        f"| `{name}{_signature(getattr(module, name))}` | {_summary(module, name)} |"
        for name in sorted(names)
    ]
    return "\n".join([f"## {title}", "", "| name | what it does |", "|---|---|", *rows, ""])


def _signature(value: Any) -> str:
    """Return the parameters' names; defaults and types are in the full documentation."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    shown = [str(p.replace(annotation=p.empty, default=p.empty)) for p in parameters]
    return f"({', '.join(shown)})"


def _summary(module: Any, name: str) -> str:
    text = inspect.getdoc(getattr(module, name)) or ""
    return text.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(reference())
