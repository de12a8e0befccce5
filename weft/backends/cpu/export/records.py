"""What the functions of a library find in memory: names of words, and where in records they lie.

Some records are public (the header tells C about them), others only the library's own functions
read. All are made of words of 8 bytes. Two halves of a word are written `low|high`.
"""

from __future__ import annotations

from enum import IntEnum

ABI_VERSION = 1


class ErrorCode(IntEnum):
    """What the functions of a library return."""

    OK = 0
    NULL = 1
    VERSION = 2
    PROCESSOR = 3
    MEMORY = 4
    FILE = 5
    WEIGHTS = 6
    COUNT = 7
    DTYPE = 8
    SHAPE = 9
    ALIGNMENT = 10
    INDEX = 11
    NAME = 12
    BUSY = 13


MEANINGS = {
    ErrorCode.OK: "no error",
    ErrorCode.NULL: "a pointer is NULL",
    ErrorCode.VERSION: "the caller was compiled for another version of the interface",
    ErrorCode.PROCESSOR: "this processor lacks instructions that the code uses",
    ErrorCode.MEMORY: "there is not enough memory",
    ErrorCode.FILE: "a file cannot be read or written",
    ErrorCode.WEIGHTS: "a file does not hold the weights of this model",
    ErrorCode.COUNT: "the number of inputs or outputs is wrong",
    ErrorCode.DTYPE: "a tensor has another dtype than the model",
    ErrorCode.SHAPE: "a tensor has another shape than the model",
    ErrorCode.ALIGNMENT: "data does not lie at a multiple of the size of its elements",
    ErrorCode.INDEX: "an index is out of range, or a value that was branched on is another",
    ErrorCode.NAME: "there is no state of that name",
    ErrorCode.BUSY: "the instance is running in another thread",
}

# Numbers of dtypes, which never change.
DTYPES = {
    "bool": 0,
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "uint8": 5,
    "uint16": 6,
    "uint32": 7,
    "uint64": 8,
    "float16": 9,
    "bfloat16": 10,
    "float32": 11,
    "float64": 12,
}


def _record(*names: str) -> dict[str, int]:
    return {name: 8 * i for i, name in enumerate(names)}


# Public ones.
TENSOR = _record("data", "shape", "dtype|ndim")
TENSOR_BYTES = 8 * len(TENSOR)
TENSOR_INFO = _record("name", "shape", "dtype|ndim", "nbytes")
TENSOR_INFO_BYTES = 8 * len(TENSOR_INFO)
OPTIONS = _record(
    "size|version", "threads", "weights", "parallel_for", "user", "message", "message_bytes"
)
OPTIONS_BYTES = 8 * len(OPTIONS)

# The model: what the header calls weft_info, then what is the library's own.
_PUBLIC = (
    *("size|version", "name", "target", "weft", "beside"),
    *("inputs", "input_count", "outputs", "output_count", "states", "state_count"),
    "program_count",
)
INFO_BYTES = 8 * len(_PUBLIC)
MODEL = _record(
    *_PUBLIC,
    *("features", "feature_count", "programs", "weights", "header", "header_bytes"),
    *("data_bytes", "kept", "order", "most_arguments", "most_entries", "most_numbers"),
    *("stage_bytes", "dtype_names", "dtype_bytes"),
)
FEATURE = _record("leaf", "register", "mask", "name")
FEATURE_BYTES = 8 * len(FEATURE)
KEPT = _record("offset", "nbytes", "changes")  # a state
KEPT_BYTES = 8 * len(KEPT)

# A program for inputs of certain shapes.
PROGRAM = _record(
    *("run", "input_shapes", "output_shapes", "arguments", "argument_count"),
    *("constants", "constant_count", "flag", "words", "offsets", "offset_count"),
    *("numbers", "number_count", "arena_bytes", "output_copies", "output_copy_count"),
    *("state_copies", "state_copy_count"),
)
PROGRAM_BYTES = 8 * len(PROGRAM)
ARGUMENT = _record("kind", "index")
ARGUMENT_BYTES = 8 * len(ARGUMENT)
FROM_INPUT, FROM_STATE, FROM_OUTPUT = 0, 1, 2

# What is copied to an output or a state when the code has run, and from where.
COPY = _record(
    *("to", "is_argument", "entry", "offset", "moves", "move_count"),
    *("ndim", "loops", "block", "stage"),
)
COPY_BYTES = 8 * len(COPY)
MOVE = _record("is_argument", "entry", "offset", "step")
MOVE_BYTES = 8 * len(MOVE)
LOOP_BYTES = 16  # a count and a stride

# An instance: first how to tell what is wrong, as every `report` begins.
REPORT = _record("text", "text_bytes")
REPORT_BYTES = 8 * len(REPORT)
INSTANCE = _record(
    *REPORT,
    *("program", "arena", "arena_bytes", "parallel_for", "user", "threads", "busy"),
    *("flag", "counter", "stage", "values", "owned", "numbers", "arguments", "table"),
    "mapped",
)
MESSAGE_BYTES = 512
INSTANCE_BYTES = 8 * len(INSTANCE)
