"""Lists, dictionaries, dataclasses and tuples: as arguments, as results, as state between calls."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import weft as wf
from tests.jit.harness import Call, Case, array, program, rows


@dataclass
class Batch:
    x: Any
    y: Any
    weight: float = 1.0


@dataclass(frozen=True)
class Options:
    scale: float = 1.0
    act: str = "tanh"


class Output(NamedTuple):
    loss: Any
    parts: Any


@program()
def dataclass_argument(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(batch):
        return ((net(batch.x) - batch.y) ** 2).mean() * batch.weight

    batches = [Batch(rows(4, 3, seed=s), rows(4, 1, seed=s + 5)) for s in range(3)]
    return Case(step, [*((b,) for b in batches), (Batch(rows(4, 3), rows(4, 1), 2.0),)])


@program()
def dataclass_of_options(jit):
    @jit
    def step(x, options):
        return getattr(x * options.scale, options.act)()

    choices = [Options(), Options(2.0), Options(), Options(act="exp"), Options(2.0)]
    return Case(step, [(rows(3), options) for options in choices])


@program()
def namedtuple_argument_and_result(jit):
    @jit
    def step(pair):
        loss = (pair.loss * 2).sum()
        return Output(loss, {"pair": pair.parts, "both": (pair.loss, [loss])})

    return Case(step, [(Output(rows(3, seed=s), rows(2)),) for s in range(3)])


@program()
def nested_containers(jit):
    @jit
    def step(tree):
        a, (b, c) = tree["a"], tree["deep"]["pair"]
        return {"sum": a + b, "rest": [c * 2, {"a": a}], "none": None, "n": len(tree)}

    def tree(seed):
        return {"a": rows(3, seed=seed), "deep": {"pair": (rows(3), rows(2, 2, seed=seed))}}

    return Case(step, [(tree(s),) for s in range(3)])


@program()
def containers_of_other_lengths(jit):
    @jit
    def step(xs):
        return sum(x.sum() for x in xs) / len(xs)

    return Case(step, [([rows(3, seed=s) for s in range(n)],) for n in (2, 2, 4, 1, 4, 2)])


@program()
def none_argument(jit):
    @jit
    def step(x, mask=None):
        if mask is None:
            return x.sum()
        return (x * mask).sum()

    x, mask = rows(4), wf.tensor([1.0, 0.0, 1.0, 0.0])
    return Case(step, [(x,), (x, mask), (x, None), (x, mask), (x,)])


@program(falls_back=True)  # what is returned must be the very dictionary of the call
def result_is_an_argument(jit):
    @jit  # falls back
    def step(x, options):
        return x, options, x * 2

    return Case(step, [(rows(3, seed=s), {"keep": [1, 2]}) for s in range(3)])


@program()
def result_twice(jit):
    @jit
    def step(x):
        y = x * 2
        return y, y, [y]

    return Case(step, [(rows(3, seed=s),) for s in range(3)])


@program()
def result_is_a_parameter(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x):
        return net.weight, net(x), net

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def result_of_plain_values(jit):
    @jit
    def step(x, n):
        return x.shape, x.dtype, x.ndim, len(x), n + 1, "text", 2.5, True, None, slice(1, n)

    return Case(step, [(rows(2, 3), 1), (rows(2, 3), 1), (rows(4, 3), 2), (rows(2, 3), 3)])


@program()
def fresh_list_each_call(jit):
    @jit
    def step(x):
        out = [1]
        out.append(x.sum())
        return out

    def call(x):
        made = step(x)
        made.append("changed by the caller")
        return made

    return Case(call, [(rows(3, seed=s),) for s in range(4)])


@program()
def dictionary_of_state(jit):
    state = {"mean": wf.zeros((3,)), "calls": 0}

    @jit
    def step(x):
        state["mean"] = 0.9 * state["mean"] + 0.1 * x.mean(axis=0)
        state["calls"] += 1
        return x - state["mean"]

    return Case(step, [(rows(4, 3, seed=s),) for s in range(5)], {"state": state})


@program(captured=False)
def dictionary_that_grows(jit):
    cache = {}

    @jit
    def step(x, key):
        if key not in cache:
            cache[key] = x.sum()
        return x * cache[key]

    keys = ["a", "a", "b", "a", "b"]
    return Case(step, [(rows(3, seed=s), k) for s, k in enumerate(keys)], {"cache": cache})


@program()
def list_of_losses(jit):
    losses = []

    @jit
    def step(x):
        loss = (x * x).mean()
        losses.append(loss)
        return loss

    return Case(step, [(rows(3, seed=s),) for s in range(5)], {"losses": losses})


@program(captured=False)
def window_of_recent_values(jit):
    recent = collections.deque(maxlen=3)

    @jit
    def step(x):
        recent.append(x.mean().item())
        return x - sum(recent) / len(recent)

    return Case(step, [(rows(3, seed=s),) for s in range(6)], {"recent": recent})


@program(captured=False)
def set_of_seen_sizes(jit):
    seen = set()

    @jit
    def step(x):
        seen.add(len(x))
        return x * len(seen)

    return Case(step, [(rows(n),) for n in (3, 3, 5, 3, 5, 2)], {"seen": seen})


@program()
def replay_memory(jit):
    memory = []

    @jit
    def step(x):
        memory.append(x.detach())
        if len(memory) > 3:
            memory.pop(0)
        return wf.stack(memory).mean(axis=0)

    return Case(step, [(rows(3, seed=s),) for s in range(6)], {"memory": memory})


@program()
def defaultdict_of_sums(jit):
    sums = collections.defaultdict(float)

    @jit
    def step(x, name):
        sums[name] += x.sum().item()
        return dict(sums)

    names = ["a", "b", "a", "a", "b"]
    return Case(step, [(rows(3, seed=s), n) for s, n in enumerate(names)], {"sums": sums})


@program()
def history_in_a_dataclass(jit):
    @dataclass
    class History:
        best: float = float("inf")
        steps: int = 0
        log: list[Any] = field(default_factory=list)

    history = History()

    @jit
    def step(x):
        loss = (x**2).mean()
        history.steps += 1
        if loss < history.best:
            history.best = loss.item()
            history.log.append((history.steps, history.best))
        return loss

    calls = [(rows(3) * s,) for s in (3, 2, 2.5, 1, 4, 0.5)]
    return Case(step, calls, {"history": history})


@program(falls_back=True)  # the next call may have another dictionary
def argument_dictionary_is_filled(jit):
    @jit
    def step(x, out):
        out["mean"] = x.mean()  # falls back
        out.setdefault("first", x[0])

    kept = {}
    calls = [(rows(3, seed=s), kept if s < 3 else {}) for s in range(5)]
    return Case(step, calls, {"kept": kept})


@program()
def list_argument_that_the_caller_changes(jit):
    weights = [1.0, 2.0]

    @jit
    def step(x):
        return sum(x * w for w in weights)

    def add():
        weights.append(5.0)

    def change():
        weights[0] = -1.0

    x = rows(3)
    calls = [Call(x), Call(x), Call(x, before=add), Call(x), Call(x, before=change), Call(x)]
    return Case(step, calls, {"weights": weights})


@program()
def unpacking(jit):
    @jit
    def step(pairs):
        (a, b), *rest = pairs
        first, *_, last = a
        return a + b, [x + y for x, y in rest], first, last

    def pairs(seed):
        return [(wf.tensor(array(3, seed=seed + i)), rows(3)) for i in range(3)]

    return Case(step, [(pairs(s),) for s in range(3)])


@program(captured=False)
def tuple_with_attributes(jit):
    class Pair(tuple):  # noqa: SLOT001  (is what is tested)
        pass

    @jit
    def step(x):
        pair = Pair((x, x * 2))
        pair.extra = x * 3
        return pair, pair.extra

    return Case(step, [(rows(3, seed=s),) for s in range(3)])


@program()
def list_is_counted_and_shortened(jit):
    log = []

    @jit
    def step(x):
        log.append(x.sum().item())
        n = len(log)
        if n > 3:
            log.clear()
        return n, x * len(log)

    calls = [Call(rows(3, seed=s), before=log.clear if s == 9 else None) for s in range(12)]
    return Case(step, calls, {"log": log})


@program()
def numbers_in_a_list_change(jit):
    totals = [0.0, 1.0]

    @jit
    def step(x):
        totals[0] += x.sum().item()
        totals[1] *= 2
        return sum(totals), list(totals)

    def set_to_an_int():
        totals[0] = 5

    calls = [Call(rows(3, seed=s), before=set_to_an_int if s == 4 else None) for s in range(6)]
    return Case(step, calls, {"totals": totals})


@program()
def window_of_tensors(jit):
    window = collections.deque([wf.zeros((3,))] * 2, maxlen=2)

    @jit
    def step(x):
        window.append(x * 2)
        return sum(window), window[0], len(window)

    def add_a_leaf():
        window.append(rows(3, seed=9).requires_grad_())

    calls = [Call(rows(3, seed=s), before=add_a_leaf if s == 5 else None) for s in range(8)]
    return Case(step, calls, {"window": window})


@program()
def list_is_swapped_for_another(jit):
    state = {"log": []}

    @jit
    def step(x):
        state["log"].append(1)
        return x * len(state["log"])

    def swap():
        state["log"] = []

    calls = [Call(rows(3, seed=s), before=swap if s == 3 else None) for s in range(7)]
    return Case(step, calls, {"state": state})
