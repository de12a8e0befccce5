"""Ragged tensors: rows of different lengths as one tensor of values and where rows are split.

Rows enter, tensors leave. Everything is written in operators, so that it is differentiated,
captured and compiled as they are. Imports operators and what runs functions for many examples.
"""

from .ragged import Ragged, ragged

__all__ = ["Ragged", "ragged"]
