"""Which tensor is which: arguments, what places hold, and what comes from outside, may be one."""

from __future__ import annotations

import weft as wf
from tests.jit.harness import Call, Case, program, rows


@program()
def argument_compared_with_an_outer_tensor(jit):
    memory, other = rows(3), rows(3, seed=1)

    @jit
    def step(x):
        return x * 2, x is memory

    return Case(step, [(x,) for x in (other, other, memory, other, memory)])


@program()
def argument_looked_for_in_a_list(jit):
    known, other = [rows(3), rows(3, seed=3)], rows(3, seed=1)

    @jit
    def step(x):
        return x * 2, any(x is tensor for tensor in known)

    return Case(step, [(x,) for x in (other, other, known[1], other, known[0], known[0])])


@program()
def argument_is_one_of_the_parameters(jit):
    net, other = wf.nn.Linear(3, 3), wf.nn.Linear(3, 3).weight

    @jit
    def step(x):
        return x * 2, any(x is tensor for tensor in net.parameters())

    return Case(step, [(x,) for x in (other, other, net.weight, other, net.weight)])


@program()
def argument_is_the_weight_of_a_layer(jit):
    net, other = wf.nn.Linear(3, 3, bias=False), rows(3, 3).requires_grad_()

    @jit
    def step(w):
        return (net(w) * w).sum()

    return Case(step, [(w,) for w in (net.weight, net.weight, other, other, net.weight)])


@program(falls_back=True)  # the id of an argument is another number in each call
def ids_of_arguments(jit):
    seen = set()

    @jit
    def step(x):
        is_new = id(x) not in seen  # falls back
        seen.add(id(x))
        return x * 2, is_new

    a, b = rows(3), rows(3, seed=1)
    return Case(step, [(x,) for x in (a, a, b, a, b)], {"count": lambda: len(seen)})


@program(falls_back=True)  # so is the tensor itself as a key
def results_kept_by_argument(jit):
    kept = {}

    @jit
    def step(x):
        if x not in kept:  # falls back
            kept[x] = (x * 2).detach()
        return kept[x] + 1

    a, b = rows(3), rows(3, seed=1)
    return Case(step, [(x,) for x in (a, a, b, a, b)], {"count": lambda: len(kept)})


@program()
def numbers_as_keys(jit):
    kept = {}

    @jit
    def step(x, n):
        kept[n] = x.sum().item()
        return x * n

    return Case(step, [(rows(3), n) for n in (1, 2, 3, 3, 2, 2)], {"kept": kept})


@program()
def kept_tensor_gets_other_kinds(jit):
    state, w = {"h": wf.zeros((3,))}, rows(3).requires_grad_()

    @jit
    def step(x):
        y = (state["h"] + x) * 2
        state["h"] = (state["h"] + x).detach()
        return y.sum()

    kinds = (w * 2, w, rows(3).requires_grad_(), wf.zeros((1,)), wf.zeros((3,), dtype="float64"))
    calls = [Call(rows(3, seed=s)) for s in range(3)]
    for kind in kinds:
        calls += [Call(rows(3), before=lambda kind=kind: state.update(h=kind)), Call(rows(3))]
    return Case(step, calls, {"state": state, "w": w})


@program()
def kept_tensor_is_the_argument(jit):
    state, a = {"h": wf.zeros((3,))}, rows(3)

    @jit
    def step(x):
        h = state["h"]
        h.add_(x)
        state["h"] = h * 2
        return h, x * 1, h is x

    calls = [(a,), (a,), (a,), Call(a, before=lambda: state.update(h=a)), (a,)]
    return Case(step, calls, {"state": state, "a": a})


@program()
def kept_tensor_is_written_in_place(jit):
    state = {"h": wf.zeros((3,))}
    first = state["h"]

    @jit
    def step(x):
        h = state["h"]
        h += x
        state["h"] = h + 1
        return x * 2

    return Case(step, [(rows(3, seed=s),) for s in range(4)], {"state": state, "first": first})


@program()
def two_kept_tensors_become_one(jit):
    state = {"p": wf.zeros((3,)), "q": wf.zeros((3,))}

    @jit
    def step(x):
        state["p"].add_(1.0)
        y = state["q"] * 2
        same = state["p"] is state["q"]
        state["p"], state["q"] = state["p"] + x, state["q"] + x
        return y, same

    def join():
        state["q"] = state["p"]

    calls = [Call(rows(3, seed=s), before=join if s in (3, 5) else None) for s in range(7)]
    return Case(step, calls, {"state": state})


@program(captured=False)
def kept_tensors_are_one_by_their_values(jit):
    state = {"p": wf.zeros((3,)), "q": wf.zeros((3,))}

    @jit
    def step(x):
        same = state["p"] is state["q"]
        state["p"] = x * 2
        state["q"] = state["p"] if x.sum() > 0 else x * 3
        return same

    return Case(step, [(rows(3, seed=s),) for s in range(7)], {"state": state})


@program()
def dictionary_argument_in_another_order(jit):
    @jit
    def step(d):
        return d["a"] - d["b"], list(d)

    a, b = rows(3), rows(3, seed=1)
    return Case(step, [({"a": a, "b": b},)] * 2 + [({"b": b, "a": a},)] * 2)


@program(falls_back=True)  # the next call may have another list
def argument_list_grows(jit):
    @jit
    def step(xs):
        xs.append(xs[0] * 2)  # falls back
        return sum(xs)

    kept = [rows(3)]
    return Case(step, [(kept,), ([rows(3)],), ([rows(3)],), (kept,)], {"kept": kept})


@program(captured=False)
def class_of_a_result_is_asked(jit):
    @jit
    def step(x):
        y = x * 2
        return type(x) is wf.Tensor, type(y) is wf.Tensor, y.__class__.__name__

    return Case(step, [(rows(3, seed=s),) for s in range(3)])


@program()
def kept_tuple_is_kept_again(jit):
    state = {"now": (wf.zeros((3,)), wf.zeros((3,)))}

    @jit
    def step(x):
        a, b = state["before"] = state["now"]
        state["now"] = a + x, b * x
        return state["before"], a is b

    def share():
        state["now"] = (rows(3),) * 2

    calls = [Call(rows(3, seed=s), before=share if s == 4 else None) for s in range(7)]
    return Case(step, calls, {"state": state})


@program()
def leaves_made_inside_are_leaves(jit):
    weights = [rows(3).requires_grad_(), rows(3, seed=1).requires_grad_()]

    @jit
    def step(x):
        loss = ((weights[0] * x + weights[1]) ** 2).sum()
        loss.backward()
        with wf.no_grad():
            weights[:] = [(w - 0.1 * w.grad).requires_grad_() for w in weights]
        return loss

    return Case(step, [(rows(3, seed=s),) for s in range(5)], {"weights": weights})


@program()
def argument_is_in_a_tuple_or_list(jit):
    pair, items, other = (rows(3), rows(3, seed=1)), [rows(3, seed=2)], rows(3, seed=3)
    state = {}

    @jit
    def step(x):
        state["pair"] = pair
        return x * 2 + pair[0] + sum(items)

    calls = [(x,) for x in (pair[0], pair[0], other, other, items[0], items[0], other, pair[0])]
    return Case(step, calls, {"state": state, "pair": pair})
