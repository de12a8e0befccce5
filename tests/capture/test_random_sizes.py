"""Random functions of the sizes of their arguments: jitted they do what they do eagerly."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import weft as wf

COMPARISONS = ("<", ">", "==", "!=", "<=", ">=")
COUNT, LONG_COUNT = 3, 300


class Writer:
    """Writes the text of a random function `f(x, y)` that computes with sizes, and branches."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = ["n", "k", "m"]
        self.lines = ["def f(x, y):", "    n, k = x.shape", "    m, t, out = y.shape[0], x, []"]

    def text(self) -> str:
        """Return the text, which ends in gradients of what was computed."""
        for _ in range(self.random.randint(3, 8)):
            self._statement(1)
        self.lines += [
            "    w.grad = None",
            "    loss = (t * w).mean() + (w * w).sum() / n",
            "    loss.backward()",
            "    return loss.detach(), w.grad, out",
        ]
        return "\n".join(self.lines)

    def _statement(self, depth: int) -> None:
        indent = "    " * depth
        kind = self.random.choice([*STATEMENTS, "assign", "assign", "if"])
        if kind == "assign":
            name = f"v{len(self.lines)}"
            self.lines.append(f"{indent}{name} = {self._number(2)}")
            self.names += [name] if depth == 1 else []
        elif kind == "if":
            self.lines.append(f"{indent}if {self._question(1)}:")
            self._statement(depth + 1)
        else:
            self.lines.append(indent + STATEMENTS[kind].replace("NUMBER", self._number(2)))

    def _number(self, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.2:
            return self.random.choice([*self.names, str(self.random.randint(1, 5))])
        a, b = self._number(depth - 1), self._number(depth - 1)
        return self.random.choice(NUMBERS).format(a=a, b=b, question=self._question(depth - 1))

    def _question(self, depth: int) -> str:
        return f"{self._number(depth)} {self.random.choice(COMPARISONS)} {self._number(depth)}"


NUMBERS = (
    "({a} + {b})",
    "({a} - {b})",
    "({a} * {b})",
    "({a} // ({b} or 1))",
    "({a} % ({b} or 1))",
    "({a} / ({b} or 1))",
    "min({a}, {b})",
    "max({a}, {b})",
    "abs({a})",
    "({a}) ** 2",
    "(-{a})",
    "divmod({a}, ({b} or 1))[1]",
    "({a} if {question} else {b})",
)
STATEMENTS = {
    "shorten": "t = t[: max(1, t.shape[0] - 1)]",
    "scale": "t = t * (NUMBER + 0.5)",
    "count": "t = t + wf.arange(t.shape[0]).reshape(-1, 1) / t.shape[0]",
    "join": "t = wf.cat([t, t[:1]])",
    "reshape": "t = t.reshape(t.shape[0] * t.shape[1]).reshape(t.shape[0], -1)",
    "mean": "out.append(t.mean(0) * NUMBER)",
    "mask": "out.append(t[t[:, 0] > 0].sum(0))",
    "number": "out.append(NUMBER)",
    "last": "out.append(t[t.shape[0] - 1])",
    "zeros": "out.append(wf.zeros((t.shape[0], 2)) + NUMBER)",
    "outer": "out.append(t.sum(1).reshape(-1, 1) * y)",
    "keep": "state['s'] = state['s'] + NUMBER",
}


def made(text: str) -> dict[str, Any]:
    """Return the names of a program that has just begun."""
    names = {"wf": wf, "state": {"s": 0}, "w": wf.tensor([1.0, 2.0, 3.0], requires_grad=True)}
    exec(compile(text, "<random sizes>", "exec"), names)
    return names


def seen(result: Any) -> list[Any]:
    """Return what can be seen of a result, in order."""
    if isinstance(result, dict):
        return seen(list(result.values()))
    if isinstance(result, (list, tuple)):
        return [item for part in result for item in seen(part)]
    return [result]


def check_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, wf.Tensor):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert all(type(size) is int for size in found.shape)
        np.testing.assert_allclose(
            found.detach().numpy(), expected.detach().numpy(), rtol=1e-3, atol=1e-3
        )
    else:
        assert found == pytest.approx(expected, rel=1e-12)


def outcome(function: Any, *args: Any) -> Any:
    """Return the result of a call, or the class of its error."""
    try:
        return function(*args)
    except Exception as error:  # the same as eager code's, whatever it is
        return type(error).__name__


def check(seed: int) -> None:
    text, draw = Writer(seed).text(), random.Random(seed)
    eager, compiled = made(text), made(text)
    jitted = wf.jit(compiled["f"])
    for n, m in [(draw.randint(1, 9), draw.randint(1, 9)) for _ in range(7)]:
        rng = np.random.default_rng(10 * n + m)
        x, y = (rng.normal(size=shape).astype(np.float32) for shape in ((n, 3), (m,)))
        expected = outcome(eager["f"], wf.tensor(x), wf.tensor(y))
        found = outcome(jitted, wf.tensor(x), wf.tensor(y))
        all_found, all_expected = seen([found, compiled["state"]]), seen([expected, eager["state"]])
        for pair in zip(all_found, all_expected, strict=True):
            check_same(*pair)


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_functions_of_sizes(seed):
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(COUNT, LONG_COUNT))
def test_many_random_functions_of_sizes(seed):
    check(seed)
