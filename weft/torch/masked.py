"""torch.masked: reductions of the elements that a mask lets through."""

from __future__ import annotations

from .functions.table import functions_named
from .names import names

FUNCTIONS = functions_named(
    names(
        "amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean median norm "
        "normalize prod softmax softmin std sum var"
    ),
    "masked",
)
globals().update(FUNCTIONS)
