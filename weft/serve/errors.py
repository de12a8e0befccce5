"""What is wrong with a request, as a status and a sentence for the client."""

from __future__ import annotations

from collections.abc import Mapping


class RequestError(Exception):
    """A request that is answered with an error: status, message and headers of the answer."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})
