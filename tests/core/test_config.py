"""Settings take what they can have, and say so where they cannot."""

import numpy as np
import pytest

import weft as wf
from weft.core.config import Config
from weft.core.errors import ArgumentError, ArgumentTypeError


@pytest.mark.parametrize("name", ["compiler_process", "eager_kernels", "debug_interpret"])
@pytest.mark.parametrize("value", ["yes", "no", 1, 0, None, [], np.int64(1)])
def test_switches_are_true_or_false(name, value):
    settings = Config()
    before = getattr(settings, name)
    with pytest.raises(ArgumentTypeError, match=f"config.{name} must be True or False. Received:"):
        setattr(settings, name, value)
    assert getattr(settings, name) is before
    for good in (True, False, np.True_, np.False_):
        setattr(settings, name, good)
        assert getattr(settings, name) is bool(good)


@pytest.mark.parametrize("value", ["float", "int32", "float8", 32, None, np.int32, ["float32"]])
def test_default_float_is_a_float(value):
    settings = Config()
    with pytest.raises(ArgumentError, match="default_float must be one of 'float16'"):
        settings.default_float = value
    assert settings.default_float == "float32"


def test_default_float_by_name_dtype_or_type():
    settings = Config()
    for value in ("float64", wf.float64, np.float64, np.dtype("float64")):
        settings.default_float = "float32"
        settings.default_float = value
        assert settings.default_float == "float64"


def test_setting_that_does_not_exist_is_named():
    with pytest.raises(AttributeError, match="no setting 'eager_kernel'; did you mean 'eager_ker"):
        wf.config.eager_kernel = False
    with pytest.raises(AttributeError, match="there are compiler_process"):
        wf.config.zzz = False


@pytest.mark.parametrize("name", ["eager_kernels", "compiler_process"])
@pytest.mark.parametrize("text", ["0", "False", " no ", "off"])
def test_environment_switches_off(monkeypatch, text, name):
    monkeypatch.setenv(f"WEFT_{name.upper()}", text)
    assert getattr(Config(), name) is False
    monkeypatch.setenv(f"WEFT_{name.upper()}", "1")
    assert getattr(Config(), name) is True
