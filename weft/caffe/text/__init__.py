"""Protobuf's text format: prototxt in, messages out, and back."""

from __future__ import annotations

from ..printing import print_message
from .reader import MAX_CHARACTERS, MAX_DEPTH, read_message, read_message_file

__all__ = ["MAX_CHARACTERS", "MAX_DEPTH", "print_message", "read_message", "read_message_file"]
