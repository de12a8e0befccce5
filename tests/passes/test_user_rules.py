"""Rewrite rules of the user's: where they apply, and how wrong ones are refused."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.backends import backend_named
from weft.compiler.cache import programs
from weft.core.errors import ArgumentError, ArgumentTypeError
from weft.extend import Number, P, RewriteError, Var, rewrite
from weft.graph.run import Program
from weft.passes.simplify import LAST_RULES, RULES
from weft.passes.stabilize import RULES as STABLE
from weft.passes.user_rule_check import check_rule
from weft.passes.user_rules import UserRule, user_rules

x, y = Var("x"), Var("y")


@pytest.fixture(autouse=True)
def _compiled_and_without_rules_afterwards(monkeypatch):
    monkeypatch.setattr(wf.config, "debug_interpret", False)
    yield
    assert user_rules() == ()


def rooted():
    with wf.Graph() as graph:
        a = wf.placeholder((4,), wf.float32, name="a")
        b = wf.log(wf.sqrt(a))
    return graph, a, b


def log_of_root(**options):
    return rewrite("log of a root", P.log(P.sqrt(x)), P.mul(P.log(x), 0.5), **options)


def ops(graph):
    return [node.op.name for node in graph.nodes if node.inputs]


GIVEN = np.array([0.5, 1.0, 2.0, 9.0], np.float32)


# -- where rules apply -----------------------------------------------------------------------------


def test_a_rule_applies_until_it_is_removed():
    graph, _, b = rooted()
    assert ops(graph.optimize([b])) == ["sqrt", "log"]
    rule = log_of_root()
    assert ops(graph.optimize([b])) == ["log", "mul"]
    assert repr(rule) == "<rule 'log of a root': log(sqrt(x)) at canonicalize>"
    rule.remove()
    rule.remove()  # it may be said twice
    assert ops(graph.optimize([b])) == ["sqrt", "log"]


def test_names_and_lines_stay():
    graph, _, b = rooted()
    with log_of_root():
        made = graph.optimize([b]).symbol(b).value.node
    assert (made.name, made.where) == (b.name, b.value.node.where)


def test_programs_are_compiled_anew_when_rules_change():
    graph, a, b = rooted()
    session = wf.Session(graph)
    compiled = wf.compile(lambda a: wf.log(wf.sqrt(a)), wf.tensor(GIVEN))
    jitted = wf.jit(lambda a: wf.log(wf.sqrt(a)))

    def found():
        return [
            session.run(b, {a: GIVEN}),
            compiled(GIVEN).numpy(),
            jitted(wf.tensor(GIVEN)).numpy(),
        ]

    jitted(wf.tensor(GIVEN))
    before = found()
    with rewrite("wrong on purpose", P.log(P.sqrt(x)), P.neg(x), check=False):
        for array in found():
            np.testing.assert_array_equal(array, -GIVEN)
    for old, new in zip(before, found(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_rule_sees_gradients_bodies_and_unknown_sizes():
    with wf.Graph() as graph:
        a = wf.placeholder((None,), wf.float32, name="a")
        h, _ = wf.scan(lambda h, r: (h + wf.log(wf.sqrt(r)), None), wf.tensor(0.0), a)
        (slope,) = wf.gradients(h, [a])
    expected = wf.Session(graph, compiled=False).run([h, slope], {a: GIVEN})
    with log_of_root():
        made = graph.optimize([h, slope])
        assert "sqrt" not in str(graph.optimize([h]))
        for compiled in (True, False):
            found = wf.Session(made, compiled=compiled).run([h, slope], {a: GIVEN})
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)


def test_many_sizes_of_one_program():
    with wf.Graph() as graph:
        a = wf.placeholder(("n",), wf.float32, name="a")
        b = wf.log(wf.sqrt(a)).sum()
    with log_of_root(), wf.Session(graph) as session:
        for n in (2, 3, 5, 7):
            found = session.run(b, {a: np.full(n, np.e, np.float32)})
            np.testing.assert_allclose(found, n / 2, rtol=1e-5)


def test_single_operations_of_eager_mode_stay_as_they_are():
    given = wf.rand(1 << 16) + 0.5
    before = wf.logsumexp(given, axis=0).numpy()
    with rewrite("wrong on purpose", P.exp(x), P.neg(x), check=False):
        np.testing.assert_array_equal(wf.logsumexp(given, axis=0).numpy(), before)
        np.testing.assert_array_equal(wf.nn.functional.gelu(given).numpy() > 0, True)


def test_no_program_is_kept_on_disk_or_found_there_under_rules(monkeypatch):
    graph, a, b = rooted()
    program = Program(graph, [b.value], [a.value])
    device = backend_named("cpu").describe()
    asked = []
    monkeypatch.setattr(programs, "sources_digest", asked.append)
    with log_of_root():
        assert programs.known_program(program, {a.value: (4,)}, device) is None
    assert not asked
    programs.known_program(program, {a.value: (4,)}, device)
    assert len(asked) == (programs.user_store().path is not None)


def test_patterns_of_numbers_and_functions():
    def halves(m):
        return m.make("mul", m["x"], m.number(0.5, m["x"].dtype))

    two = Number(lambda n, dtype: n == 2.0, "2.0")
    with wf.Graph() as graph:
        a = wf.placeholder((4,), wf.float32, name="a")
        b, c = a / 2.0, a * 2.0 * 3.0
    with (
        rewrite("half", P.div(x, two), halves),
        rewrite("six", P.mul(P.mul(x, 2.0), 3.0), P.mul(x, 6.0)),
    ):
        assert ops(graph.optimize([b, c])) == ["mul", "mul"]
        assert wf.Session(graph).run(c, {a: GIVEN}).tolist() == (GIVEN * 6).tolist()


def test_a_rule_with_attributes_is_tried_with_those_of_samples():
    def outside(m):
        return m.make("neg", m.make("sum", m["x"], attrs=m.root.attrs))

    with wf.Graph() as graph:
        a = wf.placeholder((2, 3), wf.float32, name="a")
        b = (-a).sum(axis=1, keepdims=True)
    with rewrite("neg of a sum", P.sum(P.neg(x)), outside):
        assert ops(graph.optimize([b])) == ["sum", "neg"]

    def wrong(m):  # where dimensions are not kept
        made = m.make("sum", m["x"], attrs=m.root.attrs)
        return m.make("neg", made) if m.root.attrs[1] else made

    with pytest.raises(RewriteError, match=r"'neg of a sum' \(sum\(neg\(x\)\)\) is wrong"):
        rewrite("neg of a sum", P.sum(P.neg(x)), wrong)


# -- wrong rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "replacement", "match"),
    [
        (P.tanh(x), P.sin(x), r"'bad' \(tanh\(x\)\) is wrong: what matches gives .* for x = "),
        (P.exp(P.log(x)), x, r"\(exp\(log\(x\)\)\) is wrong: what matches gives nan"),
        (P.mul(P.mul(x, 2.0), 3.0), P.mul(x, 5.0), r"\(mul\(mul\(x, 2.0\), 3.0\)\) is wrong"),
        (P.add(x, y), P.add(y, x), r"\(add\(x, y\)\) was applied 64 times to add, and still"),
        (P.square(x), P.pow(x, 2.0), r"\(square\(x\)\) does not come to an end in 4 rounds"),
        (P.tanh(x), lambda m: 1 / 0, r"\(tanh\(x\)\) raised ZeroDivisionError: .* \[for tanh at"),
        (P.tanh(x), lambda m: 3, r"\(tanh\(x\)\) returned int 3, and no value"),
        (P.tanh(x), lambda m: None, r"\(tanh\(x\)\) was not tried: it applies to no example"),
        (
            P.isnan(x),
            P.neg(x),
            r"\(isnan\(x\)\) builds float64\[8\] where the pattern is bool\[8\]",
        ),
    ],
)
def test_a_bad_rule_is_refused_with_its_pattern(pattern, replacement, match):
    with pytest.raises(RewriteError, match=match):
        rewrite("bad", pattern, replacement)


NOT_DRAWN = {  # their conditions are in functions, and ask for constants or for a shifted softmax
    *("x ** 2 = square(x)", "x ** 0.5 = sqrt(x)", "x ** -1 = reciprocal(x)", "log(softmax(x))"),
    *("add of integers: two constants", "mul of integers: two constants"),
}


def test_the_check_passes_every_rule_of_wefts_own():
    own = [UserRule(rule, "canonicalize") for rule in (*RULES, *LAST_RULES)]
    own += [UserRule(rule, "stabilize") for rule in STABLE]
    refused = {}
    for user in own:
        try:
            check_rule(user, None)
        except RewriteError as error:
            refused[user.rule.name] = str(error)
    assert refused.keys() == NOT_DRAWN
    assert all("was not tried" in message for message in refused.values())


def test_what_fails_where_the_pattern_does_not_is_refused():
    def outside(m):
        return m.make("getitem", m["x"], attrs=((5,),))

    examples = [(lambda a: wf.exp(a)[0], np.arange(3.0)), (lambda a: a[0], np.arange(3.0))]
    with pytest.raises(RewriteError, match=r"'first' \(getitem\(x\)\)"):
        rewrite("first", P.getitem(x), outside, examples=examples)


def test_overflow_may_go_where_functions_are_made_stable():
    pattern = P.log(P.exp(P.mul(x, 1000.0)))

    def times(m):
        return m.make("mul", m["x"], m.number(1000.0, m["x"].dtype))

    with pytest.raises(RewriteError, match=r"gives -?inf, and what stands for it"):
        rewrite("log(exp(1000 x))", pattern, times)
    rewrite("log(exp(1000 x))", pattern, times, stage="stabilize").remove()


def test_a_rule_that_goes_wrong_later_reaches_the_user():
    graph, a, b = rooted()
    _, _, foreign = rooted()
    broken = {
        "raised KeyError: 'z'": lambda m: m["z"],
        "which does not belong to this graph": lambda m: foreign.value,
        "and no value": lambda m: "text",
    }
    for match, replacement in broken.items():
        rule = rewrite("late", P.log(P.sqrt(x)), replacement, check=False)
        with rule, pytest.raises(RewriteError, match=rf"'late' \(log\(sqrt\(x\)\)\).*{match}"):
            wf.Session(graph).run(b, {a: GIVEN})
    circling = rewrite("late", P.sqrt(x), P.sqrt(x), check=False)
    with circling, pytest.raises(RewriteError, match="was applied 64 times"):
        graph.optimize([b])


def test_a_rule_that_builds_another_type_does_not_apply():
    with wf.Graph() as graph:
        a = wf.placeholder((4,), wf.float32, name="a")
        b = wf.placeholder((1,), wf.float32, name="b")
        c = b * (a - a + 1.0)
    with rewrite("first of a product", P.mul(x, y), x, check=False):
        assert wf.Session(graph).run(c, {a: GIVEN, b: [2.0]}).shape == (4,)


def test_examples_of_the_users():
    def taken(m):
        return m.make("neg", m.make("cumsum", m["x"], attrs=m.root.attrs))

    examples = [(lambda a: wf.cumsum(-a, axis=0), np.arange(4.0))]
    rewrite("cumsum", P.cumsum(P.neg(x)), taken, examples=examples).remove()
    with pytest.raises(RewriteError, match="it applies to none of the examples"):
        rewrite("cumsum", P.cumsum(P.neg(x)), taken, examples=[(wf.exp, np.arange(4.0))])


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        (("", P.exp(x), x), ArgumentTypeError, "the name must be a non-empty string"),
        (("r", x, x), ArgumentTypeError, "the pattern must be a call of an operator"),
        (("r", P.exp("x"), x), ArgumentTypeError, "made of P.operator"),
        (("r", P.exp(x), "x"), ArgumentTypeError, "the replacement must be a variable"),
        (("r", P.exp(x), y), ArgumentError, r"exp\(x\) binds x, and the replacement uses y"),
        (("r", P.exp(x, y), x), ArgumentError, "exp takes x. Received: exp"),
        (("r", P.exp(x), P.sum(x)), ArgumentError, r"sum has the attributes axis.*m.make\('sum'"),
    ],
)
def test_malformed_rules(given, error, match):
    with pytest.raises(error, match=match):
        rewrite(*given)


def test_bad_options():
    with pytest.raises(ArgumentError, match="stage must be 'canonicalize' or 'stabilize'"):
        log_of_root(stage="last")
    with pytest.raises(ArgumentTypeError, match="check must be True or False"):
        log_of_root(check="no")
    with pytest.raises(ArgumentTypeError, match="examples must be a list"):
        log_of_root(examples="all")
    with log_of_root(), pytest.raises(ArgumentError, match="there is a rule named 'log of a root'"):
        log_of_root()


def test_names_that_are_none():
    assert not hasattr(P, "no_such_operator")
    with pytest.raises(AttributeError, match=r"no operator is named 'expp'; patterns are P.oper"):
        P.expp(Var("x"))
    with pytest.raises(wf.WeftError, match=r"the name must be a text. Received: 5"):
        Var(5)
