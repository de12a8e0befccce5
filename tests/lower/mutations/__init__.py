"""Programs with one broken rule each, made from sound ones."""

from . import control, expressions, kinds, loops, products, programs
from .registry import MUTATIONS, broken

__all__ = [
    "MUTATIONS",
    "broken",
    "control",
    "expressions",
    "kinds",
    "loops",
    "products",
    "programs",
]
