"""torch.masked: reductions of the elements that a mask lets through."""

from __future__ import annotations

from .absent import absent
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
_MASKS = "give the functions of this module a tensor and mask="
_REASONS = dict.fromkeys(names("MaskedTensor masked_tensor as_masked_tensor"), _MASKS)
__getattr__ = absent(globals(), _REASONS)
