"""Random scripts that train: loops with all that Python has in them, as text, in PyTorch's words.

They print what they have in the end, so that two ways of running one can be compared.
"""

from __future__ import annotations

import random
from textwrap import indent

HEAD = """\
import torch

torch.manual_seed(3)
calls = 0
"""
HELPER = """\
def helper(v):
    global calls
    calls += 1
    return v * 0.5 + calls


"""
BEGIN = """\
w = torch.nn.Parameter(torch.tensor([0.5, -0.25, 1.0]))
opt = torch.optim.SGD([w], lr=0.05)
x, y, h = torch.ones(3), torch.arange(3.0), torch.zeros(3)
seen, counts, n, s, best = [], {}, 0, 0.0, 100.0
"""
STEP = """\
loss = ((y.detach() * w + h.detach()) ** 2).mean()
opt.zero_grad()
loss.backward()
opt.step()
"""
END = """\
print("end", i, n, s, best, calls, counts)
print([float(v) for v in seen])
print(x.tolist(), y.detach().tolist(), h.tolist(), w.tolist())
"""
SIMPLE = (
    "y = torch.sin(x) * {c} + w",
    "y = torch.tanh(y * w + {c})",
    "x = x * 0.5 + y.detach() * {c}",
    "h = h * 0.5 + x.cos()",
    "x = x.clone()\nx.mul_({c})",
    "v = h[0:2]\nv += {c}",
    "h[{k}] = {c}",
    "h = h.clone()\nview = h.view(3, 1)\nh.add_(1)\nseen.append(view.sum().item())",
    "s += y.sum().item()",
    "s = s * 0.5 + {c}",
    "n += 1",
    "seen.append(y.sum().item())",
    "seen.append(n)",
    "seen.append(x.sum().detach())",
    "seen.append(len(seen))",
    "counts[n % 3] = counts.get(n % 3, 0) + 1",
    "z = [a * {c} for a in (x, y)]\ny = z[0] + z[1]",
    "y = helper(y)",
    "x, y = y.detach().sin(), x.cos() * w",
    "alias = x\nx = x + {c}\nseen.append((alias - x).sum().item())",
    "best = min(best, loss.item()) if i else best",
    "y = y + torch.tensor([float(n), s, {c}])",
    "y = (lambda v: v * {c})(y) + x",
    "gone = x * {c}\nseen.append(gone.sum().item())\ndel gone",
    "scale = (half := {c}) * 2\ny = y * scale + half",
    "total = sum(v.sum() for v in (x, y, h)).item()\ns = s * 0.25 + total",
    "assert x.shape == (3,), 'shape'",
    "first, *rest = x.tolist()\nseen.append(first)",
    "with torch.no_grad():\n    h = h * 0.25 + x\n    w.mul_(0.99)",
    STEP.strip(),
)
NESTED = (
    "if n % 2:\n{a}\nelse:\n{b}",
    "if y.sum() > {c}:\n{a}",
    "if i == {k}:\n    print('at', i, n)",
    "if i == {k}:\n    continue",
    "if n > 5:\n    break",
    "for q in (0.1, {c}):\n    y = y + q * x\n{a}",
    "for q in range(2):\n{a}\n    if q == n:\n        break\nelse:\n{b}",
    "while n % 3:\n    n += 1\n{a}",
    "try:\n    s = s / (n - {k})\n{a}\nexcept ZeroDivisionError as e:\n    s += len(str(e))",
    "try:\n{a}\nfinally:\n{b}",
    "match n % 3:\n    case 0:\n{aa}\n    case other:\n        s += other",
    "if i == {k}:\n    raised = 1\n    h = h + raised",
)
FORMS = ("module", "function", "generator", "method")


def drawn_script(seed: int) -> str:
    """Return the text of a random script."""
    source = random.Random(seed)
    form = FORMS[seed % len(FORMS)]
    body = _statements(source, source.randint(2, 6), 1)
    place = source.randint(0, body.count("\n\n"))
    parts = body.split("\n\n")
    body = "\n".join([*parts[:place], STEP, *parts[place:]])
    trips = source.choice(("range(7)", "[3, 1, 2, 0, 1]"))
    loop = f"for i in {trips}:\n{indent(body, '    ')}\n"
    loop = f"loss = torch.tensor(1.0)\n{loop}" + source.choice(("", "else:\n    s += 100\n"))
    return _framed(form, BEGIN, loop)


def _statements(source: random.Random, count: int, depth: int) -> str:
    return "\n\n".join(_statement(source, depth) for _ in range(count))


def _statement(source: random.Random, depth: int) -> str:
    kinds = (*SIMPLE, *NESTED, *NESTED) if depth else SIMPLE
    text = source.choice(kinds)
    inside = [
        indent(_statements(source, source.randint(1, 2), depth - 1), "    ") if depth else ""
        for _ in range(2)
    ]
    numbers = {"c": source.choice(("0.5", "-0.75", "1.25")), "k": source.randint(0, 2)}
    made = text.format(a=inside[0], b=inside[1], aa=indent(inside[0], "    "), **numbers)
    return made.replace("\n\n", "\n")


def _framed(form: str, begin: str, loop: str) -> str:
    """Return a script whose loop stands in a module, a function, a generator or a method."""
    if form == "module":
        return f"{HEAD}{HELPER}{begin}{loop}{END}"
    if form == "generator":
        loop = loop.replace("\n    opt.zero_grad()", "\n    yield n\n    opt.zero_grad()", 1)
    inner = indent(f"{begin}{loop}{END}", "    ")
    call = {"function": "main()", "generator": "print(list(main()))", "method": "Main().main()"}
    function = f"def main({'self' if form == 'method' else ''}):\n{inner}"
    if form == "method":
        function = f"class Main:\n{indent(function, '    ')}"
    return f"{HEAD}{HELPER}{function}\n\n{call[form]}\n"
