"""Take programs away: functions, modules and graphs as shared libraries that need no Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .ahead import Compiled, compile
from .jitted import Jitted


def export(
    function: Any,
    path: Any,
    *example_args: Any,
    fetches: Any = None,
    **options: Any,
) -> list[Path]:
    """Write a function, a module or a graph to a shared library with a C header.

    function       a function of tensors, a module as it is now (call `eval()` first to predict), a
                   graph, or what `wf.compile` or `wf.jit` returned
    path           of the library: `model.so`; the header is `model.h` beside it
    example_args   arguments of the shapes and dtypes that the library takes
    fetches        of a graph: what to return
    batches        numbers that the first size of all inputs may be, in place of the examples' own
    target         the processors it is for: "native" (this one), "sse2", "avx2" or "avx512"
    threads        for how many the work is divided; as many as Weft uses by default
    weights        "inside" the library, or "beside" it: `model.safetensors`
    prefix         of the names of its functions: "weft"
    input_names, output_names   what to call them, in place of arguments and places in the result

    The library needs C's library alone: no Python, NumPy, LLVM or compiler. It gives the same bits
    as Python. What the function writes (parameters of a training step, caches) are states of each
    instance. The paths of all files are returned.

    >>> import tempfile, weft as wf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = wf.export(wf.nn.Linear(3, 2), f"{folder}/model.so", wf.ones(4, 3))
    ...     [file.name for file in files]
    ['model.so', 'model.h']
    """
    if isinstance(function, Jitted):
        return function.export(path, *example_args, **options)
    compiled = (
        function
        if isinstance(function, Compiled)
        else compile(function, *example_args, fetches=fetches)
    )
    return compiled.export(path, **options)
