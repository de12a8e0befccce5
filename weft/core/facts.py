"""Facts that an operator states of itself, for everybody who treats operators alike.

Passes, the compiler, eager mode and text ask here; none of them knows operators by their names. A
fact is an option of the declaration, a fact that depends on the call is a rule:

    laws         "commutative"   the same bits with its two operands exchanged (payloads of NaN
                                 apart); not maximum, say, which tells 0.0 from -0.0 by their order
                 "associative"   the same bits however three operands are grouped, or a reduction's
                                 axes are taken one after another
                 "idempotent"    f(f(x)) = f(x), or f(x, x) = x if it takes two operands
                 "involution"    f(f(x)) = x
    total        of finite operands it makes no NaN, unless several of them are so large that they
                 overflow
    never_negative
                 no element of its result is less than zero
    exact        it rounds at most once, so that compiled code gives NumPy's bits
    identity     its result is its first operand, as it is
    reshapes     its result has the elements of its operand in the same (C) order
    view         a rule: where the elements of the result lie in the operand's memory
    join         a rule: where the operands lie in the memory of the result
    work         what it does one floating-point operation for: each element of the "result" (as
                 elementwise operators do, unless they say otherwise), of the "operands" (as
                 reductions do), of all "windows" (its attribute kernel_size), or "nothing"
    multiplications
                 a rule of products: how many a call takes, each with an addition
    product      a rule: the call as one product of matrices, for the compiler
    sums_rows    a rule: the matrices of whose rows the gradient of an operand is a sum
    shortcut     a rule: a quicker way to the result for one value of the last operand
    ordering     a rule: the call as a sort of lines, for devices
    convolution  of what a convolution computes: the "result", or the gradient of the "input" or
                 the "weight"
    picks, puts  rules: whether an index picks one element of each row, or puts one into it
    blocks       a rule of random operators: how much of the generator's sequence a call consumes
    advances     it moves on what is threaded through a graph: a generator, or the chain of effects
    effect       it shows values to somebody: a run does it once, in its order
    communicates it does something together with other processes, in the same order on all of them
    division     a rule: which axes several processes can divide (core/division.py)
    combines     of a reduction: how the results of parts become that of the whole, "sum" say
    transfers    it moves its operand to the device that its first attribute names
    operator     the method of Python's operator that stands for it: "__add__"
    numpy        the same as an expression of NumPy, by the names of its inputs and attributes;
                 attributes that it does not name are None
    spelling     a rule: the call as an expression of NumPy, where that depends on its operands
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .shape import Shape, size_of

Rule = Callable[..., Any]
RuleT = TypeVar("RuleT", bound=Rule)

OPTIONS = frozenset(
    (
        *("laws", "exact", "identity", "reshapes", "work", "convolution", "advances"),
        *("never_negative", "operator", "numpy", "total", "communicates", "transfers"),
        "combines",
    )
)
ROW_SUMS: dict[Any, tuple[int, Rule]] = {}  # operators with a rule `sums_rows`: of which input
LAWS = frozenset(("associative", "commutative", "idempotent", "involution"))


class Facts:
    """What is known of an operator that states nothing: the default of each fact."""

    laws: tuple[str, ...] = ()
    total = False
    never_negative = False
    exact = False
    identity = False
    reshapes = False
    view_rule: Rule | None = None
    join_rule: Rule | None = None
    work: str | None = None
    multiplications_rule: Rule | None = None
    product_rule: Rule | None = None
    shortcut_rule: Rule | None = None
    ordering_rule: Rule | None = None
    convolution: str | None = None
    picks_rule: Rule | None = None
    puts_rule: Rule | None = None
    blocks_rule: Rule | None = None
    advances = False
    effect = False
    communicates = False
    division_rule: Rule | None = None
    combines: Any = None
    transfers = False
    operator: str | None = None
    numpy: str | None = None
    spelling_rule: Rule | None = None

    @property
    def is_view(self) -> bool:
        """Tell whether its result may be the memory of its operand, read by other strides."""
        return self.identity or self.reshapes or self.view_rule is not None

    def view(self, rule: RuleT) -> RuleT:
        """Attach the rule that gives the result as a view of the operand, or None if there is none.

        It receives the operand, with `shape`, `strides` (in elements) and the methods `permuted`,
        `broadcast`, `reshaped`, `sliced` and `restrided`, and the attributes.
        """
        self.view_rule = rule
        return rule

    def spelling(self, rule: RuleT) -> RuleT:
        """Attach the rule that gives a call as an expression of NumPy, or None if there is none.

        It receives the types of the operands as a list, and the attributes; operands are written by
        the names of the inputs in braces, those of a sequence with a number: `{arrays_0}`. With a
        dictionary behind it, functions of NumPy that the text calls by names of places too.
        """
        self.spelling_rule = rule
        return rule

    def join(self, rule: RuleT) -> RuleT:
        """Attach the rule that gives the operands as views of the result.

        It receives the result as `view` rules do their operand, the operands' shapes as a list, and
        the attributes.
        """
        self.join_rule = rule
        return rule

    def multiplications(self, rule: RuleT) -> RuleT:
        """Attach the rule that counts the multiplications of a product.

        It receives the shapes of the operands (None for one that is left out) and the attributes.
        """
        self.multiplications_rule = rule
        return rule

    def product(self, rule: RuleT) -> RuleT:
        """Attach the rule that gives the factors of a product of matrices, and what is added.

        It receives the operands as `view` rules do and the attributes, and returns x (..., m, k),
        y (..., k, n) and None or a row (n,); a vector stands for one row of x or column of y.
        """
        self.product_rule = rule
        return rule

    def shortcut(self, rule: RuleT) -> RuleT:
        """Attach the rule that knows a quicker way for some numbers as the last operand.

        It receives the number and returns a function of the other operand, an array, or None.
        """
        self.shortcut_rule = rule
        return rule

    def ordering(self, rule: RuleT) -> RuleT:
        """Attach the rule that gives a call as a sort of lines: an `Ordering` (core/ordering.py).

        It receives the attributes.
        """
        self.ordering_rule = rule
        return rule

    def sums_rows(self, position: int) -> Callable[[RuleT], RuleT]:
        """Attach the rule that gives the gradient of an input as a sum over rows.

        It receives the output's gradient and what the `vjp` of that input names, and returns two
        matrices, left and right, such that the gradient is left.T @ right; or None. So gradients of
        several calls are one product, of the rows of all of them.
        """

        def attach(rule: RuleT) -> RuleT:
            ROW_SUMS[self] = position, rule
            return rule

        return attach

    def picks(self, rule: RuleT) -> RuleT:
        """Attach the rule that tells whether the second operand picks one element of each row.

        Rows lie along the last axis. It receives the operands' shapes and the attributes.
        """
        self.picks_rule = rule
        return rule

    def puts(self, rule: RuleT) -> RuleT:
        """Attach the rule that tells whether the second operand puts one element into each row."""
        self.puts_rule = rule
        return rule

    def blocks(self, rule: RuleT) -> RuleT:
        """Attach the rule that counts the blocks of random bits that a call consumes.

        It receives the operands after the state (anything with shape and dtype) and the attributes.
        """
        self.blocks_rule = rule
        return rule

    def division(self, rule: RuleT) -> RuleT:
        """Attach the rule that says which axes processes can divide: see core/division.py.

        It receives the types of the operands and the attributes, and returns a Division or None.
        """
        self.division_rule = rule
        return rule

    def state(self, **facts: object) -> None:
        """Take the facts of a declaration."""
        for name, fact in facts.items():
            if name not in OPTIONS:
                raise TypeError(f"the declaration of an operator has no option {name!r}")
            setattr(self, name, fact)
        assert LAWS.issuperset(self.laws), self.laws


def operations(op: Any, shapes: Sequence[Shape | None], attrs: Sequence[Any], result: Shape) -> int:
    """Return how many floating-point operations an operator takes for operands of some shapes."""
    if op.multiplications_rule is not None:
        added = size_of(result) if op.optional and shapes[-1] is not None else 0
        return 2 * int(op.multiplications_rule(*shapes, *attrs)) + added
    work = op.work or _WORK.get(op.kind, "nothing")
    if work == "operands":
        return sum(size_of(shape) for shape in shapes if shape is not None)
    if work == "windows":
        return size_of(result) * _window(op, attrs, len(result) - 2)
    return size_of(result) if work == "result" else 0


def _window(op: Any, attrs: Sequence[Any], ndim: int) -> int:
    size = dict(zip(op.attrs, attrs, strict=True))["kernel_size"]
    return size_of(size if isinstance(size, tuple) else (size,) * ndim)


_WORK = {"elementwise": "result", "reduction": "operands"}
