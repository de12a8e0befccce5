"""Code generation: from kernels to the text of LLVM IR.

Enters: kernels of `weft.lower` and a `Target`. Leaves: strings. Nothing here runs native code;
`weft.backends.cpu.runtime` turns the text into it.
"""

from __future__ import annotations

from .target import Target, avx2, avx512, host, neon, sse2
from .text import FunctionText, LoopIndex, ModuleText, Phi
from .values import IRValue, constant, element_of, lanes_of, scalar_of, vector_of, with_element

__all__ = [
    "FunctionText",
    "IRValue",
    "LoopIndex",
    "ModuleText",
    "Phi",
    "Target",
    "avx2",
    "avx512",
    "constant",
    "element_of",
    "host",
    "lanes_of",
    "neon",
    "scalar_of",
    "sse2",
    "vector_of",
    "with_element",
]
