"""The run that is written out for one program does what the general one does, and nothing else."""

from __future__ import annotations

import copy
import gc
import linecache
import sys
import threading

import numpy as np
import pytest

import weft as wf
from weft.backends.cpu.runtime import bound_run
from weft.backends.cpu.runtime import executable as executable_module
from weft.core.errors import GraphError, IndexOutOfRange
from weft.core.generated import source_of
from weft.graph.state import AttributeKeeper, ItemStep, StatePath, number_state, tensor_state
from weft.optim.graph_step import slot_state

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


class Training:
    """A step that changes arrays in place, copies one, draws, averages, and counts in numbers."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.weights = [
            wf.nn.Parameter(wf.tensor(rng.normal(size=(4, 5)).astype(np.float32))),
            wf.nn.Parameter(wf.tensor(rng.normal(size=(5,)).astype(np.float32))),
            wf.nn.Parameter(wf.tensor(rng.normal(size=(5,)).astype(np.float32))),
        ]
        self.optimizer = wf.optim.Adam(self.weights, lr=0.1)
        self.square = wf.tensor(rng.normal(size=(2, 2)).astype(np.float32))
        self.generator = wf.Generator(7)
        self.program = wf.compile(self._step, wf.tensor(X))

    def _step(self, x):
        w, a, b = self.weights
        noise = wf.randn(3, 5, generator=self.generator)
        loss = ((x @ w + a + noise) * b).square().mean()
        self.square.assign(self.square.T * 2)
        self.optimizer.minimize(loss)
        return loss, a

    def step(self, x=X):
        return [result.numpy() for result in self.program(x)]

    def arrays(self):
        slots = [self.optimizer.state[w] for w in self.weights]
        kept = [slot[name] for slot in slots for name in ("exp_avg", "exp_avg_sq")]
        return [w._value for w in self.weights] + kept + [self.square._value]

    def numbers(self):
        steps = [self.optimizer.state[w]["step"] for w in self.weights]
        return self.optimizer.t, steps, self.generator.get_state()

    def state(self):
        return [array.copy() for array in self.arrays()], self.numbers()

    @property
    def executable(self):
        return self.program.executable


def bound(program=None):
    """Return a training whose next run is a bound one."""
    training = program or Training()
    for _ in range(3):
        training.step()
    assert training.executable._bound is not None
    return training


def general():
    """Return a training that takes the general way always."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executable_module, "bind_run", lambda executable: None)
        training = Training()
        for _ in range(3):
            training.step()
    training.executable._bound = lambda executable, feeds: executable._run_warily(feeds)
    return training


def assert_same(a, b):
    for x, y in zip(a[0], b[0], strict=True):
        np.testing.assert_array_equal(x, y)
    assert a[1] == b[1]


def text_of(executable):
    return source_of(executable._bound)


# -- what is written -------------------------------------------------------------------------------


def test_states_are_read_and_written_where_they_are_kept():
    text = text_of(bound().executable)
    assert ".state" in text
    assert "['exp_avg_sq']" in text
    assert ".t = new" in text
    assert text.count("entry(") == 1


def test_paths_say_where_states_are_kept():
    weight = wf.nn.Parameter(wf.ones(2))
    optimizer = wf.optim.Adam([weight])
    moment = slot_state(optimizer, weight, "exp_avg", np.zeros(2))
    count = number_state(optimizer, int, AttributeKeeper(optimizer), "t", name="t")
    assert tensor_state(weight, "w").path == StatePath(weight, ("_value",))
    assert moment.path == StatePath(optimizer, ("state", ItemStep(weight), ItemStep("exp_avg")))
    assert count.path == StatePath(optimizer, ("t",))
    count.write(np.array(5))
    assert (optimizer.t, count.read()) == (5, 5)


def test_names_of_users_do_not_collide_with_those_of_the_text():
    class Changed(wf.optim.Adam):
        """Has the name of a variable."""

    class Fresh0(wf.nn.Parameter):
        """Likewise."""

    odd = type("not a name", (wf.optim.SGD,), {})
    weights = [Fresh0(wf.ones(3)), wf.nn.Parameter(wf.ones(3))]
    first, second = Changed(weights[:1]), odd(weights[1:], lr=0.5, momentum=0.5)

    def step(x):
        loss = (weights[0] * weights[1] * x).sum()
        first.minimize(loss)
        second.minimize(loss)
        return loss

    program = wf.compile(step, wf.ones(3))
    for _ in range(4):
        program(wf.ones(3))
    assert program.executable._bound is not None
    assert (first.t, second.t) == (4, 4)


def test_the_text_goes_with_the_program():
    training = bound()
    executable = training.executable
    filename = executable._bound.__code__.co_filename
    mentioned = executable._bound.__globals__.values()
    # Else only the collector would free it, and its arena may be large.
    assert not any(thing is executable or thing is executable._bound for thing in mentioned)
    assert filename in linecache.cache
    del training, executable, mentioned
    gc.collect()
    assert filename not in linecache.cache


# -- results ---------------------------------------------------------------------------------------


def test_results_and_states_are_those_of_the_general_run():
    program, twin = bound(), general()
    for _ in range(4):
        for found, expected in zip(program.step(), twin.step(), strict=True):
            np.testing.assert_array_equal(found, expected)
        assert_same(program.state(), twin.state())
    assert {type(step) for step in program.numbers()[1]} == {int}


def test_results_are_new_in_each_run():
    program = bound()
    first = program.step()
    kept = copy.deepcopy(first)
    program.step()
    np.testing.assert_array_equal(first[0], kept[0])
    np.testing.assert_array_equal(first[1], kept[1])


def test_a_program_that_only_reads_states_sees_what_they_are_now():
    weight = wf.nn.Parameter(wf.ones(3))
    program = wf.compile(lambda x: x * weight, wf.ones(3))
    with wf.no_grad():
        for value in range(4):
            weight.copy_(wf.full((3,), float(value)))
            assert program(wf.ones(3)).tolist() == [value] * 3
    assert program.executable._bound is not None
    assert "with STATES:" in text_of(program.executable)


def test_an_array_that_does_not_suit_the_code_is_copied():
    program, twin = bound(), general()
    for training in (program, twin):
        array = training.weights[1]._value
        training.weights[1]._value = np.repeat(array, 2)[::2]
        training.optimizer.state[training.weights[0]]["exp_avg"] = np.asfortranarray(
            training.optimizer.state[training.weights[0]]["exp_avg"]
        )
        training.step()
        training.step()
    assert_same(program.state(), twin.state())


def test_average_of_weights_and_its_count():
    def trained(patched):
        with pytest.MonkeyPatch.context() as patch:
            if patched:
                patch.setattr(executable_module, "bind_run", lambda executable: None)
            net = wf.nn.Linear(3, 2)
            with wf.no_grad():
                net.weight.fill_(0.5)
                net.bias.fill_(0.25)
            optimizer = wf.optim.SGD(net.parameters(), lr=0.1)
            average = wf.optim.EMA(net, decay=0.9)

            @wf.jit
            def step(x):
                optimizer.zero_grad()
                loss = net(x).square().sum()
                loss.backward()
                optimizer.step()
                average.update()
                return loss

            for _ in range(5):
                step(wf.ones(4, 3))
        return average.count, [average.values[name].copy() for name in sorted(average.values)]

    (count, found), (expected_count, expected) = trained(False), trained(True)
    assert count == expected_count == 5
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


# -- what is wrong ---------------------------------------------------------------------------------


def test_an_index_out_of_range_changes_nothing_and_is_forgotten():
    table = wf.nn.Parameter(wf.ones(3, 2))
    optimizer = wf.optim.Adam([table], lr=0.5)

    def step(i):
        loss = wf.take(table, i, 0).square().sum()
        optimizer.minimize(loss)
        return loss

    good = wf.tensor([0, 2])
    program = wf.compile(step, good)
    for _ in range(3):
        program(good)
    assert program.executable._bound is not None
    before = table.numpy().copy()
    for _ in range(2):
        with pytest.raises(IndexError):
            program(wf.tensor([0, 3]))
        np.testing.assert_array_equal(table.numpy(), before)
        assert optimizer.t == 3
    assert program.executable.run_unchecked((np.array([0, 3]),)) is None
    program(good)
    assert optimizer.t == 4
    assert issubclass(IndexOutOfRange, IndexError)


@pytest.mark.parametrize("wrong", [None, "x", 3, np.ones(5, np.float32), X[:, ::2], X.tolist()])
def test_feeds_that_are_not_as_compiled_for_are_refused(wrong):
    training = bound()
    before = training.state()
    assert training.executable.run_unchecked((wrong,)) is None
    assert training.executable.run_unchecked(()) is None
    assert training.executable.run_unchecked((X, X)) is None
    assert_same(training.state(), before)
    training.step()
    assert training.numbers()[0] == 4


def test_a_slot_that_is_missing_is_missed():
    training = bound()
    del training.optimizer.state[training.weights[0]]["exp_avg"]
    with pytest.raises(KeyError):
        training.step()
    assert training.numbers()[0] == 3


@pytest.mark.parametrize("odd", [2.0, np.int64(2), True, np.array(2)])
def test_numbers_are_converted_as_ever(odd):
    program, twin = bound(), general()
    for training in (program, twin):
        training.optimizer.state[training.weights[0]]["step"] = odd
        training.optimizer.t = odd
        training.step()
    assert_same(program.state(), twin.state())


def test_a_program_is_not_run_inside_its_own_run():
    training = bound()
    before = training.state()
    training.executable._run_lock.running = True
    assert training.executable.run_unchecked((X,)) is None
    with pytest.raises(GraphError, match="inside its own run"):
        training.executable.run([X])
    training.executable._run_lock.running = False
    assert_same(training.state(), before)


# -- interrupts ------------------------------------------------------------------------------------


class Interrupt:
    """Raises at the n-th instruction of a function, as a handler of a signal may do."""

    def __init__(self, code, lines, n):
        self.code, self.lines, self.left = code, lines, n

    def __call__(self, frame, event, arg):
        if frame.f_code is not self.code:
            return None
        frame.f_trace_opcodes = True
        return self._inside

    def _inside(self, frame, event, arg):
        if event == "opcode" and frame.f_lineno in self.lines:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self._inside


def interrupted(run, code, lines, n):
    """Tell whether a run was interrupted, at its n-th instruction."""
    before = sys.gettrace()
    sys.settrace(Interrupt(code, lines, n))
    try:
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_anywhere_changes_all_states_or_none():
    training = bound()
    twin = bound()
    code = training.executable._bound.__code__
    text = text_of(training.executable).splitlines()
    end = next(i for i, line in enumerate(text, 1) if "except BaseException" in line)
    lines = range(code.co_firstlineno + 1, code.co_firstlineno + end - 1)
    before, after = 0, 0
    feeds = (X,)  # by itself: what is around the bound function has its own ways
    for n in range(1, 10_000):
        t = training.optimizer.t
        if not interrupted(lambda: training.executable.run_unchecked(feeds), code, lines, n):
            break
        assert not training.executable._run_lock.running
        assert training.optimizer.t in (t, t + 1)
        if training.optimizer.t > t:
            after += 1
            twin.step()
        else:
            before += 1
        assert_same(training.state(), twin.state())
    assert before > 20
    assert after > 10
    training.step()
    twin.step()
    twin.step()  # the last one came to its end
    assert_same(training.state(), twin.state())


def test_an_error_of_a_handler_after_the_code_has_ended_is_not_lost():
    """Else what called would take the step again."""
    training = Training()
    for _ in range(2):
        training.step()
    executable, error = training.executable, ValueError("late")
    make_entry = executable.make_entry

    def late_entry(name, *, alone):
        entry = make_entry(name, alone=alone)

        def late(*arguments):
            entry(*arguments)
            raise error

        return late

    executable.make_entry = late_entry
    executable._bound = executable_module.bind_run(executable)
    with pytest.raises(ValueError, match="late"):
        training.step()
    assert training.numbers()[0] == 3


# -- arrays that others hold -----------------------------------------------------------------------

HOLDERS = {
    "array": lambda t: t.weights[0]._value,
    "numpy": lambda t: t.weights[0].numpy(),
    "view": lambda t: t.weights[1].numpy()[1:3],
    "detached": lambda t: t.weights[2].detach(),
    "moment": lambda t: t.optimizer.state[t.weights[0]]["exp_avg"],
    "slots": lambda t: dict(t.optimizer.state[t.weights[1]]),
    "copied": lambda t: t.square.numpy(),
    "state_dict": lambda t: t.optimizer.state_dict(),
    "deep_copy": lambda t: copy.deepcopy(t.weights),
    "memoryview": lambda t: memoryview(t.weights[0]._value),
    "dlpack": lambda t: np.from_dlpack(t.weights[0]._value),
}


def values_of(held):
    """Return copies of all arrays that something holds."""
    if isinstance(held, dict):
        return [v for key in held for v in values_of(held[key])]
    if isinstance(held, list):
        return [v for item in held for v in values_of(item)]
    if isinstance(held, wf.Tensor):
        return [held._value.copy()]
    return [np.array(held)] if isinstance(held, (np.ndarray, memoryview)) else []


@pytest.fixture(params=["native", "python"])
def counting(request, monkeypatch):
    """Have references counted by native code, or by Python where that cannot be."""
    if request.param == "python":
        monkeypatch.setattr(bound_run, "sees_references", lambda: False)


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.usefixtures("counting")
def test_what_others_hold_does_not_change(holder):
    training, twin = bound(), general()
    held = HOLDERS[holder](training)
    before = values_of(held)
    for _ in range(3):
        training.step()
        twin.step()
    for x, y in zip(values_of(held), before, strict=True):
        np.testing.assert_array_equal(x, y)
    assert_same(training.state(), twin.state())


@pytest.mark.usefixtures("counting")
def test_arrays_are_changed_in_place_if_nobody_else_holds_them():
    training = bound()
    places = [id(array) for array in training.arrays()[:-1]]
    data = [array.ctypes.data for array in training.arrays()[:-1]]
    training.step()
    assert [id(array) for array in training.arrays()[:-1]] == places
    assert [array.ctypes.data for array in training.arrays()[:-1]] == data


@pytest.mark.usefixtures("counting")
def test_parameters_that_share_an_array_part():
    training, twin = bound(), general()
    for t in (training, twin):
        t.weights[2]._value = t.weights[1]._value
        t.step()
        t.step()
        assert not np.shares_memory(t.weights[1]._value, t.weights[2]._value)
    assert_same(training.state(), twin.state())


def test_a_feed_that_is_a_parameter_is_not_changed_while_it_is_read():
    weight = wf.nn.Parameter(wf.tensor(X))
    optimizer = wf.optim.SGD([weight], lr=0.5)

    def step(x):
        loss = (x * weight).sum()
        optimizer.minimize(loss)
        return loss

    program = wf.compile(step, wf.tensor(X))
    for _ in range(3):
        program(wf.tensor(X))
    expected = float((weight.numpy() ** 2).sum())
    assert program(weight).item() == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(weight.numpy(), -0.25 * X, atol=1e-6)


# -- random interference ---------------------------------------------------------------------------


def hold_array(t, rng):
    return t.arrays()[rng.integers(len(t.arrays()))]


def hold_view(t, rng):
    return hold_array(t, rng).reshape(-1)[:2]


def hold_tensor(t, rng):
    return t.weights[rng.integers(3)].detach()


def replace_array(t, rng):
    weight = t.weights[rng.integers(3)]
    weight._value = rng.normal(size=weight.shape).astype(np.float32)


def write_in_place(t, rng):
    with wf.no_grad():
        weight = t.weights[rng.integers(3)]
        weight.copy_(wf.tensor(rng.normal(size=weight.shape).astype(np.float32)))


def share_arrays(t, rng):
    t.weights[1]._value = t.weights[2]._value


def load_state(t, rng):
    t.optimizer.load_state_dict(t.optimizer.state_dict())


def replace_state(t, rng):
    t.optimizer.state = {w: dict(slots) for w, slots in t.optimizer.state.items()}


def replace_slots(t, rng):
    weight = t.weights[rng.integers(3)]
    t.optimizer.state[weight] = copy.deepcopy(t.optimizer.state[weight])


def change_step(t, rng):
    t.optimizer.state[t.weights[rng.integers(3)]]["step"] += int(rng.integers(1, 4))


def change_rate(t, rng):
    t.optimizer.param_groups[0]["lr"] *= 0.9


def eager_step(t, rng):
    t.optimizer.minimize((t.weights[0] ** 2).sum())


def make_read_only(t, rng):
    weight = t.weights[rng.integers(3)]
    weight._value = weight._value.copy()
    weight._value.flags.writeable = False


def seed_again(t, rng):
    t.generator.seed(int(rng.integers(100)))


INTERFERENCES = [
    *(hold_array, hold_view, hold_tensor, replace_array, write_in_place, share_arrays, load_state),
    *(replace_state, replace_slots, change_step, change_rate, eager_step, make_read_only),
    seed_again,
]


@pytest.mark.parametrize("seed", range(4))
def test_interference_between_runs_has_the_effect_it_has_on_general_runs(seed):
    pairs = [bound(), general()]
    rngs = [np.random.default_rng(seed) for _ in pairs]
    held = [[], []]
    for _ in range(25):
        for training, rng, things in zip(pairs, rngs, held, strict=True):
            for number in rng.integers(0, len(INTERFERENCES), rng.integers(0, 3)):
                thing = INTERFERENCES[number](training, rng)
                if thing is not None:
                    things.append((thing, values_of(thing if _is_array(thing) else [thing])))
            if things and rng.random() < 0.3:
                things.pop(int(rng.integers(len(things))))
            training.step()
        assert_same(pairs[0].state(), pairs[1].state())
        assert _aliases(pairs[0], held[0]) == _aliases(pairs[1], held[1])
        for thing, before in (pair for things in held for pair in things):
            for x, y in zip(values_of([thing]), before, strict=True):
                np.testing.assert_array_equal(x, y)


def _is_array(thing):
    return isinstance(thing, np.ndarray)


def _aliases(training, held):
    """Return which states share memory with one another, and with what is held."""
    arrays = training.arrays()
    others = [t._value if isinstance(t, wf.Tensor) else t for t, _ in held]
    return [[np.shares_memory(a, b) for b in [*arrays, *others]] for a in arrays]


# -- threads ---------------------------------------------------------------------------------------


def test_threads_take_steps_one_after_another():
    training, twin = bound(), bound()

    def work():
        for _ in range(50):
            training.step()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(200):
        twin.step()
    assert_same(training.state(), twin.state())
