"""`tf.errors`: what runs raise, by TensorFlow's classes and numbers."""

from __future__ import annotations

from typing import Any

from ..core.errors import WeftError

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OpError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
]


class OpError(WeftError):
    """What an operation raises when it runs.

    op        the operation
    message   what went wrong
    """

    error_code = 2

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        self.message = message


class CancelledError(OpError):
    """The operation was cancelled."""

    error_code = 1


class UnknownError(OpError):
    """Something unknown went wrong."""

    error_code = 2


class InvalidArgumentError(OpError):
    """An operation was given what it cannot take."""

    error_code = 3


class DeadlineExceededError(OpError):
    """It took too long."""

    error_code = 4


class NotFoundError(OpError):
    """Something is not there: a file, a value in a checkpoint."""

    error_code = 5


class AlreadyExistsError(OpError):
    """Something is there already."""

    error_code = 6


class PermissionDeniedError(OpError):
    """Something is not allowed."""

    error_code = 7


class ResourceExhaustedError(OpError):
    """There is no more room."""

    error_code = 8


class FailedPreconditionError(OpError):
    """Something must happen before: a variable be initialised."""

    error_code = 9


class AbortedError(OpError):
    """The operation was aborted."""

    error_code = 10


class OutOfRangeError(OpError):
    """There is nothing more: the end of a dataset or of a closed queue."""

    error_code = 11


class UnimplementedError(OpError):
    """There is no such thing here."""

    error_code = 12


class InternalError(OpError):
    """The system itself is wrong."""

    error_code = 13


class UnavailableError(OpError):
    """Something is not available now."""

    error_code = 14


class DataLossError(OpError):
    """A file is damaged."""

    error_code = 15


def at_node(kind: type[OpError], operation: Any, message: str) -> OpError:
    """Return an error that names the operation at which it happened."""
    return kind(None, operation, f"{message}\n\t [[node {operation.name}]]")
