"""The Op record: everything Weft knows of an operator, declared once, and the registry of them.

An operator is a signature with a docstring, to which rules are attached:

    @op(elementwise, promote="float")
    def softsign(x: Tensor) -> Tensor:
        \"\"\"Return x / (1 + |x|) for each element.\"\"\"

    softsign.lower(lambda b, x: x / (1.0 + b.abs(x)))

    @softsign.partial("x")
    def _(x):
        return F.reciprocal(F.square(1 + abs(x)))

Parameters annotated `Tensor`, `Tensor | None` or `Sequence[Tensor]` are inputs, the others are
attributes. A rule asks for what it needs by parameter name, and nothing else is kept for it:

    g             the gradient of the output (a tuple of them if there are several outputs)
    out           the output (a tuple if there are several)
    x             the input named x
    x_shape       the shape of x, without keeping x;  x_dtype likewise
    axis          the attribute named axis

Rules are written with Python operators and the namespace `F`, so that one rule serves raw arrays
(fast backward), tensors (higher order) and symbols (gradients as a graph pass).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .cached_property import cached_property
from .dtype import bool_
from .facts import Facts, Rule, RuleT
from .imports import deferred_imports
from .keywords import synonyms
from .large import door
from .large import fused as fused_composite
from .locks import fork_safe_lock
from .namespaces import Public, namespaces, publish
from .operands import use_operators
from .shape import TensorType, broadcast
from .specialize import Specialized, specialize
from .watching import unseen

if TYPE_CHECKING:
    from .samples import Sampler

elementwise = "elementwise"
reduction = "reduction"
movement = "movement"
general = "general"
random = "random"
KINDS = (elementwise, reduction, movement, general, random)

registry: dict[str, Op] = {}
composites: dict[str, Callable[..., Any]] = {}
composite_methods: dict[str, Any] = {}
composite_keywords: dict[Callable[..., Any], Mapping[str, str]] = {}
composites_of_lists: set[Callable[..., Any]] = set()  # lists of tensors stay lists there
aliases: dict[str, str] = {}  # another name -> the name of the operator or composite
_later: list[Callable[[], None]] = []
_loading = fork_safe_lock("operators")


class Op(Facts):
    """One operator: its signature, rules and samples. Call it like the function it declares."""

    _kernel: Rule | None = None  # once it is known
    data_rule: Rule | None = None
    expand_rule: Rule | None = None

    def __init__(
        self,
        declaration: Callable[..., Any],
        kind: str,
        *,
        name: str | None = None,
        promote: str | tuple[str, ...] | None = None,
        result: str | None = None,
        outputs: int | None = 1,
        linear: Iterable[str] = (),
        multilinear: Iterable[str] = (),
        method: bool | str = True,
        aliases: Iterable[str] = (),
        **facts: Any,
    ) -> None:
        self.name = name or declaration.__name__
        self.doc = declaration.__doc__ or ""
        # Like functools.wraps: help(), inspect and doctest see the declaration.
        self.__wrapped__ = declaration
        self.__module__ = declaration.__module__
        self.__doc__ = declaration.__doc__
        self.kind = kind
        self.declaration = declaration
        self.promote = promote
        self.result = result
        self.outputs = outputs
        self.linear = tuple(linear)
        self.multilinear = tuple(multilinear)
        self.method = method
        self.aliases = tuple(aliases)
        if facts:
            self.state(**facts)
        self.inputs, self.optional, self.attrs, self.variadic = _parameters(declaration)
        self.keywords: Mapping[str, str] = {}
        self.keyword_rule: Rule | None = None
        self.rule_parameters: tuple[str, ...] = ()
        self.rule_keywords: frozenset[str] = frozenset()
        self.pairs = False
        self.eval_rule: Rule | None = None
        self.canonicalize: Rule | None = None
        self.infer_rule: Rule | None = None
        self.partials: dict[str, Rule | str | int] = {}
        self.vjps: dict[str, Rule] = {}
        self.jvp_rule: Rule | None = None
        self.batch_rule: Rule | None = None
        self.lower_rule: Rule | None = None
        self.place_rule: Rule | None = None
        self.scatter_rule: Rule | None = None
        self.scan_rule: Rule | None = None
        self.sample_rule: Callable[[Sampler], Iterable[Any]] | None = None
        self.error_rule: Callable[[Sampler], Iterable[Any]] | None = None
        self.method_function: Callable[..., Any] | None = None
        self._specialized: Specialized | None = None
        # For the tape, set together with the generated functions:
        self.backward: Rule | None = None
        self.linked: Rule | None = None
        self.saves: tuple[str, ...] = ()

    # -- attaching rules --------------------------------------------------------------------

    def eval(self, kernel: RuleT) -> RuleT:
        """Attach the eager kernel: NumPy arrays and attributes in, an array out.

        Only where `lower` does not say it, or says it in a way that NumPy is slow at.
        """
        self.eval_rule = self._kernel = kernel
        return kernel

    def canon(self, rule: RuleT) -> RuleT:
        """Attach the rule that checks attributes and returns them in canonical form, as a tuple.

        It receives the inputs (anything with shape, ndim and dtype) and all attributes.
        """
        self.canonicalize = rule
        return rule

    def infer(self, rule: RuleT) -> RuleT:
        """Attach the shape and dtype rule: input types and attributes in, TensorType(s) out."""
        self.infer_rule = rule
        return rule

    def partial(self, name: str) -> Callable[[RuleT], RuleT]:
        """Attach d(out)/d(input `name`) of an elementwise operator."""
        return self._attach(self.partials, name)

    def partial_is(self, name: str, value: str | int) -> None:
        """Declare d(out)/d(input `name`) as "out", another input by name, or the constant 1 or -1.

        Says the same as a `partial` rule, and lets the generated backward skip a call.
        """
        self._attach(self.partials, name)(value)

    def vjp(self, name: str) -> Callable[[RuleT], RuleT]:
        """Attach the rule that turns the output's gradient into that of the input `name`."""
        return self._attach(self.vjps, name)

    def _attach(self, table: dict[str, Any], name: str) -> Callable[[Any], Any]:
        if name not in self.inputs:
            raise TypeError(f"{self.name} has no input {name!r}; its inputs are {self.inputs}")

        def attach(rule: Any) -> Any:
            table[name] = rule
            return rule

        return attach

    def jvp(self, rule: RuleT) -> RuleT:
        """Attach a forward-mode rule by hand (only where none can be derived well)."""
        self.jvp_rule = rule
        return rule

    def batch(self, rule: RuleT) -> RuleT:
        """Attach the batching rule used by vmap."""
        self.batch_rule = rule
        return rule

    def by_data(self, rule: RuleT) -> RuleT:
        """Attach how numbers among the attributes become operands, so that calls are alike.

        It takes what the operator does, and returns the numbers as arrays, with a function of
        tensors in their place that gives the same result; None where that serves nothing.
        """
        self.data_rule = rule
        return rule

    def lower(self, rule: RuleT) -> RuleT:
        """Attach what is computed for an element: for machine code and, without `eval`, NumPy."""
        self.lower_rule = rule
        return rule

    def place(self, rule: RuleT) -> RuleT:
        """Attach the rule that gives an element of the result by its place, for the compiler."""
        self.place_rule = rule
        return rule

    def scatter(self, rule: RuleT) -> RuleT:
        """Attach the rule that says where values go in the result, for the compiler."""
        self.scatter_rule = rule
        return rule

    def scan(self, rule: RuleT) -> RuleT:
        """Attach the rule for one step along an axis, for the compiler."""
        self.scan_rule = rule
        return rule

    def expand(self, rule: RuleT) -> RuleT:
        """Attach the same in other operators, for devices that have no kernel of its own for it.

        It receives the inputs as tensors and the attributes, and returns the results; None where it
        knows no way.
        """
        self.expand_rule = rule
        return rule

    def samples(self, rule: RuleT) -> RuleT:
        """Attach the generator of sample inputs that drives the conformance suite."""
        self.sample_rule = rule
        return rule

    def error_samples(self, rule: RuleT) -> RuleT:
        """Attach the generator of bad inputs, each with the error it must raise."""
        self.error_rule = rule
        return rule

    def as_method(self, fn: RuleT) -> RuleT:
        """Attach the function to use as Tensor method where it differs, e.g. x.reshape(2, 3)."""
        self.method_function = fn
        return fn

    def by_keywords(self, *, pairs: bool = False) -> Callable[[RuleT], RuleT]:
        """Attach what a call with PyTorch's keywords does where it differs: a function of them.

        It runs when one of its own keywords is given, those that are no parameters of the operator.
        pairs   it gives values and indices, where the operator gives values alone
        """

        def attach(rule: RuleT) -> RuleT:
            code = rule.__code__
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            self.keyword_rule, self.rule_parameters, self.pairs = rule, names, pairs
            self.rule_keywords = frozenset(names) - {*self.inputs, *self.attrs}
            return rule

        return attach

    # -- using the operator -----------------------------------------------------------------

    @property
    def synonyms(self) -> dict[str, str]:
        """Return PyTorch's keywords, each with the parameter it stands for."""
        return synonyms(self.inputs, (*self.inputs, *self.attrs), self.keywords)

    @property
    def differentiable(self) -> bool:
        """Tell whether any input has a derivative rule."""
        return bool(self.partials or self.vjps)

    @property
    def kernel(self) -> Rule | None:
        """Return the eager kernel: the one attached, or what `lower` says, made on first use."""
        if self._kernel is None and self.lower_rule is not None:
            self._kernel = self.derived
        return self._kernel

    @cached_property
    def derived(self) -> Rule:
        """Return the kernel that `lower` says, whatever is attached."""
        with deferred_imports:
            from .scalar.kernels import derived_kernel  # noqa: PLC0415  (`import weft` needs none)

        return derived_kernel(self)

    @property
    def specialized(self) -> Specialized:
        """Return the generated functions of this operator, built on first use."""
        if self._specialized is None:
            with unseen():
                made = specialize(self)
            self.backward, self.linked, self.saves = made.backward, made.linked, made.saves
            door.admit(self, made.scope)  # which may replace `backward`, now or in another thread
            self._specialized = made  # the last: other threads, and children, see all or nothing
        return self._specialized

    @property
    def function(self) -> Callable[..., Any]:
        """Return the public function of this operator."""
        return self.specialized.call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the operator to tensors (or to raw arrays, inside rules)."""
        return self.specialized.poly(*args, **kwargs)

    def type_rule(self, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Return the output type(s) for input types and canonical attributes."""
        if self.infer_rule is not None:
            return self.infer_rule(*types, *attrs)
        if self.kind == elementwise:
            return self._elementwise_type(types)
        raise TypeError(f"operator {self.name} declares no shape rule")

    def _elementwise_type(self, types: tuple[TensorType, ...]) -> TensorType:
        shape = broadcast(*(t.shape for t in types))
        promoted = [t.dtype for n, t in zip(self.inputs, types, strict=True) if n in self.promoted]
        from_dtypes = promoted or [types[0].dtype]
        return TensorType(shape, bool_ if self.result == "bool" else from_dtypes[0])

    @property
    def promoted(self) -> tuple[str, ...]:
        """Return the names of the inputs that are brought to a common dtype."""
        return self.promote if isinstance(self.promote, tuple) else self.inputs

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (find_op, (self.name,))


def op(
    kind: str = general,
    *,
    keywords: Mapping[str, str] | None = None,
    public: Public | None = None,
    batch: Rule | None = None,
    scalar: bool = False,
    **options: Any,
) -> Callable[[Callable[..., Any]], Op]:
    """Declare an operator from a function whose signature and docstring describe it.

    promote      "common": bring the inputs to one dtype; "float": and to a float dtype; a tuple of
                 input names: only those, to a common dtype; None: take inputs as they are
    result       "bool" if an elementwise operator yields truth values
    outputs      number of outputs, or None if it varies (the kernel then returns a tuple)
    linear       inputs in which the operator is jointly linear: jvp applies it to the tangents
    multilinear  inputs in each of which it is linear: jvp sums over them
    method       False: no Tensor method; a string: the method's name
    aliases      other names of the same function (and method)
    keywords     PyTorch's names of parameters beyond those of core/keywords.py
    public       in which namespaces it is: see core/namespaces.py
    batch        the batching rule, where it is one that many operators share
    scalar       True: it computes the scalar function of its name (core/scalar/functions.py)

    Further options are facts, explained in core/facts.py.
    """
    assert kind in KINDS, kind

    def declare(declaration: Callable[..., Any]) -> Op:
        record = Op(declaration, kind, **options)
        record.keywords = keywords or {}
        record.batch_rule = batch
        if scalar:
            record.lower(_scalar_function(record.name))
        assert record.name not in registry, f"operator {record.name} is declared twice"
        registry[record.name] = record
        _add_aliases(record.name, record.aliases)
        shown = bool(record.method) if public is None else public
        publish(record.name, record.aliases, shown, record.__module__)
        return record

    return declare


def _scalar_function(name: str) -> Rule:
    def lower(b: Any, *operands: Any) -> Any:
        return getattr(b, name)(*operands)

    return lower


FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
FoundT = TypeVar("FoundT")


def composite(
    *,
    method: bool | str = False,
    name: str | None = None,
    aliases: Sequence[str] = (),
    keywords: Mapping[str, str] | None = None,
    fused: bool | Callable[..., bool] = False,
    public: Public = True,
    lists: bool = False,
) -> Callable[[FunctionT], FunctionT]:
    """Register a function written in operators; it needs no rules of its own.

    method   True: also a Tensor method of that name; a string: under that name
    name     the name in the namespace F, if the function's own name is taken in its module
    keywords PyTorch's names of parameters beyond those of core/keywords.py
    fused    whether it is one compiled kernel on large tensors; a function of its arguments may
             tell whether these are large
    public   in which namespaces it is: see core/namespaces.py
    lists    whether lists of tensors, after the first argument, are several and not one tensor
    """

    def declare(fn: FunctionT) -> FunctionT:
        known_as = name or fn.__name__
        assert known_as not in composites, f"composite {known_as} is declared twice"
        assert known_as not in registry, f"{known_as} is an operator already"
        if fused:
            fn = fused_composite(known_as, fn, None if fused is True else fused)
        composites[known_as] = fn
        if keywords:
            composite_keywords[fn] = keywords
        if lists:
            composites_of_lists.add(fn)
        _add_aliases(known_as, aliases)
        publish(known_as, aliases, public, fn.__module__)
        if method:
            for method_name in (method if isinstance(method, str) else known_as, *aliases):
                composite_methods[method_name] = fn
        return fn

    return declare


def _add_aliases(name: str, others: Iterable[str]) -> None:
    for other in others:
        assert other not in aliases, f"alias {other} is given twice"
        aliases[other] = name


def declare_later(load: Callable[[], None]) -> None:
    """Register a function that declares further operators; it runs when a name is not yet known.

    So `import weft` pays only for what most programs use.
    """
    _later.append(load)


def load_all() -> None:
    """Declare every operator now: for those who walk the registry."""
    with _loading:
        while _later:
            _later.pop(0)()


def find(name: str) -> Op | Callable[..., Any] | None:
    """Return the operator or composite of that name, or None if there is none."""
    return _loaded_until(lambda: _known(name))


def find_public(namespace: str, name: str) -> str | None:
    """Return which operator or composite a name of a namespace stands for, None if it has none."""
    return _loaded_until(lambda: namespaces[namespace].get(name))


def public_names(namespace: str) -> list[str]:
    """Return all names of a namespace."""
    load_all()
    return sorted(namespaces[namespace])


def _loaded_until(known: Callable[[], FoundT | None]) -> FoundT | None:
    """Declare what is declared later, package by package, until something is known."""
    found = known()
    if found is None:
        with unseen(), _loading:
            found = known()
            while found is None and _later:
                _later.pop(0)()
                found = known()
    return found


def _known(name: str) -> Op | Callable[..., Any] | None:
    known_as = aliases.get(name, name)
    return registry.get(known_as) or composites.get(known_as)


def find_op(name: str) -> Op:
    """Return the operator of that name."""
    found = find(name)
    if not isinstance(found, Op):
        raise KeyError(f"no operator is named {name!r}")
    return found


class Namespace:
    """Every operator and composite by name, resolved when first used.

    Rules and composites call `F.sum(x)` without importing the file that declares `sum`; raw arrays
    give arrays, tensors give tensors.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found = find(name)
        if found is None:
            raise AttributeError(f"no operator is named {name!r}")
        function = found.specialized.poly if isinstance(found, Op) else found
        setattr(self, name, function)
        return function


F = Namespace()
use_operators(lambda name: find_op(name).function)


def _parameters(
    declaration: Callable[..., Any],
) -> tuple[tuple[str, ...], frozenset[str], dict[str, Any], bool]:
    """Split a declaration's parameters into inputs (required, optional) and attributes.

    Reads the code object: inspect.signature would make `import weft` several times slower.
    """
    code, hints = declaration.__code__, declaration.__annotations__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    inputs = tuple(n for n in names if "Tensor" in str(hints.get(n, "")))
    optional = frozenset(n for n in inputs if "None" in str(hints[n]))
    variadic = any("Sequence" in str(hints[n]) for n in inputs)
    defaults = declaration.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    with_default = dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    with_default.update(declaration.__kwdefaults__ or {})
    attrs = {n: with_default.get(n, REQUIRED) for n in names if n not in inputs}
    return inputs, optional, attrs, variadic


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()
