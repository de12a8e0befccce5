"""Random numbers as operators: pure functions of a state tensor (see `state`), at any thread count.

`continuous` and `discrete` declare the operators, `draw` the public functions that reserve a state
from a generator and apply them. Imports core only; reaches other operators through `F`.
"""
