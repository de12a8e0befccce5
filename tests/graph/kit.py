"""A small graph to misuse, and how to check that it objects."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft as wf
from weft.core.errors import WeftError

X = np.ones((2, 3), np.float32)


class Kit:
    """A small graph: x (n, 3) and the parameter w give out (n,) and loss ()."""

    def __init__(self):
        self.w = wf.nn.Parameter(wf.tensor([1.0, 2.0, 3.0]))
        self.v = wf.nn.Parameter(wf.tensor(1.0))
        self.graph = wf.Graph("model")
        with self.graph:
            self.x = wf.placeholder((None, 3), wf.float32, name="x")
            self.n = wf.placeholder((), wf.int64, name="count")
            self.flag = wf.placeholder((), wf.bool, name="flag")
            self.out = (self.x * self.w).sum(axis=1)
            self.out.name = "out"
            self.loss = self.out.sum()
            self.whole = self.n * 2
        self.session = wf.Session(self.graph)
        with wf.Graph("other") as self.other:
            self.foreign = wf.placeholder((), wf.float32, name="foreign") * 2

    def run(self, fetches, feeds=None):
        return self.session.run(fetches, feeds)

    def sgd(self, **options):
        return wf.optim.SGD([self.w], lr=0.1, **options)


def table(cases):
    return pytest.mark.parametrize(
        ("call", "error", "pattern"), [pytest.param(*case[1:], id=case[0]) for case in cases]
    )


def refuses(call, kit, error, pattern):
    with pytest.raises(error) as caught:
        call(kit)
    message = str(caught.value)
    assert re.search(pattern, message, re.DOTALL), message
    builtin = (AttributeError, OverflowError)
    assert isinstance(caught.value, (WeftError, *builtin)), type(caught.value)


def set_attribute(target, name, value):
    setattr(target, name, value)
