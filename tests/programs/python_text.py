"""Random Python programs that train: source text from a seed, for what runs Python itself.

The text defines a module, an optimizer, global numbers, lists and dictionaries, `step(x, n)` to be
called with a vector and a number, and `outside(call)`, what happens between two calls. It expects
`jit` to be defined. Values stay small, so that errors of rounding do too, and every branch on a
value compares with a number that no value meets by accident.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from .python_expressions import SIZE, Expressions, Names

CALLS = 7

_HEAD = """\
import math
import random

import weft as wf

SCALE = {scale}
STEPS = 0
LOG = []
TABLE = {{"a": {a}, "b": 2, "h": wf.zeros(({size},))}}
MEMORY = wf.zeros(({size},))
"""

_MODULE = """\
class Net(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = wf.nn.Linear({size}, {size})
        self.extra = {extra}
        self.gain, self.count, self.last = 0.5, 0, None
        self.register_buffer("mean", wf.zeros(({size},)))
"""

_EXTRAS = ("wf.nn.Tanh()", "wf.nn.Dropout(0.3)", "wf.nn.Linear(4, 4)", "wf.nn.Identity()")
_OPTIMIZERS = (
    "wf.optim.SGD(net.parameters(), lr=0.1)",
    "wf.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)",
    "wf.optim.Adam(net.parameters(), lr=0.01)",
    "wf.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.1)",
)
_OUTSIDE = (
    "SCALE = 0.75",
    "SCALE = SCALE + 1",
    "STEPS = 0",
    "net.gain = 0.25",
    "net.gain = net.gain * 2",
    "net.eval()",
    "net.train()",
    "LOG.clear()",
    'TABLE["a"] = 0.5',
    'TABLE["new"] = 1.5',
    "MEMORY.zero_()",
    'optimizer.param_groups[0]["lr"] = 0.02',
    "optimizer.zero_grad()",
    "net.layer = wf.nn.Linear(4, 4)",
    "net.layer.requires_grad_(False)",
    "net.layer.requires_grad_(True)",
    "wf.manual_seed(7)",
)


def write_program(seed: int) -> str:
    """Return the text of a program."""
    return Writer(random.Random(seed)).program()


def draw_calls(seed: int) -> list[tuple[int, Any]]:
    """Return for each call the seed and the number that it gets: some of them more than once."""
    rng = random.Random(f"calls of {seed}")
    numbers = rng.choice(([1, 2], [0.5, 1.5], [1, 1.0, True], [0, 1, 2, 3], [2]))
    return [(rng.randrange(4), rng.choice(numbers)) for _ in range(CALLS)]


class Writer(Expressions):
    """Writes one program; `outside` is what may happen between two calls."""

    outside = _OUTSIDE

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.lines: list[str] = []
        self.indent = 0
        self.loops = 0  # how many are open around the place
        self.statements = self._table()

    # -- the whole -----------------------------------------------------------------------------

    def program(self) -> str:
        rng = self.rng
        self.lines += self.head()
        self._helper()
        self.lines += _MODULE.format(size=SIZE, extra=rng.choice(_EXTRAS)).splitlines()
        self._method("forward(self, x)", Names(["x"], [], ["self.gain"]), ["self.extra(x)"])
        self.lines += ["net = Net()", f"optimizer = {rng.choice(_OPTIMIZERS)}"]
        self._step()
        self._outside()
        return "\n".join(self.lines) + "\n"

    def head(self) -> list[str]:
        scale = self.rng.choice(("2.0", "0.5", "1"))
        return _HEAD.format(scale=scale, a=self.literal(), size=SIZE).splitlines()

    def _helper(self) -> None:
        if self.rng.random() < 0.2:
            self.write("@jit")
        self.write("def helper(v, k):")
        with self.deeper(Names(["v"], [], ["k"])):
            self.block(3)
            self.write(f"return {self.vector()}")
        self.has_helper = True

    def _method(self, signature: str, names: Names, vectors: list[str]) -> None:
        self.indent = 1
        self.write(f"def {signature}:")
        with self.deeper(names):
            self.write("x = self.layer(x) * self.gain")
            if self.rng.random() < 0.5:
                self.write("self.count += 1")
            if self.rng.random() < 0.3:
                self.write("self.last = x.detach()")
            if self.rng.random() < 0.3:
                self.write("self.mean = 0.9 * self.mean + 0.1 * x.detach()")
            if self.rng.random() < 0.4:
                self.write(f"if {self.condition()}:")
                with self.deeper():
                    self.write(f"return {self.vector()}.tanh()")
            self.write(f"return {self.rng.choice(vectors)}.tanh()")
        self.indent = 0

    def _step(self) -> None:
        self.write("@jit")
        self.write("def step(x, n):")
        with self.deeper(Names(["x", "MEMORY", 'TABLE["h"]'], [], ["n", "SCALE", 'TABLE["a"]'])):
            self.write("global SCALE, STEPS")
            self.write("s = x.sum()")
            self.names.scalars.append("s")
            self.block(self.rng.randint(4, 9))
            self.write(f"return {self.result()}")

    def _outside(self) -> None:
        self.write("def outside(call):")
        with self.deeper():
            self.write("global SCALE, STEPS")
            for call in sorted(self.rng.sample(range(2, CALLS), self.rng.randint(0, 3))):
                self.write(f"if call == {call}:")
                with self.deeper():
                    self.write(self.rng.choice(self.outside))

    # -- places --------------------------------------------------------------------------------

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    @contextmanager
    def deeper(self, names: Names | None = None):
        """Write a block one level further in, whose new names end with it."""
        outer, self.names = self.names, names or self.names.copy()
        self.indent += 1
        yield
        self.indent -= 1
        # Now and then what was defined in a block is used behind it, bound or not.
        if names is None and self.rng.random() < 0.08:
            return
        self.names = outer

    def block(self, count: int) -> None:
        for _ in range(count):
            makers = [m for m, _ in self.statements]
            weights = [w for _, w in self.statements]
            self.rng.choices(makers, weights)[0]()

    def _table(self) -> list[tuple[Callable[[], None], float]]:
        """Return the kinds of statements, and how often each is written."""
        return [
            (self.new_vector, 6),
            (self.new_scalar, 5),
            (self.new_number, 4),
            (self.branch, 4),
            (self.loop, 2),
            (self.while_loop, 1),
            (self.leave_loop, 2),
            (self.write_in_place, 3),
            (self.effect, 5),
            (self.train, 2),
            (self.collect, 1),
            (self.unrecorded, 1),
            (self.attempt, 1),
            (self.leave, 0.5),
        ]

    # -- statements ----------------------------------------------------------------------------

    def new_vector(self) -> None:
        name = self.name("v")
        self.write(f"{name} = {self.vector()}")
        self.names.vectors.append(name)

    def new_scalar(self) -> None:
        name = self.name("s")
        self.write(f"{name} = {self.scalar()}")
        self.names.scalars.append(name)

    def new_number(self) -> None:
        name = self.name("k")
        self.write(f"{name} = {self.number()}")
        self.names.numbers.append(name)

    def branch(self) -> None:
        if self.indent > 4:
            return
        self.write(f"if {self.condition()}:")
        with self.deeper():
            self.block(self.rng.randint(1, 2))
            self.write("pass")
        if self.rng.random() < 0.5:
            self.write("else:")
            with self.deeper():
                self.block(self.rng.randint(1, 2))
                self.write("pass")

    def loop(self) -> None:
        if self.loops >= 2 or self.indent > 4:
            return
        index = self.name("i")
        over = self.rng.choice(("range(3)", "range(2)", "range(int(n) + 1)", "range(len(LOG) % 3)"))
        if over.startswith("range(int") and "n" not in self.names.numbers:
            over = "range(4)"
        carried = self.name("v")
        self.write(f"{carried} = {self.vector()}")
        self.names.vectors.append(carried)
        self.write(f"for {index} in {over}:")
        self._body(carried, index)

    def while_loop(self) -> None:
        if self.loops >= 2 or self.indent > 4:
            return
        count, carried = self.name("i"), self.name("v")
        self.write(f"{count}, {carried} = 0, {self.vector()}")
        self.names.vectors.append(carried)
        self.write(f"while {count} < 3 and {carried}.abs().max() > {self.threshold()}:")
        self.write(f"    {count} += 1")
        self._body(carried, count)

    def _body(self, carried: str, index: str) -> None:
        self.loops += 1
        with self.deeper():
            self.names.numbers.append(index)
            self.block(self.rng.randint(1, 2))
            self.write(f"{carried} = ({carried} * 0.5 + {self.vector()}).tanh()")
        self.loops -= 1

    def leave_loop(self) -> None:
        if self.loops:
            self.write(f"if {self.condition()}:")
            self.write("    " + self.rng.choice(("break", "continue")))

    def write_in_place(self) -> None:
        name = self.name("v")
        self.write(f"{name} = {self.vector()}.detach().clone()")
        self.names.vectors.append(name)
        at = self.rng.choice(("0", "-1", "1:3", "int(abs(n)) % 4"))
        if "n" not in self.names.numbers:
            at = "2"
        self.write(
            self.rng.choice(
                (
                    f"{name}[{at}] = {self.factor()}",
                    f"{name} += {self.vector()}.detach()",
                    f"{name}.mul_({self.factor()})",
                    f"{name}[{name} < 0] = 0.0",
                )
            )
        )

    def effect(self) -> None:
        """Change something that outlives the call."""
        if "n" not in self.names.numbers:
            return  # only `step` declares the globals
        self.write(
            self.rng.choice(
                (
                    f"LOG.append({self.scalar()}.item())",
                    f"LOG.append({self.vector()}.detach())",
                    f"LOG.append({self.number()})",
                    "STEPS += 1",
                    "STEPS += 1",
                    f"SCALE = math.tanh({self.number()}) + 1",
                    f'TABLE["a"] = {self.factor()}',
                    'TABLE["b"] += 1',
                    f'TABLE["h"] = ({self.vector()} + TABLE["h"]).detach() * 0.5',
                    f'TABLE[f"k{{STEPS % 3}}"] = {self.scalar()}.detach()',
                    f"MEMORY.add_({self.vector()}.detach() * 0.1)",
                    f"MEMORY[0] = {self.scalar()}.detach()",
                    "net.count += 1",
                    f"net.gain = 0.5 + 0.1 * math.tanh({self.number()})",
                    f"net.last = {self.vector()}.detach()",
                    'optimizer.param_groups[0]["lr"] *= 0.9',
                    self.rng.choice(("pass", "pass", 'print("step", STEPS)', "random.random()")),
                )
            )
        )

    def train(self) -> None:
        if "n" not in self.names.numbers or self.loops:
            return
        name = self.name("s")
        if self.rng.random() < 0.8:
            self.write("optimizer.zero_grad()")
        self.write(f"{name} = (net({self.vector()}.detach()) - {self.factor()}).square().mean()")
        self.write(f"{name}.backward()")
        if self.rng.random() < 0.3:
            self.write("wf.optim.clip_grad_norm_(net.parameters(), 0.5)")
        if self.rng.random() < 0.8:
            self.write("optimizer.step()")
        self.write(f"{name} = {name}.detach()")
        self.names.scalars.append(name)

    def collect(self) -> None:
        items, name = self.name("items"), self.name("v")
        inner = self.name("i")
        self.write(f"{items} = []")
        self.write(f"for {inner} in range(3):")
        with self.deeper():
            self.names.numbers.append(inner)
            self.write(f"{items}.append({self.vector()} * {inner})")
        self.write(f"{name} = wf.stack({items}).mean(axis=0)")
        self.names.vectors.append(name)

    def unrecorded(self) -> None:
        self.write("with wf.no_grad():")
        with self.deeper():
            self.block(1)
            self.write("pass")

    def attempt(self) -> None:
        if self.indent > 4:
            return
        self.write("try:")
        with self.deeper():
            self.block(1)
            self.write(f"if {self.condition()}:")
            self.write('    raise ValueError("caught")')
        self.write("except ValueError as error:")
        self.write("    LOG.append(str(error))")

    def leave(self) -> None:
        self.write(f"if {self.condition()}:")
        leaving = (f"return {self.vector()}", 'raise RuntimeError("left")')
        self.write("    " + self.rng.choices(leaving, (3, 1))[0])
