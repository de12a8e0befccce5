"""Object code for IR text, made once: kept in memory, then on disk, then compiled."""

from __future__ import annotations

import hashlib
import sys
from collections import OrderedDict
from collections.abc import Collection
from functools import partial

import llvmlite

from ....core.locks import fork_safe_lock
from ...store import FORMAT, ObjectStore, user_store
from ..codegen.target import Target
from .apart import ObjectRequest, begin, finish, has_help
from .linking import compile_module, level_of, machine_of

MEMORY_LIMIT = 64 * 1024 * 1024

_lock = fork_safe_lock("objects")
_runtime: dict[bytes, None] = {}


class ObjectCache:
    """Compile text, or find what was compiled before: by this process or, on disk, by any."""

    def __init__(self, store: ObjectStore, memory_limit: int = MEMORY_LIMIT) -> None:
        self.store = store
        self.memory_limit = memory_limit
        self._memory: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, text: str, target: Target) -> bytes:
        """Return the object code of an LLVM module."""
        key = object_key(text, target)
        code = self.find(key)
        return self._made(key, text, target) if code is None else code

    def begin(self, text: str, target: Target) -> None:
        """Have the object code of a module made that will be asked for, if it is not there."""
        key = object_key(text, target)
        if self.find(key) is None:
            begin(ObjectRequest(key, text, level_of(text)), partial(self._take, target=target))

    def finish(self, target: Target) -> None:
        """Wait for all that was begun."""
        finish(partial(self._take, target=target))

    def _take(self, module: ObjectRequest, code: bytes | None, *, target: Target) -> None:
        """Keep what another process has made; make it here if that did not."""
        self._made(module.key, module.text, target, code)

    def _made(self, key: bytes, text: str, target: Target, code: bytes | None = None) -> bytes:
        """Return new object code, which others will find."""
        code = compile_module(text, target) if code is None else code
        self.store.put(key, code)
        self._remember(key, code)
        return code

    def find(self, key: bytes) -> bytes | None:
        """Return the object code of a module by its key, or None if it is not there."""
        code = self._recall(key)
        if code is None:
            code = self.store.get(key)
            if code is not None:
                self._remember(key, code)
        return code

    def _recall(self, key: bytes) -> bytes | None:
        with _lock:
            code = self._memory.get(key)
            if code is not None:
                self._memory.move_to_end(key)
            return code

    def _remember(self, key: bytes, code: bytes) -> None:
        with _lock:
            if key not in self._memory:
                self._memory[key] = code
                self._bytes += len(code)
            while self._bytes > self.memory_limit and len(self._memory) > 1:
                self._bytes -= len(self._memory.popitem(last=False)[1])


def object_code(text: str, target: Target) -> bytes:
    """Return the object code of an LLVM module, from this user's cache if it is there."""
    return _process_cache().get(text, target)


def object_codes(texts: Collection[str], target: Target) -> list[bytes]:
    """Return the object code of modules, some of which may have been begun."""
    if has_help(machine_of(target)):
        _process_cache().finish(target)
    return [object_code(text, target) for text in texts]


def begin_object(text: str, target: Target) -> None:
    """Have a module's object code made while others are written, if another process helps."""
    if has_help(machine_of(target)):
        _process_cache().begin(text, target)


def runtime_code(text: str, target: Target) -> bytes:
    """Return the object code of a module that belongs to no program: that calls them, say."""
    _runtime[object_key(text, target)] = None
    return object_code(text, target)


def runtime_keys() -> list[bytes]:
    """Return the keys of modules that this process uses for whatever program."""
    return list(_runtime)


def find_object(key: bytes) -> bytes | None:
    """Return object code by its key, if this process or this user's cache has it."""
    return _process_cache().find(key)


def object_key(text: str, target: Target) -> bytes:
    """Return the name of a module's code: all that decides about its bytes, digested."""
    weft = getattr(sys.modules.get("weft"), "__version__", "")
    parts = (text, target.triple, target.cpu, target.features, llvmlite.__version__, weft)
    digest = hashlib.sha256(FORMAT)
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.digest()


class _Process:
    cache: ObjectCache | None = None


def _process_cache() -> ObjectCache:
    if _Process.cache is None:
        _Process.cache = ObjectCache(user_store())
    return _Process.cache
