"""Functions of three numbers with nested branches, loops and early exits, drawn from a seed."""

from __future__ import annotations

import random

VARIABLES = ("x", "y", "z")


def function_text(seed: int) -> str:
    """Return the text of a module with a function `drawn(x, y, z)`."""
    return "import weft as wf\n\n\n" + "\n".join(_Writer(random.Random(seed)).function()) + "\n"


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.loops = 0

    def function(self) -> list[str]:
        body = self.block(3, in_loop=False)
        return ["def drawn(x, y, z):", *body, "    return wf.sin(x) + y * wf.cos(z)"]

    def block(self, depth: int, *, in_loop: bool) -> list[str]:
        count = self.rng.randint(1, 3)
        lines = [x for _ in range(count) for x in self.statement(depth, in_loop=in_loop)]
        return ["    " + line for line in lines]

    def statement(self, depth: int, *, in_loop: bool) -> list[str]:
        kinds = [self.assignment, self.assignment]
        if depth:
            kinds += [self.branch, self.branch, self.counted, self.repeated, self.pair]
        kind = self.rng.choice(kinds)
        return kind(depth, in_loop)

    def assignment(self, depth: int, in_loop: bool) -> list[str]:
        target = self.rng.choice(VARIABLES)
        operator = self.rng.choice(["=", "=", "+="])
        return [f"{target} {operator} {self.expression()}"]

    def pair(self, depth: int, in_loop: bool) -> list[str]:
        a, b = self.rng.sample(VARIABLES, 2)
        return [f"{a}, {b} = {b}, {self.expression()}"]

    def expression(self) -> str:
        a, b = self.rng.choice(VARIABLES), self.rng.choice(VARIABLES)
        forms = ["wf.sin({a})", "0.5 * {a} + {b}", "{a} - 0.3 * {b}", "{a} / (1 + {b} * {b})"]
        forms += [
            "wf.tanh({a} * {b})",
            "{a} if {a} > {b} else 0.1 * {b}",
            "max({a}, 0.2 + 0 * {b})",
        ]
        forms += ["0.7 + 0 * {a}"]
        return self.rng.choice(forms).format(a=a, b=b)

    def condition(self) -> str:
        a, b = self.rng.choice(VARIABLES), self.rng.choice(VARIABLES)
        forms = ["{a} > {b}", "{a} < 0.4", "{a} > 0 and {b} < 1", "not {a} > 0.1 or {b} > 0.5"]
        forms += ["-0.5 < {a} < 0.8"]
        return self.rng.choice(forms).format(a=a, b=b)

    def branch(self, depth: int, in_loop: bool) -> list[str]:
        lines = [f"if {self.condition()}:", *self.block(depth - 1, in_loop=in_loop)]
        ending = self.rng.random()
        if in_loop and ending < 0.4:
            lines.append("    " + self.rng.choice(["break", "continue", "break"]))
        elif ending > 0.9:
            lines.append(f"    return {self.expression()}")
        if self.rng.random() < 0.5:
            lines += ["else:", *self.block(depth - 1, in_loop=in_loop)]
        return lines

    def counted(self, depth: int, in_loop: bool) -> list[str]:
        name = self._name("i")
        head = f"for {name} in range({self.rng.choice(['2', '3', '1, 4', '3, 0, -1'])}):"
        target = self.rng.choice(VARIABLES)
        use = f"    {target} = 0.9 * {target} + 0.1 * {name}"
        return [head, use, *self.block(depth - 1, in_loop=True)]

    def repeated(self, depth: int, in_loop: bool) -> list[str]:
        name = self._name("k")
        tested = self.rng.choice(VARIABLES)
        return [
            f"{name} = 0",
            f"while {name} < {self.rng.randint(2, 4)} and {tested} < 3:",
            f"    {name} += 1",
            *self.block(depth - 1, in_loop=True),
        ]

    def _name(self, kind: str) -> str:
        self.loops += 1
        return f"{kind}{self.loops}"
