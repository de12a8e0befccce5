"""Try a rule of the user's on examples of its pattern, before it is let into the pipeline.

Examples are drawn from the pattern: values of several dtypes, shapes and magnitudes for variables,
numbers that pass their tests, and for the attributes of operators their defaults and those of the
operators' own samples. Both sides are run node by node and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..core.dispatch import ERRORS
from ..core.dtype import is_float
from ..core.op import REQUIRED, Op, random
from ..core.samples import ErrorSample, Sampler
from ..core.tensor import Tensor, constant
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from ..graph.node import Value, type_text
from ..graph.run import run_function
from ..graph.symbol import Symbol
from .dce import remove_dead
from .match import Call, Match, Number, Rewriter, Rule, RuleTable, Var
from .pipeline import MAX_ROUNDS, canonicalize
from .rewrite import pass_over, same_nodes
from .simplify import simplify_finally
from .user_rules import CANONICALIZE, STABILIZE, UserRule, apply_rules, rule_error, trying

SHAPES = ((8,), (2, 4), ())
DTYPES = ("float64", "float32", "int64", "bool")
NUMBERS = (0, 1, -1, 2, 0.5, -0.0, np.inf, -np.inf, 3, 10, -2.5)
MOST_OPTIONS = 6  # of attributes of one operator
TOLERANCE = {"float64": (1e-9, 1e-12), "float32": (2e-4, 1e-6)}  # relative, absolute
# Where functions are made stable, the plain way loses its digits for numbers that are larger.
LARGEST = {CANONICALIZE: 40.0, STABILIZE: 8.0}
LOOSE = (5e-2, 1e-2)  # for floats of 16 bits

Example = tuple[Any, ...]  # a function, and the arrays that it is called with


class Instance(NamedTuple):
    """A graph that has the pattern in it, and what it is fed."""

    graph: Graph
    fed: list[np.ndarray[Any, Any]]


def check_rule(user: UserRule, examples: Sequence[Example] | None) -> None:
    """Raise RewriteError unless a rule does what it should in every example that it applies to."""
    tried = False
    drawn = _drawn(user) if examples is None else map(_given, examples)
    for instance in drawn:
        if _check(user, instance):
            if not tried:
                _check_that_it_ends(user, instance)
            tried = True
    if not tried:
        raise rule_error(user.rule, _why_not_tried(user, examples))


def _check(user: UserRule, instance: Instance) -> bool:
    """Hold a rule to an example; tell whether it applied."""
    made, applied = apply_rules(instance.graph, (user.rule,))
    if not applied:
        return False
    try:
        before = run_function(instance.graph, instance.fed)
    except ERRORS:  # no example: these values are not for these operators
        return False
    try:
        after = run_function(made, instance.fed)
    except ERRORS as error:
        raise rule_error(user.rule, f"fails where what matches does not: {error}") from error
    for a, b in zip(before, after, strict=True):
        _compare(user, instance, a, b)
    return True


# -- what must hold --------------------------------------------------------------------------------


def _compare(user: UserRule, instance: Instance, before: Any, after: Any) -> None:
    wrong = ~_agree(user.stage, np.atleast_1d(before), np.atleast_1d(after))
    if not wrong.any():
        return
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    names = [value.name for value in instance.graph.inputs]
    shown = ", ".join(f"{n} = {_shown(x, place)}" for n, x in zip(names, instance.fed, strict=True))
    raise rule_error(
        user.rule,
        f"is wrong: what matches gives {np.atleast_1d(before)[place]}, and what stands for it "
        f"{np.atleast_1d(after)[place]}, for {shown or 'constants'} ({before.dtype}); pass "
        "check=False if that is meant",
    )


def _shown(array: Any, place: tuple[int, ...]) -> Any:
    """Return the element of an operand that one of the result comes from, or the whole of it."""
    same = array.ndim == len(place) and all(i < n for i, n in zip(place, array.shape, strict=True))
    return array[place] if same else array.tolist()


def _agree(stage: str, before: Any, after: Any) -> Any:
    """Tell of each element whether it may stand for what it was.

    Infinities may become numbers where functions are made stable; NaNs stay NaNs.
    """
    if not is_float(before.dtype):
        return before == after
    a, b = before.astype(np.float64), after.astype(np.float64)
    relative, absolute = TOLERANCE.get(before.dtype.name, LOOSE)
    with np.errstate(all="ignore"):
        close = np.abs(a - b) <= absolute + relative * np.abs(a)
    infinite = np.isinf(a) & ((a == b) | (stage == STABILIZE) & ~np.isnan(b))
    return np.where(np.isfinite(a), close, infinite | (np.isnan(a) & np.isnan(b)))


def _check_that_it_ends(user: UserRule, instance: Instance) -> None:
    """Raise if Weft's own rules undo what a rule does, and it does it again, for ever."""
    if user.stage != CANONICALIZE:
        return
    with trying(user):
        made = canonicalize(instance.graph, simplify_finally)
        if not same_nodes(made, canonicalize(made, simplify_finally)):
            raise rule_error(
                user.rule,
                f"does not come to an end in {MAX_ROUNDS} rounds: other rules undo what it does",
            )


# -- examples --------------------------------------------------------------------------------------


def _given(example: Any) -> Instance:
    """Return an example of the user's: a function, and the arrays that it is called with."""
    function, *arrays = example if isinstance(example, (tuple, list)) else (example,)
    fed = [np.asarray(x) for x in arrays]
    return _instance(fed, [f"x{i}" for i in range(len(fed))], function)


def _instance(
    fed: list[np.ndarray[Any, Any]], names: Sequence[str], build: Callable[..., Any]
) -> Instance:
    with Graph("example") as graph:
        pairs = zip(fed, names, strict=True)
        symbols = [placeholder(x.shape, x.dtype, name=name) for x, name in pairs]
        found = build(*symbols)
    made = found if isinstance(found, (tuple, list)) else [found]
    outputs = [y.value for y in made if isinstance(y, Symbol)]
    return Instance(remove_dead(graph, outputs), fed)


def _drawn(user: UserRule) -> Iterator[Instance]:
    """Yield examples of a rule's pattern."""
    names = sorted(_variables(user.rule.pattern))
    largest = LARGEST[user.stage]
    sampler = Sampler(0)
    for dtype in DTYPES:
        draws = _draws(sampler, dtype, largest)
        choices = range(1, _choices(user.rule.pattern, np.dtype(dtype)))
        for shape in SHAPES:
            for draw, choice in (*((d, 0) for d in draws), *((draws[0], c) for c in choices)):
                fed = [draw(shape).astype(dtype) for _ in names]
                instance = _drawn_instance(user.rule, names, fed, choice, dtype)
                if instance is not None:
                    yield instance


def _draws(sampler: Sampler, dtype: str, largest: float) -> list[Callable[[tuple[int, ...]], Any]]:
    """Return what draws values of a dtype: small, positive and large ones."""
    if dtype == "bool":
        return [lambda shape: sampler.booleans(*shape)]
    if dtype == "int64":
        return [lambda shape: sampler.integers(*shape, low=-4, high=5)]
    return [
        lambda shape: sampler.real(*shape),
        lambda shape: sampler.positive(*shape),
        lambda shape: np.round(sampler.real(*shape)),
        lambda shape: sampler.real(*shape, low=-largest, high=largest),
    ]


def _drawn_instance(
    rule: Rule, names: Sequence[str], fed: list[Any], choice: int, dtype: str
) -> Instance | None:
    """Return an example with certain choices of attributes and numbers; None if there is none."""

    def build(*symbols: Symbol) -> Any:
        values = dict(zip(names, symbols, strict=True))
        return _Building(values, choice, np.dtype(dtype)).build(rule.pattern)

    try:
        return _instance(fed, names, build)
    except (_NoExample, *ERRORS):
        return None


class _NoExample(Exception):  # noqa: N818  (says what there is not)
    """A pattern cannot be built with the choices at hand."""


class _Building:
    """Builds a pattern as nodes of the graph that is open."""

    def __init__(self, values: Mapping[str, Symbol], choice: int, dtype: Any) -> None:
        self.values, self.choice, self.dtype = values, choice, dtype

    def build(self, pattern: Any) -> Any:
        """Return what a pattern stands for."""
        if isinstance(pattern, Var):
            return self.values[pattern.name]
        return self._call(pattern) if isinstance(pattern, Call) else self._number(pattern)

    def _number(self, pattern: Number) -> Tensor:
        fitting = _numbers(pattern, self.dtype)
        if not fitting:
            raise _NoExample
        return constant(np.array(fitting[self.choice % len(fitting)], self.dtype))

    def _call(self, pattern: Call) -> Any:
        op, args = pattern.op, [self.build(arg) for arg in pattern.args]
        if op.kind == random:
            raise _NoExample
        options = _options(op)
        if not options:
            raise _NoExample
        chosen = options[self.choice % len(options)]
        fixed = len(op.inputs) - 1
        grouped = [*args[:fixed], args[fixed:]] if op.variadic else args
        return op.function(*grouped, **chosen)


def _numbers(pattern: Number, dtype: Any) -> list[float]:
    """Return numbers of a dtype that pass a test."""
    known = NUMBERS if pattern.example is None else (pattern.example,)
    own = [n for n in known if is_float(dtype) or n == int(np.nan_to_num(n))]
    return [n for n in own if pattern.test(n, dtype)]


def _choices(pattern: Any, dtype: Any) -> int:
    """Return how many numbers or attributes there are to choose from, in some part of a pattern."""
    if isinstance(pattern, Call):
        return max(len(_options(pattern.op)), *(_choices(arg, dtype) for arg in pattern.args))
    return len(_numbers(pattern, dtype)) if isinstance(pattern, Number) else 1


@cache
def _options(op: Op) -> list[dict[str, Any]]:
    """Return attributes to call an operator with: its defaults, and those of its samples."""
    plain: list[dict[str, Any]] = [] if REQUIRED in op.attrs.values() else [{}]
    samples = [] if op.sample_rule is None or not op.attrs else list(op.sample_rule(Sampler(0)))
    for sample in samples:
        if isinstance(sample, ErrorSample):
            continue
        own = {name: value for name, value in sample.kwargs.items() if name in op.attrs}
        given = sample.args[len(op.inputs) :]
        own |= dict(zip(op.attrs, given, strict=False))
        if own and own not in plain:
            plain.append(own)
    return plain[:MOST_OPTIONS]


def _variables(pattern: Any) -> set[str]:
    if isinstance(pattern, Var):
        return {pattern.name}
    return set().union(*map(_variables, pattern.args)) if isinstance(pattern, Call) else set()


# -- rules that were not tried ---------------------------------------------------------------------


def _why_not_tried(user: UserRule, examples: Sequence[Example] | None) -> str:
    drawn = _drawn(user) if examples is None else map(_given, examples)
    for instance in drawn:
        found = _mismatch(user.rule, instance.graph)
        if found is not None:
            return f"builds {found}"
    what = "no example that was drawn" if examples is None else "none of the examples"
    return (
        f"was not tried: it applies to {what}. Give examples=[(function, *arrays), ...], where the "
        "function builds what matches, or check=False"
    )


class _Built(NamedTuple):
    """What a rule made of a node, of whatever type."""

    made: Value
    root: Value


def _mismatch(rule: Rule, graph: Graph) -> str | None:
    """Return the type that a rule builds in an example where it should build another."""
    seen: list[_Built] = []

    class Watching(Rewriter):
        def fitting(self, match: Match, value: Value | None) -> Value | None:
            if value is not None:
                seen.append(_Built(value, match.root.outputs[0]))
            return None

    pass_over(graph, None, Watching(RuleTable([rule])).visit, lambda part, outputs: part)
    if not seen:
        return None
    made, root = seen[0]
    return f"{type_text(made.type)} where the pattern is {type_text(root.type)}"
