"""torch.signal.windows: weights that fall to the ends."""

from __future__ import annotations

from ..functions.table import functions_named
from ..names import names

FUNCTIONS = functions_named(
    names(
        "bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann "
        "kaiser nuttall"
    ),
    "signal.windows",
)
globals().update(FUNCTIONS)
