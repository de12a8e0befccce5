"""Call exported libraries from tests, by the example that shows how to."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "export"


def example(name: str) -> ModuleType:
    """Return a program of examples/export as a module."""
    known = f"example_export_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[known] = module
        spec.loader.exec_module(module)
    return sys.modules[known]


caller = example("call_from_python")
Model, ModelError = caller.Model, caller.ModelError


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skip a test where a program of the system is missing."""
    missing = [name for name in programs if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")
