"""Reading bytecode: what tracers are told of instructions and stacks."""

from weft.core.bytecode import stack_depths, steps


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
