"""no_grad, enable_grad, set_grad_enabled, detach, and writing to tensors that are recorded."""

import asyncio
from threading import Thread

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentTypeError, DTypeError, GradientError, ShapeError
from weft.core.modes import modes


def leaf(*values):
    return wf.tensor(np.array(values), requires_grad=True)


# -- modes ----------------------------------------------------------------------------------------


def test_no_grad_records_nothing():
    x = leaf(1.0)
    with wf.no_grad():
        assert not wf.is_grad_enabled()
        assert not (x * 2.0).requires_grad
    assert wf.is_grad_enabled()
    assert (x * 2.0).requires_grad


def test_modes_nest():
    x = leaf(1.0)
    with wf.no_grad():
        with wf.enable_grad():
            assert (x * 2.0).requires_grad
            with wf.no_grad():
                assert not (x * 2.0).requires_grad
            assert wf.is_grad_enabled()
        assert not (x * 2.0).requires_grad


def test_modes_are_decorators():
    @wf.no_grad()
    def frozen(x):
        """Keep this docstring."""
        return x * 2.0

    @wf.enable_grad()
    def recorded(x):
        return x * 2.0

    x = leaf(1.0)
    assert not frozen(x).requires_grad
    assert frozen.__doc__ == "Keep this docstring."
    with wf.no_grad():
        assert recorded(x).requires_grad


def test_the_mode_is_restored_after_an_error():
    before = len(modes.grad_overrides)
    with pytest.raises(ZeroDivisionError), wf.no_grad():
        raise ZeroDivisionError
    assert wf.is_grad_enabled()
    assert len(modes.grad_overrides) == before


def test_one_context_object_may_be_entered_again():
    context = wf.no_grad()
    with context, context:
        assert not wf.is_grad_enabled()
    assert wf.is_grad_enabled()


def test_set_grad_enabled_as_context_and_with_a_bad_mode():
    with wf.set_grad_enabled(False):
        assert not wf.is_grad_enabled()
    assert wf.is_grad_enabled()
    with pytest.raises(ArgumentTypeError, match=r"True or False. Received: 1"):
        wf.set_grad_enabled(1)


def test_the_mode_belongs_to_the_thread():
    seen = {}

    def work():
        seen["inside"] = wf.is_grad_enabled()

    with wf.no_grad():
        thread = Thread(target=work)
        thread.start()
        thread.join()
    assert seen == {"inside": True}


def test_the_mode_belongs_to_the_task():
    async def frozen(entered, leave):
        with wf.no_grad():
            entered.set()
            await leave.wait()
            return wf.is_grad_enabled()

    async def main():
        entered, leave = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(frozen(entered, leave))
        await entered.wait()
        outside = wf.is_grad_enabled()
        leave.set()
        return outside, await task

    assert asyncio.run(main()) == (True, False)


def test_backward_records_nothing_unless_asked():
    x = leaf(2.0)
    (x * x).backward()
    assert not x.grad.requires_grad


# -- detach and requires_grad ---------------------------------------------------------------------


def test_detach_cuts_the_graph():
    x = leaf(3.0)
    (x * x.detach()).backward()
    assert x.grad.item() == 3.0


def test_detach_shares_no_later_writes():
    x = leaf(3.0)
    y = x.detach()
    y += 1.0
    assert (x.item(), y.item()) == (3.0, 4.0)


def test_requires_grad_can_be_set_on_leaves_only():
    x = wf.tensor([1.0])
    assert x.requires_grad_() is x
    assert x.requires_grad
    x.requires_grad = False
    assert not (x * 2.0).requires_grad
    y = leaf(1.0) * 2.0
    with pytest.raises(GradientError, match=r"only on leaves; .* result of mul: use x.detach"):
        y.requires_grad_(False)
    with pytest.raises(DTypeError, match="int64"):
        wf.tensor([1]).requires_grad_()


def test_is_leaf():
    x = leaf(1.0)
    assert x.is_leaf
    assert wf.tensor(1.0).is_leaf
    assert not (x * 2.0).is_leaf
    assert (wf.tensor(1.0) * 2.0).is_leaf
    assert x.grad_fn is None


def test_grad_can_be_set_and_deleted():
    x = leaf(1.0)
    x.grad = wf.tensor(np.array([5.0]))
    assert x.grad.item() == 5.0
    del x.grad
    assert x.grad is None
    with pytest.raises(ShapeError, match=r"shape \(1,\). Received: \(2,\)"):
        x.grad = wf.tensor(np.ones(2))
    with pytest.raises(ArgumentTypeError, match=r"tensor or None. Received: float"):
        x.grad = 3.0
    with pytest.raises(GradientError, match="does not require gradients"):
        wf.tensor(1.0).grad = wf.tensor(1.0)


# -- writing: tensors are values ------------------------------------------------------------------


def test_writing_leaves_earlier_results_alone():
    x = leaf(2.0)
    y = x * 3.0
    z = y * y  # saves y
    y += 100.0
    y *= 0.0
    z.backward()
    assert x.grad.item() == 36.0
    assert z.item() == 36.0


def test_writing_is_differentiated():
    x = leaf(2.0)
    y = x * 3.0
    y *= x
    y += 1.0
    y.backward()
    assert x.grad.item() == 12.0


def test_writing_to_elements_is_differentiated():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2.0
    old = y.numpy()
    y[0] = x[2] * 10.0
    wf.sum(y).backward()
    assert x.grad.tolist() == [0.0, 2.0, 12.0]
    assert old.tolist() == [2.0, 4.0, 6.0]


def test_a_constant_becomes_recorded_by_writing_into_it():
    x = leaf(2.0)
    y = wf.zeros(1, dtype=wf.float64)
    y += x
    y.backward()
    assert x.grad.item() == 1.0


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__iadd__(1.0),
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x.zero_(),
        lambda x: x.fill_(3.0),
        lambda x: x.copy_(np.ones(1)),
    ],
)
def test_recorded_leaves_are_written_under_no_grad_only(write):
    x = leaf(2.0)
    with pytest.raises(GradientError, match=r"leaf .* `with wf.no_grad\(\):`"):
        write(x)
    y = x * x
    with wf.no_grad():
        write(x)
    assert x.requires_grad
    assert x.is_leaf
    assert x.item() != 2.0
    y.backward()
    assert x.grad.item() == 4.0, "the graph keeps the value that it was computed with"


def test_writing_keeps_shape_and_dtype():
    x = wf.tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"shape \(2,\) to \(3, 2\)"):
        x += np.ones((3, 2), np.float32)
    with pytest.raises(DTypeError, match="float32 to float64"):
        x += np.ones(2)


def test_numpy_views_never_change():
    x = wf.tensor([1.0, 2.0])
    view = x.numpy()
    x += 1.0
    x[0] = 50.0
    assert view.tolist() == [1.0, 2.0]


def test_set_grad_enabled_as_decorator():
    before = len(modes.grad_overrides)

    @wf.set_grad_enabled(False)
    def inside():
        return wf.is_grad_enabled()

    assert wf.is_grad_enabled()
    assert inside() is False
    assert inside() is False
    assert wf.is_grad_enabled()
    assert len(modes.grad_overrides) == before


def test_a_call_that_switches_back_on_leaves_nothing_behind():
    before = len(modes.grad_overrides)
    for _ in range(3):
        wf.set_grad_enabled(False)
        assert not (leaf(1.0) * 2.0).requires_grad
        with wf.enable_grad():
            assert (leaf(1.0) * 2.0).requires_grad
        with wf.no_grad():
            wf.set_grad_enabled(True)
            assert (leaf(1.0) * 2.0).requires_grad
        assert not wf.is_grad_enabled()
        wf.set_grad_enabled(True)
        assert (leaf(1.0) * 2.0).requires_grad
    assert len(modes.grad_overrides) == before


def test_a_thread_that_ends_switched_off_leaves_nothing_behind():
    before = len(modes.grad_overrides)
    thread = Thread(target=wf.set_grad_enabled, args=(False,))
    thread.start()
    thread.join()
    assert len(modes.grad_overrides) == before


def test_a_task_keeps_the_mode_that_it_began_in():
    found = []

    async def ask():
        await asyncio.sleep(0)
        found.append((leaf(1.0) * 2.0).requires_grad)
        wf.set_grad_enabled(True)
        found.append((leaf(1.0) * 2.0).requires_grad)

    async def start():
        with wf.no_grad():
            task = asyncio.create_task(ask())
        assert wf.is_grad_enabled()
        await task

    asyncio.run(start())
    assert found == [False, True]


def test_no_grad_as_bare_decorator():
    @wf.no_grad
    def inside(x):
        return x * 2.0

    assert not inside(leaf(1.0)).requires_grad
    with pytest.raises(ArgumentTypeError, match="no_grad"):
        wf.no_grad(3)
