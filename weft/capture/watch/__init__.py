"""Seeing what a Python call reads and writes, so that its repetition need not run its Python.

A call enters (`watch.py`, `followed.py`). Before each of its instructions runs, the operands are
read from the frame (`frames.py`) and what it will touch (`instructions.py`, `attributes.py`,
`calls.py` by the rules of `call_tables.py`) is noted as places and containers (`places.py`,
`log.py`). In the end objects that the call made itself are left out (`ages.py`); what it read
becomes tests (`guards.py`), what it changed becomes changes to repeat (`effects.py`,
`templates.py`), and what can be neither a refusal.

What is taken for granted: libraries are not patched while the program runs (the standard library,
NumPy, Weft: `trust.py`), neither are builtins; other threads do not write to what a call reads
while it is recorded; the caller looks after tensors, and compares the arguments of each call.
"""

from .effects import Effect, Effects
from .guards import HELPERS, Guard, Guards, lines_that_hold
from .log import WRITTEN, Refusal
from .places import PythonPlace
from .templates import UnrepeatableError
from .watch import CallWatch as Watch
from .watch import Listener

__all__ = [
    "HELPERS",
    "WRITTEN",
    "Effect",
    "Effects",
    "Guard",
    "Guards",
    "Listener",
    "PythonPlace",
    "Refusal",
    "UnrepeatableError",
    "Watch",
    "lines_that_hold",
]
