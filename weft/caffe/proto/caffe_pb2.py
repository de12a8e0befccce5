"""`caffe.proto.caffe_pb2`: Caffe's messages under the name that programs import.

Files are read with `weft.caffe.text.read_message_file`; protobuf's own `text_format` takes only its
own classes.
"""

from __future__ import annotations

from typing import Any

from ..message import MESSAGES, TEST, TRAIN

__all__ = ["TEST", "TRAIN", *MESSAGES]  # noqa: PLE0604  (names of the schema)


def __getattr__(name: str) -> Any:
    """Return a class of messages by its name."""
    if name not in MESSAGES:
        raise AttributeError(f"caffe_pb2 has no message {name!r}")
    return MESSAGES[name]
