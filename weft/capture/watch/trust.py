"""Whose code is whose: what is followed instruction by instruction, and what is known to be fixed.

User      followed; everything that it reads is guarded
Library   followed: the parts of Weft whose state is Python's (modules, schedules, training, data,
          ragged tensors).
          Its functions, classes and constants are taken to stay as they are
Standard  the standard library: likewise, but what internal code does with it is its own business
Internal  not followed: the rest of Weft, and NumPy. It computes, and what it is given is looked at.
          So are packages and functions that compute from what they are given alone, whatever they
          keep to be faster: einops, and what `take_as_computing` was told of
"""

from __future__ import annotations

import os
import sys
import weakref
from enum import Enum
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from ...core.errors import GENERATED_PREFIX, PACKAGE_DIR
from .places import dictionary


class Owner(Enum):
    """Who wrote a piece of code."""

    USER = "user"
    LIBRARY = "library"
    STANDARD = "standard"
    INTERNAL = "internal"


_NUMPY = os.path.dirname(np.__file__) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = tuple(_STANDARD + name + os.sep for name in ("site-packages", "dist-packages"))
_FOLLOWED = tuple(
    os.path.join(PACKAGE_DIR, *name.split("/"))
    for name in (
        *("nn/module.py", "nn/hooks.py", "train/", "data/", "io/", "chainer/", "keras/"),
        *("structures/", "torch/nn/module.py"),
        *("optim/lr/", "optim/accumulate.py", "optim/loss_scale.py"),
    )
)
# Packages that choose by the class of a tensor, and keep plans of what they did.
_COMPUTING = ("einops",)
_FROZEN = "<frozen "
_GENERATED = "<string>"

_code: dict[str, Owner] = {}
_computing: dict[int, CodeType] = {}  # by id: hashing a code object is far slower
_classes: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()
_internal: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def owner_of(code: CodeType) -> Owner:
    """Return who wrote a code object."""
    name = code.co_filename
    if id(code) in _computing:
        return Owner.INTERNAL
    if name == _GENERATED and _is_of_standard_class(code):
        return Owner.STANDARD
    found = _code.get(name)
    if found is None:
        found = _code[name] = _owner_of_file(name)
    return found


def take_as_computing(function: Any) -> None:
    """Let recordings not follow a function: its results follow from what it is given."""
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        _computing[id(code)] = code


def _is_of_standard_class(code: CodeType) -> bool:
    """Tell whether the standard library wrote a method: of a named tuple, or of a dataclass."""
    return code.co_names == ("_tuple_new",) or code.co_qualname.startswith("__create_fn__.")


def computes(code: CodeType) -> bool:
    """Tell whether code belongs to others and computes from what it is given alone."""
    name = code.co_filename
    if name.startswith((PACKAGE_DIR, GENERATED_PREFIX, _NUMPY, _FROZEN)):
        return False
    return owner_of(code) is Owner.INTERNAL


def _owner_of_file(name: str) -> Owner:
    if name.startswith(_FOLLOWED):
        return Owner.LIBRARY
    if name.startswith((PACKAGE_DIR, GENERATED_PREFIX, _NUMPY, f"{_FROZEN}importlib")):
        return Owner.INTERNAL
    if name.startswith(tuple(map(_folder_of, _COMPUTING))):
        return Owner.INTERNAL
    is_standard = name.startswith((_STANDARD, _FROZEN)) and not name.startswith(_INSTALLED)
    return Owner.STANDARD if is_standard else Owner.USER


def _folder_of(package: str) -> str:
    """Return where a package is, if it is loaded; else what no file begins with."""
    module = sys.modules.get(package)
    name = None if module is None else dictionary(module).get("__file__")
    return os.path.dirname(name) + os.sep if isinstance(name, str) else "\0"


def is_import(code: CodeType) -> bool:
    """Tell whether a code object is where Python loads a module."""
    return code.co_name == "_find_and_load" and code.co_filename.startswith(_FROZEN)


def is_library(module: dict[str, Any]) -> bool:
    """Tell whether the variables of a module are those of a library."""
    name = module.get("__file__")
    if isinstance(name, str):
        return _owner_of_file(name) is not Owner.USER
    return module.get("__name__") in sys.builtin_module_names


def is_library_module(module: ModuleType) -> bool:
    """Tell whether a module belongs to a library: what it defines stays as it is."""
    return is_library(dictionary(module))


def is_library_class(kind: type) -> bool:
    """Tell whether a class belongs to a library: its methods stay as they are."""
    found = _classes.get(kind)
    if found is None:
        module = sys.modules.get(kind.__module__)
        found = _classes[kind] = module is not None and is_library_module(module)
    return found


def is_internal_class(kind: type) -> bool:
    """Tell whether a class, or a base, belongs to what is not followed of Weft: tensors, graphs."""
    found = _internal.get(kind)
    if found is None:
        found = _internal[kind] = any(map(_is_defined_inside, kind.__mro__))
    return found


def _is_defined_inside(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    name = None if module is None else dictionary(module).get("__file__")
    if not isinstance(name, str) or not name.startswith(PACKAGE_DIR):
        return False
    return _owner_of_file(name) is Owner.INTERNAL


def line_of(frame: FrameType) -> str:
    """Return the line that a frame is at, or the user's that called the library it belongs to."""
    shown: FrameType | None = frame
    while shown is not None and owner_of(shown.f_code) is not Owner.USER:
        shown = shown.f_back
    shown = shown or frame
    return f"{os.path.basename(shown.f_code.co_filename)}:{shown.f_lineno}"
