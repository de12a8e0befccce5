"""What functions reach without naming it: it is part of what plans depend on."""

import functools
from abc import ABC, abstractmethod

import numpy as np
import pytest

import weft as wf


def number(x):
    return wf.tensor(float(x))


def values(results):
    return [float(x) for x in results]


factor = {"is": 1.0}


@pytest.fixture(autouse=True)
def _as_it_was():
    factor["is"] = 1.0


class Scaled(wf.nn.Module):
    """A module whose `forward` no code names: it is called."""

    def __init__(self, inner=None):
        super().__init__()
        self.power = 2.0
        self.inner = inner

    def forward(self, x):
        return (x if self.inner is None else self.inner(x)) * self.power * factor["is"]


class Mixed:
    def forward(self, x):
        return self.inner(x) * self.power * self.more


class MixedModule(Mixed, Scaled):
    more = 2.0


class Halved(wf.distributions.Normal):
    """Something that a class of the library's calls by its own name."""

    share = 2.0

    def log_prob(self, value):
        return value / self.share


@pytest.mark.parametrize("read", [False, True])
def test_what_modules_do_when_they_are_called(read):
    net = MixedModule(Scaled())

    def call(x):
        y = net(number(x))
        return y + 1.0 if read and y > 0 else y

    def unchanged():
        pass

    def patched(y):
        return y * 10.0

    changes = [
        unchanged,
        lambda: setattr(net, "power", 3.0),
        lambda: setattr(net.inner, "power", 5.0),
        lambda: factor.update({"is": 7.0}),
        lambda: setattr(MixedModule, "more", 3.0),
        lambda: setattr(net.inner, "forward", patched),
    ]
    function = wf.batched(call)
    for change in changes:
        change()
        for _ in range(3):
            assert values(function([1, 2])) == values(map(call, [1, 2]))
        assert function.plan().stats()["planned"] == 2
    MixedModule.more = 2.0


def test_methods_that_a_library_calls():
    chosen = Halved(0.0, 1.0)
    independent = wf.distributions.Independent(chosen, 0)

    def call(x):
        return independent.log_prob(number(x))

    function = wf.batched(call)
    for share in (2.0, 2.0, 4.0):
        Halved.share = share
        assert values(function([1, 2])) == [1.0 / share, 2.0 / share]
    Halved.share = 2.0


def test_functions_of_which_parts_are_changed():
    """As notebooks do that load changed files anew."""

    def scaled(x, scale=2.0, *, more=1.0):
        return number(x) * scale * more

    def other(x, scale, *, more):
        return number(x) + scale

    def call(x):
        return scaled(x)

    function = wf.batched(call)
    changes = [
        lambda: setattr(scaled, "__defaults__", (3.0,)),
        lambda: scaled.__kwdefaults__.update(more=4.0),
        lambda: setattr(scaled, "__kwdefaults__", {"more": 5.0}),
        lambda: setattr(scaled, "__code__", other.__code__),
    ]
    for change in changes:
        for _ in range(2):
            assert values(function([1, 2])) == values(map(call, [1, 2]))
        assert function.plan().stats()["planned"] == 2
        change()
        assert values(function([1, 2])) == values(map(call, [1, 2]))


@pytest.mark.parametrize("is_cell", [False, True])
def test_models_that_are_cast(is_cell):
    net = wf.nn.Linear(64, 64)
    layer = wf.cell(net) if is_cell else net

    def call(x):
        h = wf.tanh(layer(wf.ones(64, dtype=net.weight.dtype) * float(x)))
        return layer(h).sum() if h.sum() > 0 else h.sum()

    function = wf.batched(call)
    for dtype in (wf.float32, wf.float64, wf.float32):
        net.to(dtype)
        for _ in range(3):
            results = function([1, -2, 3])
            assert {x.dtype for x in results} == {dtype}
            np.testing.assert_allclose(values(results), values(map(call, [1, -2, 3])), rtol=1e-4)
        assert function.plan().stats()["planned"] == 3


class Helper:
    """Something that is given with the examples, and can be called."""

    def __call__(self, x):
        return x * factor["is"]


@pytest.mark.parametrize("given", [Helper(), Scaled(Scaled()), lambda x: x * factor["is"]])
def test_methods_of_what_is_given_with_examples(given):
    def call(x, helper):
        return helper(number(x))

    function = wf.batched(call)
    for power in (1.0, 3.0):
        factor["is"] = power
        for _ in range(3):
            assert values(function([1, 2], given)) == [float(call(x, given)) for x in [1, 2]]
        assert function.plan().stats()["planned"] == 2
    factor["is"] = 1.0


class Looking:
    """A descriptor of the user's."""

    def __get__(self, held, kind=None):
        return factor["is"]


class Kind(type):
    @property
    def power(cls):
        return factor["is"]


class Many(metaclass=Kind):
    looked = Looking()

    def given(self, times):
        return factor["is"] * times

    twice = functools.partialmethod(given, 2.0)

    @functools.cached_property
    def kept(self):
        return factor["is"] if self.more else 1.0

    @functools.singledispatchmethod
    def told(self, x):
        return 1.0

    @told.register
    def _(self, x: int):
        return factor["is"]

    def __init__(self):
        self.more = True
        self.cell = Answering()


class Answering:
    def __getattr__(self, name):
        return factor["is"]


@functools.singledispatch
def told(x):
    return 1.0


@told.register
def _(x: int):
    return factor["is"]


many = Many()
HIDDEN = {
    "a descriptor": lambda x: number(x) * many.looked,
    "a class of classes": lambda x: number(x) * Many.power,
    "a part of a method": lambda x: number(x) * many.twice(),
    "a property that is kept": lambda x: number(x) * many.kept,
    "a method by class": lambda x: number(x) * many.told(x),
    "a function by class": lambda x: number(x) * told(x),
    "an answer to any name": lambda x: number(x) * many.cell.anything,
}


@pytest.mark.parametrize("name", HIDDEN)
def test_code_that_is_reached_in_other_ways(name):
    call = HIDDEN[name]
    function = wf.batched(call)
    for power in (1.0, 3.0, 1.0):
        factor["is"] = power
        many.__dict__.pop("kept", None)
        for _ in range(3):
            assert values(function([1, 2])) == values(map(call, [1, 2]))
        assert function.plan().stats()["planned"] == 2
    many.__dict__.pop("kept", None)


class Abstract(ABC):
    @abstractmethod
    def scaled(self, x): ...


class Concrete(Abstract):
    def scaled(self, x):
        return x * factor["is"]


def test_classes_that_are_abstract():
    concrete = Concrete()
    function = wf.batched(lambda x: concrete.scaled(number(x)))
    for power in (1.0, 3.0):
        factor["is"] = power
        for _ in range(2):
            assert values(function([1, 2])) == [power, 2 * power]
        assert function.plan().stats()["planned"] == 2


class Monitor:
    """What somebody looks at between calls: code writes to it only."""

    last = None


def test_attributes_that_code_writes_are_written_each_time():
    monitor = Monitor()
    monitor.last = None

    def watched(x):
        monitor.last = x
        return number(x)

    function = wf.batched(watched)
    for _ in range(4):
        monitor.last = None
        function([1, 2])
        assert monitor.last == 2
    monitor.last = 2
    single = wf.batched(watched)
    for _ in range(3):
        single([2])
    assert single.plan().stats()["planned"] == 1  # nothing changes
