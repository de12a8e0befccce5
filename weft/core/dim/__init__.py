"""Sizes that are not known yet: integer expressions over unknown sizes.

A graph may be built before the sizes of its inputs are known. Such a size is a `Dim`, and shape
rules compute with it as with an integer: `(n + 2) // 2` is another Dim. Expressions are kept in a
normal form (a polynomial over unknown sizes and over calls such as floor division), so that equal
sizes compare equal however they were computed: `(2 * n) // 2 == n`.

What can be decided without knowing the size is decided, in the way that rules need:

    a == b     surely equal
    a != b     surely different (so both are False for a size that may be 5 or not)
    a < b      decided if the bounds decide it (a size is at least 0), else UnknownSizeError
    bool(a)    likewise: a size that may be 0 has no truth value
    int(a)     UnknownSizeError

Rules that refuse bad sizes refuse what is surely bad, and leave the rest to the kernel: they ask
`surely_less(size, k)` in place of `size < k`, and `may_equal(a, b)` of shapes, whose `!=` Python
derives from `==`. Where the integers end (`1.0 / n`, `n ** 0.5`), see number.py.
"""

from .decisions import Condition, Decisions, deciding, leaving_open, raise_if_told
from .expression import (
    FUNCTIONS,
    LEAST,
    Atom,
    Dim,
    RunTimeSize,
    SizeCall,
    SizeVar,
    bounds,
    broadcast_sizes,
    evaluate,
    floor_divide,
    parse,
    run_time_size,
    size_in,
    size_max,
    size_min,
    undecided,
    unknown_size,
    variables,
)
from .questions import (
    differ_unless_empty,
    is_known,
    is_told,
    known_size,
    may_equal,
    may_stretch,
    surely_less,
    typical,
)

__all__ = [
    "FUNCTIONS",
    "LEAST",
    "Atom",
    "Condition",
    "Decisions",
    "Dim",
    "RunTimeSize",
    "SizeCall",
    "SizeVar",
    "bounds",
    "broadcast_sizes",
    "deciding",
    "differ_unless_empty",
    "evaluate",
    "floor_divide",
    "is_known",
    "is_told",
    "known_size",
    "leaving_open",
    "may_equal",
    "may_stretch",
    "parse",
    "raise_if_told",
    "run_time_size",
    "size_in",
    "size_max",
    "size_min",
    "surely_less",
    "typical",
    "undecided",
    "unknown_size",
    "variables",
]
