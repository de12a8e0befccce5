"""Every pass gives the results of the graph it started from, over random graphs."""

from __future__ import annotations

import numpy as np
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from tests.programs.strategies import (
    RandomProgram,
    assert_same_results,
    build_program,
    random_graphs,
)
from weft.core.dtype import is_float
from weft.core.errors import WeftError
from weft.graph.verify import verify
from weft.passes import (
    canonicalize,
    fold_constants,
    optimize,
    remove_dead,
    share_common,
    simplify,
    simplify_finally,
)

EXACT = {
    "fold": fold_constants,
    "cse": share_common,
    "dce": remove_dead,
    "simplify": simplify,
    "simplify_finally": simplify_finally,
    "canonicalize": lambda graph, outputs: canonicalize(remove_dead(graph, outputs)),
}


def examples(ci: int, long: int) -> settings:
    """Return the settings for a number of examples: more in long mode, by its profile.

    Failures are not made smaller: that takes minutes for graphs of this size.
    """
    count = long if settings.default.max_examples > 1000 else ci
    return settings(max_examples=count, phases=(Phase.explicit, Phase.reuse, Phase.generate))


def expected(program: RandomProgram):
    try:
        return program.run()
    except WeftError:
        assume(False)


@given(random_graphs())
@examples(80, 2500)
def test_exact_passes_keep_every_bit(program):
    before = expected(program)
    for name, transform in EXACT.items():
        made = transform(program.graph, program.outputs)
        verify(made)
        assert [v.type for v in made.outputs] == [v.type for v in program.outputs], name
        assert made.inputs == program.graph.inputs
        assert_same_results(before, program.run(made))


@given(random_graphs())
@examples(60, 2500)
def test_the_pipeline_keeps_the_results(program):
    before = expected(program)
    made = optimize(program.graph, program.outputs, passes=("stabilize", "dce"))
    verify(made)
    exact = canonicalize(made)
    verify(exact)
    assert_same_results(program.run(made), program.run(exact))
    whole = optimize(program.graph, program.outputs)
    verify(whole)
    after = program.run(whole)
    assert [v.type for v in whole.outputs] == [v.type for v in program.outputs]
    assert {s.key for s, _ in before.commits} == {s.key for s, _ in after.commits}


@given(random_graphs(), st.randoms())
@examples(40, 1000)
def test_any_order_of_passes_keeps_every_bit(program, random):
    before = expected(program)
    order = random.choices(list(EXACT), k=5)
    made, outputs = program.graph, program.outputs
    for name in order:
        made = EXACT[name](made, outputs)
        outputs = None
    verify(made)
    assert_same_results(before, program.run(made))


def test_the_random_graphs_are_large_and_varied():
    steps = np.random.default_rng(0).integers(0, 9999, (60, 40, 5))
    programs = [build_program([tuple(map(int, s)) for s in chosen], 0) for chosen in steps]
    ops = {node.op.name for p in programs for node in p.graph}
    assert min(len(p.graph) for p in programs) >= 30
    assert len(ops) > 100
    assert {"cond", "while_loop", "scan", "advance_state", "assign", "state"} <= ops
    assert any(is_float(v.dtype) for p in programs for v in p.outputs)
