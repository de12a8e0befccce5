"""Compiled programs in one file: what the object cache holds of them, to be taken along.

A file is a signature, a line that says what it is for, and the content: plans and machine code by
their keys. It is signed with the secret of this user's cache, so that nothing is ever run that
another user, or another machine, has written. Nothing in it is more than data until then.
"""

from __future__ import annotations

import hmac
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np

from ...backends.private_file import write_whole
from ...backends.store import user_secret
from ...core.sources import sources_digest
from ...plan.device import Device
from .programs import LAYERS

MAGIC = b"WEFTPRG1"
_SIGNED = len(MAGIC) + 32
MOST_BYTES = 1 << 30

Entries = Mapping[bytes, bytes]


class ForeignBundleError(Exception):
    """A file cannot be used here; the message says why."""


def write_bundle(path: str | os.PathLike[str], device: Device, entries: Entries) -> None:
    """Write plans and code by their keys; a reader sees the whole file or the one of before."""
    head = {
        "for": _made_for(device),
        "entries": [[key.hex(), len(code)] for key, code in entries.items()],
    }
    content = b"".join([json.dumps(head).encode(), b"\n", *entries.values()])
    write_whole(os.path.abspath(path), MAGIC + _signature(content) + content)


def read_bundle(path: str | os.PathLike[str], device: Device) -> dict[bytes, bytes]:
    """Return what a file holds; raise ForeignBundleError if it is not for this very place."""
    whole = Path(path).read_bytes()
    signature, content = whole[len(MAGIC) : _SIGNED], whole[_SIGNED:]
    line, _, rest = content.partition(b"\n")
    head = _head(line) if whole.startswith(MAGIC) else None
    if head is None or len(whole) > MOST_BYTES:
        raise ForeignBundleError("it is no file of compiled programs, or is damaged")
    differences = _differences(head["for"], _made_for(device))
    if differences:
        raise ForeignBundleError(f"it was made for something else: {'; '.join(differences)}")
    if not hmac.compare_digest(signature, _signature(content)):
        raise ForeignBundleError("it is damaged, or was not written by this user on this machine")
    return _entries(head["entries"], rest)


def _entries(listed: list[tuple[str, int]], content: bytes) -> dict[bytes, bytes]:
    found, at = {}, 0
    for key, size in listed:
        found[bytes.fromhex(key)] = content[at : at + size]
        at += size
    return found


def _head(line: bytes) -> Any:
    """Return what a file says of itself, which may be anything; None if it says nothing."""
    try:
        head = json.loads(line)
    except ValueError:
        return None
    known = isinstance(head, dict) and isinstance(head.get("for"), dict)
    return head if known and isinstance(head.get("entries"), list) else None


def _made_for(device: Device) -> dict[str, str]:
    """Return all that machine code depends on besides the program."""
    sources = sources_digest(LAYERS)
    return {
        "machine": device.machine,
        "threads": str(device.threads),
        "device": repr(device),
        "Weft": str(getattr(sys.modules.get("weft"), "__version__", "")),
        "sources of Weft": "unknown" if sources is None else sources.hex()[:16],
        "llvmlite": llvmlite.__version__,
        "NumPy": np.__version__,
        "Python": sys.version,
        "platform": sys.platform,
    }


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, str]) -> list[str]:
    found = [name for name, value in ours.items() if theirs.get(name) != value]
    shown = [name for name in found if name != "device"] or found
    return [f"{name} {theirs.get(name)!s:.60}, here {ours[name]:.60}" for name in shown]


def _signature(content: bytes) -> bytes:
    return hmac.digest(user_secret(), MAGIC + content, "sha256")
