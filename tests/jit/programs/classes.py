"""Objects of users: methods, properties, inheritance, modules that are jitted themselves."""

from __future__ import annotations

import enum
from typing import ClassVar

import weft as wf
from tests.jit.harness import Call, Case, program, rows

F = wf.nn.functional


class Mode(enum.Enum):
    """What a step does."""

    DOUBLE = 2
    TRIPLE = 3


def inputs(count=4):
    return [(rows(2, 3, seed=s),) for s in range(count)]


@program()
def jitted_module(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Dropout(0.3), wf.nn.Linear(4, 1))
    fast = jit(net)
    return Case(fast, inputs(), {"net": net})


@program()
def jitted_module_trained_outside(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 4, bias=False), wf.nn.BatchNorm1d(4), wf.nn.Linear(4, 1))
    fast = jit(net)
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        loss = fast(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Case(step, [(rows(6, 3, seed=s),) for s in range(4)], {"net": net, "fit": optimizer})


@program()
def jitted_method(jit):
    class Learner:
        def __init__(self):
            self.net, self.steps = wf.nn.Linear(3, 1), 0
            self.optimizer = wf.optim.SGD(self.net.parameters(), lr=0.1)

        @jit
        def step(self, x):
            self.steps += 1
            self.optimizer.zero_grad()
            loss = self.net(x).square().mean()
            loss.backward()
            self.optimizer.step()
            return loss

    learner = Learner()
    return Case(learner.step, inputs(), {"learner": learner})


@program()
def jitted_method_of_two_objects(jit):
    class Scaler:
        def __init__(self, scale):
            self.scale, self.calls = scale, 0

        @jit
        def __call__(self, x):
            self.calls += 1
            return x * self.scale

    two, three = Scaler(2.0), Scaler(3.0)
    return Case(lambda x: (two(x), three(x), two(x)), inputs(), {"two": two, "three": three})


@program()
def bound_method(jit):
    class Learner:
        def __init__(self):
            self.w = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)

        def loss(self, x):
            return (x * self.w).sum()

    learner = Learner()
    return Case(jit(learner.loss), inputs(), {"learner": learner})


@program()
def jitted_forward(jit):
    class Net(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = wf.nn.Linear(3, 3)

        @jit
        def forward(self, x):
            return self.layer(x).relu() if self.training else self.layer(x)

    net = Net()
    calls = [Call(*x, before=net.eval if i == 2 else None) for i, x in enumerate(inputs())]
    return Case(net, calls, {"net": net})


@program()
def class_method(jit):
    class Ops:
        factor: ClassVar[float] = 2.0

        @classmethod
        def scale(cls, x):
            return x * cls.factor

        @staticmethod
        def shift(x, by=1):
            return x + by

    @jit
    def step(x):
        return Ops.shift(Ops.scale(x), by=2)

    def change():
        Ops.factor = 5.0

    calls = [Call(*x, before=change if i == 2 else None) for i, x in enumerate(inputs())]
    return Case(step, calls)


@program()
def properties(jit):
    class Schedule:
        def __init__(self):
            self.steps = 0

        @property
        def rate(self):
            return 0.5**self.steps

        @rate.setter
        def rate(self, value):
            self.steps = value

    schedule = Schedule()

    @jit
    def step(x):
        y = x * schedule.rate
        schedule.rate = schedule.steps + 1
        return y

    return Case(step, inputs(6), {"schedule": schedule})


@program()
def computed_attributes(jit):
    class Table:
        def __init__(self):
            self.values = {"alpha": 0.5}

        def __getattr__(self, name):
            try:
                return self.__dict__["values"][name]
            except KeyError:
                raise AttributeError(name) from None

    table = Table()

    @jit
    def step(x):
        return x * table.alpha if hasattr(table, "alpha") else x

    acts = (None, None, lambda: table.values.update(alpha=2.0), table.values.clear)
    return Case(step, [Call(*x, before=act) for x, act in zip(inputs(), acts, strict=True)])


@program()
def inheritance(jit):
    class Base(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = wf.nn.Linear(3, 3)
            self.uses = 0

        def forward(self, x):
            self.uses += 1
            return self.layer(x)

    class Derived(Base):
        def forward(self, x):
            return super().forward(x).tanh() + x

    net = Derived()
    return Case(jit(net.__call__), inputs(), {"net": net})


@program()
def counter_of_a_module(jit):
    class Warm(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.steps = wf.nn.Linear(3, 1), 0

        def forward(self, x):
            self.steps += 1
            scale = min(1.0, self.steps / 4)
            return self.layer(x) * scale

    net = Warm()
    return Case(jit(net), inputs(6), {"net": net})


@program()
def slots(jit):
    class Point:
        __slots__ = ("moved", "x")

        def __init__(self, x):
            self.x, self.moved = x, 0

        def move(self, by):
            self.x = self.x + by
            self.moved += 1

    point = Point(wf.zeros((2, 3)))

    @jit
    def step(x):
        point.move(x)
        return point.x * 2

    return Case(step, inputs(), {"point": point})


@program()
def class_attribute_counts(jit):
    class Counter:
        total = 0

    @jit
    def step(x):
        Counter.total += 1
        return x * 2

    return Case(step, inputs(), {"total": lambda: Counter.total})


@program()
def enum_argument(jit):
    @jit
    def step(x, mode):
        if mode is Mode.DOUBLE:
            return x * 2
        return x * mode.value

    modes = (Mode.DOUBLE, Mode.TRIPLE, Mode.DOUBLE, Mode.TRIPLE)
    return Case(step, [(rows(3), mode) for mode in modes])


@program()
def operators_of_a_user(jit):
    class Dual:
        def __init__(self, value, slope):
            self.value, self.slope = value, slope

        def __mul__(self, other):
            slope = self.value * other.slope + self.slope * other.value
            return Dual(self.value * other.value, slope)

    @jit
    def step(x):
        dual = Dual(x, wf.ones_like(x))
        cube = dual * dual * dual
        return cube.value, cube.slope

    return Case(step, inputs())


@program()
def object_made_inside(jit):
    class Result:
        def __init__(self, loss, tags):
            self.loss, self.tags = loss, tags

    @jit
    def step(x):
        return Result((x**2).mean(), ["square"])

    return Case(step, inputs())


@program()
def dictionary_of_modules(jit):
    heads = wf.nn.ModuleDict({"a": wf.nn.Linear(3, 1), "b": wf.nn.Linear(3, 2)})
    optimizer = wf.optim.Adam(heads.parameters(), lr=0.01)

    @jit
    def step(x, task):
        optimizer.zero_grad()
        loss = heads[task](x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    calls = [(rows(2, 3, seed=s), t) for s, t in enumerate("aabbab")]
    return Case(step, calls, {"heads": heads, "optimizer": optimizer})


@program()
def shared_layer(jit):
    class Siamese(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = wf.nn.Linear(3, 4)
            self.again = self.encode

        def forward(self, a, b):
            return F.cosine_similarity(self.encode(a), self.again(b))

    net = Siamese()

    @jit
    def step(a, b):
        net.zero_grad()
        loss = (1 - net(a, b)).mean()
        loss.backward()
        return loss

    calls = [(rows(2, 3, seed=s), rows(2, 3, seed=s + 5)) for s in range(3)]
    return Case(step, calls, {"net": net})


@program(captured=False)
def lazily_made_parameters(jit):
    net = wf.nn.Sequential(wf.nn.LazyLinear(4), wf.nn.ReLU(), wf.nn.LazyLinear(1))

    @jit
    def step(x):
        loss = net(x).square().mean()
        loss.backward()
        return loss

    return Case(step, inputs(), {"net": net})


@program(captured=False)
def module_made_inside(jit):
    @jit
    def step(x):
        layer = wf.nn.Linear(3, 2)
        return layer(x)

    return Case(step, inputs(3))


@program()
def class_counter_of_a_base(jit):
    class Base:
        total = 0

    class Derived(Base):
        pass

    thing = Derived()

    @jit
    def step(x):
        Base.total += 1
        return x * thing.total, Derived.total

    def hide():
        Derived.total = 7

    def own():
        thing.total = 9

    calls = [Call(rows(3), before=before) for before in (None, None, None, hide, None, own, None)]
    return Case(step, calls, {"total": lambda: Base.total})


@program()
def class_attribute_is_hidden(jit):
    class Base:
        rate = 2.0

    class Derived(Base):
        pass

    thing = Derived()

    def change_base():
        Base.rate = 3.0

    def hide():
        Derived.rate = 5.0

    def own():
        thing.rate = 7.0

    @jit
    def step(x):
        return x * thing.rate

    calls = [Call(rows(3), before=f) for f in (None, None, change_base, None, hide, None, own)]
    return Case(step, calls, {"held": lambda: dict(vars(thing))})
