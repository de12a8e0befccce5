"""`tensorflow.examples.tutorials.mnist`: the digits of the tutorials."""

from __future__ import annotations

from . import input_data as input_data
