"""Random expressions of Python programs: vectors, scalars, numbers and conditions, as text."""

from __future__ import annotations

import random

SIZE = 4  # of all vectors


class Names:
    """What can be used at one place of the text, by kind."""

    def __init__(self, vectors: list[str], scalars: list[str], numbers: list[str]) -> None:
        self.vectors, self.scalars, self.numbers = vectors, scalars, numbers

    def copy(self) -> Names:
        return Names(list(self.vectors), list(self.scalars), list(self.numbers))


class Expressions:
    """Writes expressions from the names that can be used at a place of the text."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.made = 0
        self.names = Names([], [], [])
        self.has_helper = False

    def name(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    def literal(self) -> str:
        return f"{self.rng.uniform(-1.5, 1.5):.3f}"

    def threshold(self) -> str:
        return f"{self.rng.uniform(0.05, 1.2):.4f}7"

    def vector(self, depth: int = 2) -> str:
        rng, pick = self.rng, self.rng.choice(self.names.vectors)
        if depth == 0 or rng.random() < 0.2:
            return pick
        a = self.vector(depth - 1)
        options = [
            f"({a} + {self.vector(depth - 1)}) * 0.5",
            f"({a} * {self.factor()}).tanh()",
            f"{a}.{rng.choice(('sin', 'tanh', 'cos', 'neg', 'relu', 'sigmoid'))}()",
            f"wf.where({a} > {self.threshold()}, {a}, {pick} * 0.5)",
            f"({a} * {pick}).tanh()",
            f"wf.flip({a}, 0)",
        ]
        if self.has_helper:
            options += [f"helper({a}, {rng.choice(self.names.numbers)})"] if depth == 2 else []
        if "n" in self.names.numbers and depth == 2:
            options += [f"net({a})", f"{a} + 0.1 * wf.rand({SIZE})"]
        return f"({rng.choice(options)})"

    def scalar(self) -> str:
        reduction = self.rng.choice(("sum", "mean", "max", "min"))
        options = [f"{self.vector(1)}.{reduction}()", f"({self.vector(1)} ** 2).mean()"]
        if self.names.scalars:
            options.append(f"({self.rng.choice(self.names.scalars)} * {self.factor()}).tanh()")
        return self.rng.choice(options)

    def factor(self) -> str:
        """Return something small that vectors can be multiplied by."""
        options = [self.literal(), f"math.tanh({self.rng.choice(self.names.numbers)})"]
        if self.names.scalars:
            options.append(f"{self.rng.choice(self.names.scalars)}.tanh()")
        return self.rng.choice(options)

    def number(self) -> str:
        pick = self.rng.choice(self.names.numbers)
        options = [
            f"{pick} * 0.5 + 1",
            f"min({pick}, 3) - 1",
            "len(LOG)",
            "STEPS % 4",
            'TABLE["b"] % 5',
            f"{self.literal()} if {self.condition()} else 1",
            f"{self.vector(1)}.mean().item()",
            f"int({self.vector(1)}.argmax())",
        ]
        return self.rng.choice(options)

    def condition(self) -> str:
        pick = self.rng.choice(self.names.numbers)
        options = [
            f"{self.scalar()} > {self.threshold()}",
            f"{self.scalar()} < -{self.threshold()}",
            f"({self.vector(1)} > {self.threshold()}).any()",
            f"{pick} > 1",
            f"{pick} == 1",
            "STEPS % 3 == 0",
            "len(LOG) > 4",
            "net.training" if "n" in self.names.numbers else f"{pick} < 2",
            f"not {self.scalar()} > {self.threshold()} and {pick} < 2",
        ]
        return self.rng.choice(options)

    def result(self) -> str:
        options = (
            self.vector(),
            f"{self.vector()}, {self.scalar()}",
            f'{{"v": {self.vector()}, "k": {self.number()}, "s": {self.scalar()}.item()}}',
            f"[{self.vector()}, ({self.number()}, None)], STEPS",
            "None",
        )
        return self.rng.choice(options)
