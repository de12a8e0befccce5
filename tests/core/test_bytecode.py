"""Reading bytecode: what tracers are told of instructions and stacks."""

import dis

from weft.core.bytecode import depths_below, stack_depths, steps


def calls_of(function):
    found = {step.offset: step for step in steps(function.__code__).values()}
    return [step for step in found.values() if step.name in ("CALL", "CALL_KW")]


def test_keywords_belong_to_their_own_call():
    inner, outer = calls_of(lambda f, g: f(1, g(k=1)))
    assert inner.keywords == ("k",)
    assert outer.keywords == ()


def test_prefixes_of_instructions_stand_for_them():
    names = {}
    lines = "".join(f"    x.a{i}\n" for i in range(300))
    exec(f"def f(x):\n{lines}", names)
    found = steps(names["f"].__code__)
    assert {f"a{i}" for i in range(300)} <= {step.argument for step in found.values()}
    assert any(offset != step.offset for offset, step in found.items())


def test_every_instruction_of_a_function_without_dead_code_has_a_depth():
    def f(items):
        for item in items:
            try:
                yield [item, *(x for x in item)]
            except ValueError as error:
                raise KeyError from error

    depths = stack_depths(f.__code__)
    assert min(depths.values()) == 0
    assert max(depths.values()) <= f.__code__.co_stacksize


def test_what_lies_below_the_operands_of_a_test_or_call():
    def f(items, g):
        while g(items):
            for item in items:
                if item:
                    g(item, g(1))

    below = depths_below(f.__code__)
    instructions = [at for at in dis.get_instructions(f.__code__) if at.offset in below]
    calls = [below[at.offset] for at in instructions if at.opname == "CALL"]
    tests = [below[at.offset] for at in instructions if at.opname.startswith("POP_JUMP")]
    assert set(tests) == {0, 1}  # `for` keeps its iterator there
    assert set(calls) >= {0, 1}
    assert max(calls) > 1  # the outer call of two has its operands there already
