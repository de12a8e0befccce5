"""What files of special functions share: few samples, since kernels are tested where they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...core.op import F, Op
from ...core.samples import Sample, Sampler


def constant_to_derivatives(record: Op) -> None:
    """Give every input of an operator the gradient zero."""
    for name in record.inputs:
        record.vjp(name)(_zeros)


def _zeros(g):
    return F.zeros_like(g)


def few_samples(record: Op, *, low: float, high: float, grad: int = 2) -> None:
    """Give an operator of one operand samples from an interval, and of exceptional values."""

    def samples(s: Sampler) -> Iterator[Sample]:
        yield Sample(s.real(low=low, high=high), grad=grad)
        yield Sample(s.real(4, 3, low=low, high=high).T, grad=grad, label="non-contiguous")
        yield Sample(s.real(0, 2, low=low, high=high))
        yield Sample(s.integers(3, low=1), label="integers")
        yield Sample(np.array([0.0, -0.0, np.inf, -np.inf, np.nan]), grad=0, label="special values")

    record.samples(samples)


def pair_samples(
    record: Op, draw: Callable[..., Any], draw2: Callable[..., Any], grad: int = 2
) -> None:
    """Give an operator of two operands samples of two sources."""

    def samples(s: Sampler) -> Iterator[Sample]:
        yield Sample(draw(s), draw2(s), grad=grad)
        yield Sample(draw(s, 2, 1), draw2(s, 3), grad=grad, label="broadcast")
        yield Sample(draw(s, 0), draw2(s, 0), grad=grad)

    record.samples(samples)
