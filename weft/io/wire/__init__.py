"""The wire format of protocol buffers, read and written without schemas or generated code.

A message is a run of fields, each a key (number and wire type) and a value: a varint, four or eight
bytes, or bytes with their length before them. `Message` finds the fields of one message; who knows
the schema asks for them by number and type. Nothing is copied: values are views of the bytes that
were given, and a list of numbers is an array. Memory is taken for what is there, never for what a
length claims; errors name the offset in what was given.
"""

from .reading import MAX_DEPTH, Message
from .varints import Array, Buffer, WireError, read_varint, unpack_varints, varint
from .writing import MessageWriter

__all__ = [
    "MAX_DEPTH",
    "Array",
    "Buffer",
    "Message",
    "MessageWriter",
    "WireError",
    "read_varint",
    "unpack_varints",
    "varint",
]
