"""detect_anomaly names the operation and line of the first NaN."""

import sys

import numpy as np
import pytest

import weft as wf
from tests.opaque import no_copies, opaque  # noqa: F401  (opaque is a fixture)
from weft.core.errors import AnomalyError, GradientError


def here(offset=0):
    """Return this file's name and the caller's line, as messages show them."""
    return f"test_anomaly.py:{sys._getframe(1).f_lineno + offset}"


def leaf(*values):
    return wf.tensor(np.array(values), requires_grad=True)


def test_forward_names_operation_and_line():
    x = wf.tensor([1.0, -1.0])
    with wf.detect_anomaly(), pytest.raises(AnomalyError) as caught:
        wf.log(x)
    message = str(caught.value)
    assert "log made the first NaN" in message
    assert "float32[2]" in message
    assert here(-4) in message


def test_nan_in_the_input_is_not_the_operation_s_fault():
    x = wf.tensor([float("nan")])
    with wf.detect_anomaly():
        assert np.isnan((x * 2.0).item())


def test_nothing_is_raised_outside():
    assert np.isnan(wf.log(wf.tensor(-1.0)).item())


def test_backward_names_operation_and_line():
    x = leaf(0.0)
    y = wf.sqrt(x) * 0.0
    where = here(-1)
    with wf.detect_anomaly(), pytest.raises(AnomalyError) as caught:
        y.backward()
    assert "the backward of sqrt made the first NaN" in str(caught.value)
    assert where in str(caught.value)


def test_backward_through_several_outputs():
    x = leaf(0.0, 1.0)
    a, b = wf.split(wf.sqrt(x), 1)
    with wf.detect_anomaly(), pytest.raises(AnomalyError, match="sqrt"):
        wf.sum(a * 0.0 + b).backward()


def test_clean_programs_pass():
    x = leaf(1.0, 2.0)
    with wf.detect_anomaly():
        y = wf.sum(wf.exp(x) * x)
        y.backward(create_graph=True)
        wf.sum(x.grad).backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_contexts_nest_and_restore():
    with wf.detect_anomaly():
        with wf.detect_anomaly():
            pass
        with pytest.raises(AnomalyError):
            wf.log(wf.tensor(-1.0))
    wf.log(wf.tensor(-1.0))


def test_an_anomaly_is_a_gradient_and_an_arithmetic_error():
    assert issubclass(AnomalyError, GradientError)
    assert issubclass(AnomalyError, ArithmeticError)


def test_inside_a_jvp():
    with wf.detect_anomaly(), pytest.raises(AnomalyError, match="log"):
        wf.jvp(wf.log, (np.array([-1.0]),), (np.array([1.0]),))


def test_on_a_device(opaque):  # noqa: F811  (the fixture)
    with wf.detect_anomaly():  # begun while everything is on the CPU
        x = wf.tensor([0.0, 4.0], device="opaque:0", requires_grad=True)
        with no_copies(out=2):  # an answer for each operation
            y = wf.sqrt(x).sum()
        assert y.item() == 2
        with pytest.raises(ArithmeticError, match=r"log made the first NaN: inputs float32\[2\]"):
            wf.log(x - 1)
        with pytest.raises(ArithmeticError, match="the backward of sqrt made the first NaN"):
            (wf.sqrt(x) * 0).sum().backward()
