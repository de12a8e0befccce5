"""Programs are named by all that decides about their code, and by nothing else."""

import numpy as np
import pytest

import weft as wf
from tests.graph.processes import printed_in_every_process
from weft.core.op import find_op
from weft.extend import elementwise, op, registry
from weft.graph.identity.fingerprint import fingerprint
from weft.graph.run import Program


def name_of(build, shape=(4, 3), dtype=wf.float32, given=None):
    """Return the name of what a function makes of a placeholder."""
    with wf.Graph() as graph:
        x = wf.placeholder(shape, dtype)
        made = build(x)
    results = made if isinstance(made, (list, tuple)) else [made]
    program = Program(graph, [y.value for y in results], [x.value])
    found = fingerprint(program, {x.value: given or shape})
    return None if found is None else found.digest


def scanned(factor):
    def build(x):
        return wf.scan(lambda total, row: (total + row * factor, total), x[0], x)[1]

    return build


def chosen(x, one, other):
    return wf.cond(x.sum() > 0, lambda: x * one, lambda: x * other)


VARIANTS = {
    "exp": wf.exp,
    "log": wf.log,
    "two nodes": lambda x: wf.exp(wf.exp(x)),
    "two fetches": lambda x: [wf.exp(x), wf.log(x)],
    "other order": lambda x: (wf.exp(x), wf.log(x))[::-1],
    "one twice": lambda x: [wf.exp(x)] * 2,
    "sum": wf.sum,
    "sum of rows": lambda x: x.sum(axis=1),
    "sum of columns": lambda x: x.sum(axis=0),
    "sum kept": lambda x: x.sum(axis=0, keepdims=True),
    "times 2": lambda x: x * 2.0,
    "times 3": lambda x: x * 3.0,
    "times 0": lambda x: x * 0.0,
    "times -0": lambda x: x * -0.0,
    "x - 1": lambda x: x - 1.0,
    "1 - x": lambda x: 1.0 - x,
    "array": lambda x: x + np.arange(3, dtype=np.float32),
    "other array": lambda x: x + np.arange(1, 4, dtype=np.float32),
    "cast": lambda x: x.to(wf.float64),
    "scan": scanned(2.0),
    "scan by 3": scanned(3.0),
    "cond": lambda x: chosen(x, 2.0, 3.0),
    "cond the other way": lambda x: chosen(x, 3.0, 2.0),
}


def test_programs_that_differ_have_different_names():
    names = {key: name_of(build) for key, build in VARIANTS.items()}
    assert None not in names.values()
    assert len(set(names.values())) == len(names)


@pytest.mark.parametrize("key", VARIANTS)
def test_program_that_is_built_again_has_the_same_name(key):
    assert name_of(VARIANTS[key]) == name_of(VARIANTS[key])


def test_shapes_and_dtypes_count():
    names = {
        name_of(wf.exp, shape, dtype)
        for shape in ((4, 3), (3, 4), (12,), (4, 3, 1))
        for dtype in (wf.float32, wf.float64)
    }
    assert len(names) == 8


def test_what_unknown_sizes_are_fed_with_counts():
    def build(x):
        return x.reshape(-1) * 2.0

    names = {name_of(build, (None, 3), given=(n, 3)) for n in (1, 2, 3)}
    assert len(names) == 3
    assert name_of(build, (None, 3), given=(2, 3)) in names


def test_names_do_not_count():
    def named(x):
        wf.exp(x * 2.0)  # takes the name that the next one would have
        y = wf.exp(x)
        y.name = "mine"
        return y

    assert name_of(named) == name_of(wf.exp)


def test_scopes_count():
    def scoped(x):
        with wf.name_scope("somewhere"):
            return wf.exp(x)

    assert name_of(scoped) != name_of(wf.exp)


def update(build):
    """Return the name of a program that writes states, and the states in their order."""
    a, b = wf.tensor(np.zeros(3, np.float32)), wf.tensor(np.ones(3, np.float32))
    with wf.Graph() as graph:
        made = build(a, b)
    program = Program(graph, [], [], [y.value for y in made])
    found = fingerprint(program, {})
    return found.digest, [state.owner is a for state in found.states]


def test_states_are_told_apart_by_their_roles():
    first = update(lambda a, b: [a.assign(b * 2.0)])
    mirrored = update(lambda a, b: [b.assign(a * 2.0)])
    assert first[0] == mirrored[0]  # the same code, for other states
    assert first[1] != mirrored[1]
    same = update(lambda a, b: [a.assign(a * 2.0)])
    both = update(lambda a, b: [a.assign(b * 2.0), b.assign(a * 2.0)])
    assert len({first[0], same[0], both[0]}) == 3


def test_types_of_states_count():
    def program(dtype, shape):
        state = wf.tensor(np.zeros(shape, dtype))
        with wf.Graph() as graph:
            y = state * 2.0
        return fingerprint(Program(graph, [y.value], []), {}).digest

    kinds = [(np.float32, (3,)), (np.float64, (3,)), (np.float32, (4,))]
    assert len({program(*kind) for kind in kinds}) == 3


def test_fed_inner_value_counts():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)
        y = wf.exp(x)
        z = y * 2.0
    outer = fingerprint(Program(graph, [z.value], [x.value]), {x.value: (3,)})
    inner = fingerprint(Program(graph, [z.value], [y.value]), {y.value: (3,)})
    assert outer.digest != inner.digest


def test_operators_of_the_user_have_no_name():
    @op(elementwise, promote="float")
    def cubed_for_a_test(x: wf.Tensor) -> wf.Tensor:
        """Return x**3."""

    cubed_for_a_test.eval(lambda x: x**3)
    try:
        assert name_of(cubed_for_a_test.function) is None
    finally:
        del registry["cubed_for_a_test"]


def test_changed_rules_have_no_name(monkeypatch):
    assert name_of(wf.exp) is not None
    monkeypatch.setattr(find_op("exp"), "lower_rule", lambda x: x)
    assert name_of(wf.exp) is None


def test_name_is_the_same_in_every_process():
    script = """
        import numpy as np, weft as wf
        from weft.graph.identity.fingerprint import fingerprint
        from weft.graph.run import Program
        net = wf.nn.Linear(3, 2)
        with wf.Graph() as graph:
            x = wf.placeholder((None, 3), wf.float32)
            loss = wf.nn.functional.dropout(net(x)).sum()
            train = wf.optim.Adam(net.parameters(), lr=0.1).minimize(loss)
        program = Program(graph, [loss.value], [x.value], [y.value for y in train.symbols])
        print(fingerprint(program, {x.value: (5, 3)}).digest.hex())
    """
    assert len(printed_in_every_process(script)) == 64
