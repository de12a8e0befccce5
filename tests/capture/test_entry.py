"""The quick way into a trace takes every kind of argument, and misses whatever has changed."""

from __future__ import annotations

import warnings
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.capture.entry import MOST_ENTRIES, MOST_WRITTEN
from weft.core.errors import WeftError
from weft.core.tree import tree_leaves

Pair = namedtuple("Pair", "first second")


@dataclass
class Batch:
    x: Any
    y: Any
    name: str = "train"


def rows(seed: int, *shape: int) -> Any:
    return wf.tensor(np.random.default_rng(seed).normal(size=shape or (4, 3)).astype(np.float32))


def quickly(jitted: Any, *args: Any, **kwargs: Any) -> Any:
    """Make a call that must not go the general way."""
    general = jitted._call_generally
    jitted._call_generally = None
    try:
        return jitted(*args, **kwargs)
    finally:
        jitted._call_generally = general


# -- arguments -------------------------------------------------------------------------------------

ARGUMENTS: dict[str, Any] = {
    "tensors": lambda: ((rows(0), rows(1)), {}),
    "nothing": lambda: ((), {}),
    "keywords": lambda: ((rows(0),), {"y": rows(1), "scale": 2.5}),
    "list": lambda: (([rows(0), rows(1)],), {}),
    "tuple": lambda: (((rows(0), (rows(1), rows(2))),), {}),
    "empty": lambda: ((rows(0), [], (), {}, None), {}),
    "dictionary": lambda: (({"x": rows(0), "y": {"z": rows(1)}},), {}),
    "named tuple": lambda: ((Pair(rows(0), [rows(1)]),), {}),
    "dataclass": lambda: ((Batch(rows(0), rows(1)),), {}),
    "arrays": lambda: ((rows(0).numpy(), [rows(1).numpy()]), {}),
    "values": lambda: ((rows(0), 3, 0.5, True, "mean", None, b"b"), {}),
    "objects": lambda: ((rows(0), np.add, Batch, wf.float32), {}),
    "many tensors": lambda: (tuple(rows(i) for i in range(6)), {}),
    "leaf": lambda: ((rows(0).requires_grad_(), rows(1)), {}),
}


def total(*args: Any, **kwargs: Any) -> Any:
    """Add up all tensors, arrays and numbers."""
    leaves = tree_leaves((args, kwargs))
    found = [x for x in leaves if isinstance(x, (wf.Tensor, np.ndarray, float))]
    return wf.zeros(()) + sum((i + 1) * (wf.mul(x, x)).sum() for i, x in enumerate(found))


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_all_kinds_of_arguments_are_taken(kind):
    jitted = wf.jit(total)
    args, kwargs = ARGUMENTS[kind]()
    for _ in range(3):
        found = jitted(*args, **kwargs)
    assert found.item() == pytest.approx(total(*args, **kwargs).item(), rel=1e-5)
    if kind in ("nothing", "objects"):  # no machine code; a dtype is compared by what it means
        assert not jitted._entries.quick
    else:
        assert quickly(jitted, *args, **kwargs).item() == found.item()


def ordered(batch: Any) -> Any:
    """Depend on the order of a dictionary."""
    first, second = batch.values() if isinstance(batch, dict) else batch
    return wf.sub(first, wf.mul(second, 2)).sum()


X, Y, Z = rows(0), rows(1), rows(2, 2, 3)
OTHERS: dict[str, Any] = {
    "order of keys": ({"x": X, "y": Y}, {"y": X, "x": Y}),
    "other keys": ({"x": X, "y": Y}, {"x": X, "z": Y}),
    "other container": ([X, Y], (X, Y)),
    "a tensor twice": ([X, Y], [X, X]),
    "other shape": ([X, Y], [Z, Z * 2]),
    "other dtype": ([X, Y], [X.to(wf.float64), Y.to(wf.float64)]),
    "requires gradients": ([X, Y], [X, rows(1).requires_grad_()]),
    "a result": ([X, rows(1).requires_grad_()], [X, rows(1).requires_grad_() * 2]),
    "an array": ([X, Y], [X, Y.numpy()]),
    "a number": ([X, 2.0], [X, 3.0]),
    "an integer": ([X, 2.0], [X, 2]),
    "a bool": ([X, 1], [X, True]),
    "zero": ([X, 0.0], [X, -0.0]),
    "a list more": ([X, Y], [X, [Y]]),
    "too many": ([X, Y], [X, Y, Y]),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_arguments_are_other_calls(kind):
    known, other = OTHERS[kind]
    jitted = wf.jit(ordered)
    for batch in (known, known, known, other, known, other, other, known):
        try:
            expected = ordered(batch)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                jitted(batch)
        else:
            found = jitted(batch)
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
            assert found.dtype == expected.dtype
            assert found.requires_grad == expected.requires_grad


def test_keys_and_keywords_in_another_order():
    by_key = wf.jit(lambda batch: (batch["x"] - 2 * batch["y"]).sum().item())
    by_keyword = wf.jit(lambda x, y: (x - 2 * y).sum().item())
    expected = pytest.approx((X - 2 * Y).sum().item(), rel=1e-5)
    for _ in range(3):
        assert by_key({"x": X, "y": Y}) == by_key({"y": Y, "x": X}) == expected
        assert by_keyword(x=X, y=Y) == by_keyword(y=Y, x=X) == expected


def test_an_argument_that_is_also_used_from_outside():
    held = rows(5)

    def written(x):
        x.mul_(2.0)
        return (x + held).sum()

    def outcome(f):
        held.copy_(rows(5))
        with warnings.catch_warnings(action="ignore"):  # such a call may run eagerly
            found = [f(x).item() for x in (rows(1), rows(1), rows(1), held, rows(1))]
        return [*found, held.sum().item()]

    assert outcome(wf.jit(written)) == pytest.approx(outcome(written), rel=1e-5)


def test_methods_have_entries_of_their_own():
    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        @wf.jit
        def apply(self, x, *, shift=0.0):
            return (x * self.factor + shift).sum()

    one, two = Scaled(2.0), Scaled(3.0)
    for _ in range(3):
        found = one.apply(X, shift=1.0), two.apply(X, shift=1.0)
    assert found[0].item() != found[1].item()
    assert quickly(one.apply, X, shift=1.0).item() == found[0].item()
    two.factor = 4.0
    assert two.apply(X, shift=1.0).item() == pytest.approx((4 * X + 1).sum().item(), rel=1e-5)


def test_calls_of_several_kinds_take_turns():
    jitted = wf.jit(lambda x: (x * x).sum())
    sizes = [rows(n, n + 1, 2) for n in range(3)]
    for _ in range(3):
        for x in sizes:
            jitted(x)
    for x in sizes:
        assert quickly(jitted, x).item() == pytest.approx((x * x).sum().item(), rel=1e-5)


def test_entries_are_bounded():
    jitted = wf.jit(lambda x, name: x * int(name))
    for _ in range(3):
        for n in range(MOST_ENTRIES + 2):
            assert jitted(X, str(n + 2)).shape == X.shape
    assert len(jitted._entries.quick) == MOST_ENTRIES
    for n in range(MOST_WRITTEN):
        jitted._entries._left = min(jitted._entries._left, 1)
        jitted(X, str(n % (MOST_ENTRIES + 2) + 2))
    assert jitted._entries._left == 0


# -- what a step depends on ------------------------------------------------------------------------


def make_world() -> SimpleNamespace:
    wf.manual_seed(1)
    net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Dropout(0.0), wf.nn.Linear(4, 1))
    optimizer = wf.optim.Adam(net.parameters(), lr=0.05, weight_decay=0.1)
    world = SimpleNamespace(net=net, optimizer=optimizer, factor=1.0, seen=[])

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (net(x) ** 2).mean() * world.factor
        loss.backward()
        optimizer.step()
        return loss

    world.step = step
    return world


def group(world: Any) -> Any:
    return world.optimizer.param_groups[0]


def swap_first_two(world: Any) -> None:
    params = group(world)["params"]
    params[0] = world.net[2].weight
    del params[2]


def another_weight(world: Any) -> None:
    world.net[0].weight = wf.nn.Parameter(rows(9, 4, 3))


def wider(world: Any) -> None:
    world.net[2].weight._value = np.ones((2, 4), np.float32)
    world.net[2].bias._value = np.zeros(2, np.float32)
    for p in (world.net[2].weight, world.net[2].bias):
        world.optimizer.state.pop(p)


def note_and_halve(world: Any) -> Any:
    def hook(g: Any) -> Any:
        world.seen.append("a gradient")
        return g / 2

    return hook


CHANGES: dict[str, Any] = {
    "nothing": lambda w: None,
    "learning rate": lambda w: group(w).update(lr=0.5),
    "betas": lambda w: group(w).update(betas=(0.5, 0.9)),
    "weight decay": lambda w: group(w).update(weight_decay=0.3),
    "no weight decay": lambda w: group(w).update(weight_decay=0.0),
    "factor of the rate": lambda w: group(w).update(lr_mult=3.0),
    "factor of the decay": lambda w: group(w).update(decay_mult=0.0),
    "another group": lambda w: w.optimizer.param_groups.__setitem__(0, {**group(w), "lr": 0.4}),
    "fewer parameters": lambda w: group(w)["params"].pop(),
    "other parameters": swap_first_two,
    "slots cleared": lambda w: w.optimizer.state.clear(),
    "a hook before steps": lambda w: w.optimizer.register_step_pre_hook(
        lambda *_: w.seen.append("before")
    ),
    "a hook after steps": lambda w: w.optimizer.register_step_post_hook(
        lambda *_: w.seen.append("after")
    ),
    "a hook on a gradient": lambda w: w.net[0].weight.register_hook(note_and_halve(w)),
    "frozen": lambda w: w.net[0].weight.requires_grad_(False),
    "a new leaf": lambda w: setattr(w.net[0].weight, "_node", type(w.net[0].weight._node)()),
    "another parameter": another_weight,
    "another size": wider,
    "an attribute": lambda w: setattr(w, "factor", 2.0),
    "a mode": lambda w: w.net.eval(),
    "a layer's setting": lambda w: setattr(w.net[1], "p", 0.99),
    "a forward hook": lambda w: w.net[0].register_forward_hook(lambda m, a, y: 2 * y),
    "another layer": lambda w: setattr(w.net, "1", wf.nn.ReLU()),
}


def outcome(world: Any, step: Any, x: Any) -> list[Any]:
    found = [step(x).item()]
    found += [p.numpy().copy() for p in world.net.parameters()]
    return found + [p.grad.numpy().copy() for p in world.net.parameters() if p.grad is not None]


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_is_seen(change):
    jitted, eager = make_world(), make_world()
    jit = wf.jit(jitted.step)
    for seed in range(3):
        outcome(jitted, jit, rows(seed))
        outcome(eager, eager.step, rows(seed))
    quickly(jit, rows(4))
    eager.step(rows(4))
    CHANGES[change](jitted)
    CHANGES[change](eager)
    for seed in (5, 6):
        wf.manual_seed(seed)
        found = outcome(jitted, jit, rows(seed))
        wf.manual_seed(seed)
        expected = outcome(eager, eager.step, rows(seed))
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
    assert jitted.seen == eager.seen


def test_what_a_module_keeps_is_looked_at_after_its_entry_is_written():
    class Keeping(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = None

        def forward(self, x):
            before = wf.zeros(x.shape) if self.kept is None else self.kept
            self.kept = before + x
            return self.kept.sum()

    found = []
    for wrapped in (wf.jit, lambda f: f):
        module, totals = Keeping(), []
        f = wrapped(module)
        for i in range(12):
            if i in (1, 6, 7):
                module.kept = None
            totals.append(f(X + i).item())
        found.append(totals)
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_what_surrounds_a_call_is_seen(monkeypatch):
    w = wf.tensor([1.0, 2.0], requires_grad=True)
    jitted = wf.jit(lambda x: x * w + wf.ones(2))
    x = wf.tensor([3.0, 4.0])
    for _ in range(3):
        assert jitted(x).requires_grad
    assert quickly(jitted, x).requires_grad
    with wf.no_grad():
        assert not jitted(x).requires_grad
    with wf.device("reference"), pytest.raises(TypeError):  # it goes the general way
        quickly(jitted, x)
    monkeypatch.setattr(wf.config, "default_float", "float64")
    assert jitted(x).dtype == wf.float64
    monkeypatch.undo()
    monkeypatch.setattr(wf.config, "debug_interpret", True)
    with pytest.raises(TypeError):  # it goes the general way
        quickly(jitted, x)
    monkeypatch.undo()
    assert quickly(jitted, x).dtype == wf.float32


def test_a_failing_call_leaves_what_it_found():
    def take(x, index):
        return x[index].sum()

    jitted = wf.jit(take)
    index = wf.tensor([0, 1])
    for _ in range(3):
        jitted(X, index)
    with pytest.raises((WeftError, IndexError)):
        jitted(X, wf.tensor([0, 9]))
    assert quickly(jitted, X, index).item() == pytest.approx(take(X, index).item(), rel=1e-5)


def test_calls_are_quick_again_when_no_tensor_is_elsewhere():
    jitted, args = wf.jit(total), ARGUMENTS["tensors"]()[0]
    for _ in range(3):
        found = jitted(*args)
    elsewhere = wf.ones(3, device="reference")
    assert jitted(*args).item() == found.item()
    del elsewhere
    assert quickly(jitted, *args).item() == found.item()


def test_what_fails_after_a_program_has_written_is_not_done_again(monkeypatch):
    count = wf.tensor(0.0)

    @wf.jit
    def step(x):
        count.assign(count + 1)
        return {"y": x * 2}

    def fail(*_):
        raise RuntimeError("after the run")

    x = wf.ones(3)
    for _ in range(3):
        step(x)
    for trace in step._traces[next(iter(step._traces))]:
        monkeypatch.setattr(trace, "result", fail)
        monkeypatch.setattr(trace, "_written", None)
    monkeypatch.setattr(step._entries, "quick", ())
    with pytest.raises(RuntimeError, match="after the run"):
        step(x)
    assert float(count) == 4
