"""Turn an Op record into straight-line Python functions: the eager hot path.

`dispatch.apply` says what happens to an operation in general; here the same steps are written out
for one operator, with its kernel, rules and attribute names bound, so that an eager call costs
little more than NumPy itself: no loops over inputs, no keyword dictionaries, no type tests that
the operator does not need. The text is registered with linecache, so tracebacks and pdb show it.

These functions are made for each operator:

    call(x, y, axis=0)          the public function, which takes PyTorch's keywords too
    operation(x, y)             the same for `x + y` and its like, which have no keywords
    execute(inputs, attrs)      the same on lifted tensors, from `dispatch.apply`
    poly(x, y, axis=0)          for rules: raw arrays in, raw arrays out; tensors likewise
    backward(node, saved, g)    the gradients of the inputs; `linked` is its twin for tensors

Names in the text: for an input x, `x_` is its array and `x_n` its tape node.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import dispatch
from .dtype import float32, float64
from .errors import GENERATED_PREFIX, ArgumentTypeError, caller_site, internal_code
from .generated import show_source
from .keywords import (
    MISSING,
    OPERANDS,
    call_with_keywords,
    check_given,
    named,
    plain_uses,
    refuse_pair,
)
from .large import LARGE, door
from .modes import interpreter_here, is_grad_enabled, modes
from .tape import FanNode, Leaf, TapeNode, next_order
from .tensor import Tensor, new_tensor

if TYPE_CHECKING:
    from .facts import Rule
    from .op import Op

META = ("_shape", "_dtype")
# The rules of interpreters run plain operations: an interpreter somewhere is not one here.
INTERPRETED = "(modes.interpreters and (interpreter_here() or modes.base) is not None)"


# What a generated backward multiplies and negates with. On arrays the ufuncs themselves are called:
# they start a quarter faster than the operators.
ARRAY_ARITHMETIC = {"times": np.multiply, "negative": np.negative}
TENSOR_ARITHMETIC = {"times": operator.mul, "negative": operator.neg}


class Specialized(NamedTuple):
    """The generated functions of one operator, and what its nodes save."""

    call: Callable[..., Any]
    operation: Callable[..., Any]
    execute: Callable[..., Any]
    poly: Callable[..., Any]
    backward: Callable[..., Any] | None
    linked: Callable[..., Any] | None
    saves: tuple[str, ...]
    source: str
    scope: dict[str, Any]


def specialize(op: Op) -> Specialized:
    """Generate and compile the functions of an operator."""
    writer = _Writer(op)
    source = writer.source()
    filename = f"{GENERATED_PREFIX}{op.name}>"
    scope = writer.scope()
    exec(compile(source, filename, "exec"), scope)
    show_source(filename, source)
    call = scope["public"] = scope[writer.name]  # by a name that no parameter has
    call.__doc__ = op.doc
    call.__annotations__ = dict(op.declaration.__annotations__)
    call.op = op
    call.__wrapped__ = op.declaration  # whose signature help() shows
    backward, linked = scope.get("backward"), None
    if backward is not None:
        linked = FunctionType(backward.__code__, scope | TENSOR_ARITHMETIC, "linked")
    poly, execute = scope["poly"], scope["execute"]
    operation = scope.get("operation", call)
    saves = writer.saves
    return Specialized(call, operation, execute, poly, backward, linked, saves, source, scope)


def with_kernel(
    made: Specialized, kernel: Callable[..., Any], result: type, wrap_outputs: Callable[..., Any]
) -> Callable[..., Any]:
    """Return `execute` with another kernel, whose results are of a class and need no conversion."""
    inside = {"kernel": kernel, "ndarray": result, "wrap_outputs": wrap_outputs}
    return FunctionType(made.execute.__code__, made.scope | inside, "execute")


class _Writer:
    """Writes the source text for one operator."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.name = op.name if op.name.isidentifier() else "operator"
        self.fixed = op.inputs[:-1] if op.variadic else op.inputs
        self.variadic = op.inputs[-1] if op.variadic else None
        self.attrs = tuple(op.attrs)
        self.unary = not self.variadic and len(self.fixed) == 1
        self.rules: dict[str, Rule | str | int] = {**op.partials, **op.vjps}
        self.wanted = {name: needs(rule) for name, rule in self.rules.items()}
        self.saves = self._saves()
        self.broadcasts = op.kind == "elementwise" and len(self.fixed) > 1 and bool(self.rules)

    def _saves(self) -> tuple[str, ...]:
        """Return everything that some rule asks for, in a fixed order; attributes are apart."""
        asked = {name for names in self.wanted.values() for name in names}
        return tuple(sorted(asked - {"g"} - set(self.attrs)))

    def scope(self) -> dict[str, Any]:
        op = self.op
        scope: dict[str, Any] = {
            "__name__": f"weft.ops.{op.name}",
            "OP": op,
            "Node": TapeNode,
            "FanNode": FanNode,
            "Leaf": Leaf,
            "ArgumentTypeError": ArgumentTypeError,
            "LARGE": LARGE,
            "Tensor": Tensor,
            "MISSING": MISSING,
            "ERRORS": dispatch.ERRORS,
            "FLOAT_WARNINGS": dispatch.FLOAT_WARNINGS,
            "apply": dispatch.apply,
            "asarray": _same if op.transfers else np.asarray,
            "canon": op.canonicalize,
            "call_with_keywords": call_with_keywords,
            "caller_site": caller_site,
            "check_given": check_given,
            "getframe": sys._getframe,
            "internal_code": internal_code,
            "interpreter_here": interpreter_here,
            "door": door,
            "explain": dispatch.explain,
            "f32": float32,
            "f64": float64,
            "is_grad_enabled": is_grad_enabled,
            "kernel": op.kernel,
            "lift_scalar": dispatch.lift_scalar,
            "modes": modes,
            "named": named,
            "ndarray": np.ndarray,
            "new_tensor": new_tensor,
            "next_order": next_order,
            "plain_uses": plain_uses,
            "quietly": dispatch.quietly,
            "refuse_pair": refuse_pair,
            "sequence": dispatch.sequence,
            "sum_to": dispatch.sum_to,
            "wrap_outputs": dispatch.wrap_outputs,
        }
        scope |= ARRAY_ARITHMETIC
        scope |= {f"default_{name}": value for name, value in op.attrs.items()}
        scope |= {f"rule_{name}": rule for name, rule in self.rules.items()}
        return scope

    # -- the four functions ------------------------------------------------------------------

    def source(self) -> str:
        parts = [self._call(), self._execute(), self._poly()]
        if self._binary():
            parts.append(self._operation())
        if self.rules:
            parts.append(self._backward())
        return "\n\n".join(parts) + "\n"

    def _call(self) -> str:
        lines = [*self._keywords("public"), *self._missing()]
        if self.op.pairs:
            lines += [
                "if axis is not None:",
                "    frame = getframe(1)",
                "    if (id(frame.f_code), frame.f_lasti) not in plain_uses:",
                f"        refuse_pair({self.name!r}, frame)",
            ]
        return function(self.name, self._signature(), [*lines, *self._applied()])

    def _operation(self) -> str:
        return function("operation", ", ".join(self.fixed), self._applied(named=False))

    def _applied(self, *, named: bool = True) -> list[str]:
        """Return the lines of the public function that follow its arguments."""
        inputs = self._tuple(self._flat_inputs())
        retry = f"return apply(OP, {inputs}, {self._tuple(self.attrs)})"
        caught = "(AttributeError, TypeError)" if self.variadic else "AttributeError"
        return [
            *self._scalars(),
            "try:",
            *indent(self._values()),
            f"except {caught}:",
            *indent(self._found_missing(named)),
            f"    {retry}",
            f"if {' or '.join((INTERPRETED, *self._dtype_tests()))}:",
            f"    {retry}",
            *self._body(),
        ]

    def _execute(self) -> str:
        fixed = list(self.fixed) + ([f"*{self.variadic}"] if self.variadic else [])
        lines = [
            f"{self._tuple(fixed)} = inputs" if fixed else "",
            f"{self._tuple(self.attrs)} = attrs" if self.attrs else "",
            *self._values(),
            *self._body(watched=True),
        ]
        return function("execute", "inputs, attrs", [line for line in lines if line])

    def _poly(self) -> str:
        tests = [f"isinstance({name}, Tensor)" for name in self.fixed]
        if self.variadic:
            tests.append(f"any(isinstance(t, Tensor) for t in {self.variadic})")
        lines = [*self._keywords("poly"), *self._missing()] if self.attrs else []
        if tests:
            lines += [f"if {' or '.join(tests)}:", f"    return public({self._arguments()})"]
        else:
            lines += [f"return public({self._arguments()})"]
        arrays = [*self.fixed, *([self.variadic] if self.variadic else [])]
        lines += self._canon(arrays)
        lines.append(f"return kernel({', '.join([*arrays, *self.attrs])})")
        plain = ", ".join(map(self._parameter, self.op.inputs))
        signature = self._signature() if self.attrs else plain
        return function("poly", signature, lines)

    def _backward(self) -> str:
        grads = [f"{name}_g" for name in self.fixed]
        names = [f"{name}_n" for name in self.fixed]
        rest = f"{self.variadic}_n" if self.variadic else None
        lines = []
        if not self.unary:
            lines.append(f"{self._tuple([*names, *([f'*{rest}'] if rest else [])])} = node.parents")
        lines += [f"{self._tuple(self.saves)} = saved"] if self.saves else []
        lines += [f"{self._tuple(self.attrs)} = node.attrs"] if self.attrs else []
        lines += ["shapes = node.shapes"] if self.broadcasts else []
        lines += [f"{' = '.join(grads)} = None"] if grads and not self.unary else []
        for i, name in enumerate(self.fixed):
            if name in self.rules:
                lines += [] if self.unary else [f"if {name}_n is not None:"]
                lines += indent(self._gradient(i, name), 0 if self.unary else 1)
        if self.variadic:
            has_rule = self.variadic in self.rules
            value = self._rule_call(self.variadic) if has_rule else f"[None] * len({rest})"
            lines.append(f"{self.variadic}_g = {value}")
            grads.append(f"*{self.variadic}_g")
        lines.append(f"return {self._tuple(grads)}")
        return function("backward", "node, saved, g", lines)

    def _gradient(self, position: int, name: str) -> list[str]:
        lines = [f"{name}_g = {self._gradient_expression(name)}"]
        if "sparse" in self.attrs:  # rows go to leaves, and no further (core/row_sparse.py)
            lines += [
                f"if sparse and {name}_n.__class__ is not Leaf:",
                f"    {name}_g = {name}_g.to_dense()",
            ]
        if self.broadcasts:
            lines += [
                "if shapes is not None:",
                f"    {name}_g = sum_to({name}_g, shapes[{position}])",
            ]
        return lines

    def _gradient_expression(self, name: str) -> str:
        partial = self.op.partials.get(name)
        if partial is None:
            return self._rule_call(name)
        if isinstance(partial, int):
            return {1: "g", -1: "negative(g)"}[partial]
        return f"times(g, {partial if isinstance(partial, str) else self._rule_call(name)})"

    def _rule_call(self, name: str) -> str:
        return f"rule_{name}({', '.join(self.wanted[name])})"

    # -- pieces of the forward functions -------------------------------------------------------

    def _signature(self) -> str:
        """Return the declared parameters, with defaults, and room for PyTorch's keywords.

        Operands have a default too, since `input=` may bring them.
        """
        code = self.op.declaration.__code__
        positional = code.co_varnames[: code.co_argcount]
        keyword = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
        parts = [self._parameter(name) for name in positional]
        if self._simple():  # a call to `**keywords` costs more
            return ", ".join([*parts, *(f"{name}=MISSING" for name in self._operands())])
        if keyword:
            parts += ["*", *(self._parameter(name) for name in keyword)]
        return ", ".join([*parts, "**keywords"])

    def _simple(self) -> bool:
        """Tell whether one or two operands are all there is, under the names of this module."""
        plain = not (self.variadic or self.attrs or self.op.keywords or self.op.rule_keywords)
        return plain and 0 < len(self.fixed) <= 2 and not {*OPERANDS} & {*self.fixed}

    def _operands(self) -> list[str]:
        """Return PyTorch's names of the operands, the last one first, which a method may name."""
        return [*reversed(OPERANDS[: len(self.fixed)])]

    def _binary(self) -> bool:
        """Tell whether it may be one of Python's operators."""
        return len(self.fixed) == 2 and not (self.variadic or self.attrs)

    def _parameter(self, name: str) -> str:
        if name in self.op.optional:
            return f"{name}=None"
        return f"{name}=MISSING" if self._required(name) else f"{name}=default_{name}"

    def _required(self, name: str) -> bool:
        if name in self.op.inputs:
            return name not in self.op.optional
        return repr(self.op.attrs[name]) == "REQUIRED"

    def _keywords(self, function: str) -> list[str]:
        """Return the lines that see to PyTorch's keywords."""
        given = f"{{{', '.join(f'{n!r}: {n}' for n in (*self.op.inputs, *self.attrs))}}}"
        test = keywords = "keywords"
        if self._simple():  # where one tensor is given for both, the operands are found missing
            names = self._operands()
            test = f"{names[0]} is not {names[1] if len(names) > 1 else 'MISSING'}"
            keywords = f"named({', '.join(f'{name}={name}' for name in names)})"
        return [
            f"if {test}:",
            f"    return call_with_keywords(OP, {function}, {given}, {keywords})",
        ]

    def _found_missing(self, named: bool) -> list[str]:
        """Return the lines for operands that are no tensors, perhaps since they are not given."""
        lines = [f"check_given(OP, {self._tuple(self.fixed)})"]
        if named and self._simple() and len(self.fixed) == 2:
            again = f"    return public({', '.join(OPERANDS)})"
            lines = [f"if {self.fixed[0]} is MISSING and input is not MISSING:", again, *lines]
        return lines

    def _missing(self) -> list[str]:
        """Return the lines that miss a required attribute; a missing operand shows by itself."""
        lines = []
        for name in filter(self._required, self.attrs):
            missing = f'"{self.name}: the argument {name!r} is missing"'
            lines += [f"if {name} is MISSING:", f"    raise ArgumentTypeError({missing})"]
        return lines

    def _arguments(self) -> str:
        code = self.op.declaration.__code__
        positional = code.co_varnames[: code.co_argcount]
        keyword = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
        return ", ".join([*positional, *(f"{name}={name}" for name in keyword)])

    def _flat_inputs(self) -> list[str]:
        if self.variadic is None:
            return list(self.fixed)
        return [*self.fixed, f"*sequence(OP, {self.variadic})"]

    def _scalars(self) -> list[str]:
        """Lift a Python number right of a float tensor to a cached constant of its dtype."""
        if self.op.kind != "elementwise" or len(self.fixed) != 2 or self.op.promote is None:
            return []
        x, y = self.fixed
        return [
            f"if {y}.__class__ is float or {y}.__class__ is int:",
            f"    {y} = lift_scalar({y}, {x})",
        ]

    def _values(self) -> list[str]:
        lines = [f"{name}_ = {self._value(name)}" for name in self.fixed]
        if self.variadic:
            lines.append(f"{self.variadic}_ = [t._value for t in {self.variadic}]")
        return lines or ["pass"]

    def _value(self, name: str) -> str:
        value = f"{name}._value"
        return f"None if {name} is None else {value}" if name in self.op.optional else value

    def _dtype_tests(self) -> list[str]:
        """Return conditions under which dtypes need the general path."""
        names = [n for n in self.op.promoted if n in self.fixed and n not in self.op.optional]
        if self.op.promote is None:
            return []
        if self.variadic in self.op.promoted:
            return [f"len({{t.dtype for t in {self.variadic}_}}) != 1"]
        first, *others = names
        tests = [f"{first}_.dtype is not {other}_.dtype" for other in others]
        if self.op.promote == "float":
            tests.append(f"({first}_.dtype is not f32 and {first}_.dtype is not f64)")
        tests += [
            f"({n} is not None and {n}_.dtype is not {first}_.dtype)"
            for n in self.op.promoted
            if n in self.op.optional
        ]
        return tests

    def _canon(self, arrays: list[str]) -> list[str]:
        if self.op.canonicalize is None:
            return []
        return [f"{self._tuple(self.attrs)} = canon({', '.join([*arrays, *self.attrs])})"]

    def _body(self, *, watched: bool = False) -> list[str]:
        """Return the lines that compute and record; `watched` looks out for large results."""
        arrays = [f"{n}_" for n in (*self.fixed, *([self.variadic] if self.variadic else []))]
        inputs = [*self.fixed, *([f"*{self.variadic}"] if self.variadic else [])]
        arguments = ", ".join([*arrays, *self.attrs])
        received = f"{self._tuple(inputs)}, {self._tuple(self.attrs)}"
        lines = [
            "try:",
            *indent(self._canon(arrays)),
            f"    v = kernel({arguments})",
            "except FLOAT_WARNINGS:",
            f"    v = quietly(kernel, {arguments})",
            "except ERRORS as error:",
            f"    raise explain(OP, error, {received}) from None",
        ]
        if self.op.outputs != 1:
            return lines + self._several_outputs()
        return lines + self._one_output(watched)

    def _one_output(self, watched: bool) -> list[str]:
        lines = [
            "if v.__class__ is not ndarray:",
            "    v = asarray(v)",
            "out = new_tensor()",
            "out._value = v",
        ]
        # Others make large tensors from large ones, or seldom: batches, by broadcasting. Products
        # do: a convolution makes large images of small ones.
        makes = self.op.kind == "random" or self.op.multiplications_rule is not None
        if makes or (watched and self.broadcasts):
            lines += ["if v.size >= LARGE and not door.open:", "    door.unlock()"]
        if not self.rules:
            return [*lines, "out._node = None", "return out"]
        skip = self._untracked()
        if self.op.result == "any":
            skip += " or v.dtype.kind not in 'fV'"
        return [
            *lines,
            *self._nodes(),
            f"if {skip}:",
            "    out._node = None",
            "    return out",
            "out._node = node = Node()",
            *self._record(),
            "return out",
        ]

    def _several_outputs(self) -> list[str]:
        if not self.rules:
            return ["return wrap_outputs(v, None)"]
        return [
            *self._nodes(),
            f"if {self._untracked()}:",
            "    return wrap_outputs(v, None)",
            "node = FanNode()",
            *self._record(),
            "return wrap_outputs(v, node)",
        ]

    def _nodes(self) -> list[str]:
        lines = []
        for name in self.fixed:
            node = f"{name}._node"
            optional = name in self.op.optional
            lines.append(
                f"{name}_n = {f'None if {name} is None else {node}' if optional else node}"
            )
        if self.variadic:
            lines.append(f"{self.variadic}_n = [t._node for t in {self.variadic}]")
        return lines

    def _untracked(self) -> str:
        """Return the condition under which nothing is recorded."""
        tests = [f"{name}_n is None" for name in self.fixed if name in self.rules]
        if self.variadic and self.variadic in self.rules:
            tests.append(f"not any({self.variadic}_n)")
        connected = " and ".join(tests)
        return f"({connected}) or (modes.grad_overrides and not is_grad_enabled())"

    def _record(self) -> list[str]:
        parents = [f"{n}_n" if n in self.rules else "None" for n in self.fixed]
        if self.variadic:
            parents.append(f"*{self.variadic}_n")
        saved = [self._saved(name) for name in self.saves]
        lines = [
            "node.order = next_order()",
            "node.op = OP",
            f"node.parents = {self._tuple(parents)}",
            f"node.saved = {self._tuple(saved)}",
            "node.watch = None",
        ]
        if self.attrs:
            lines.append(f"node.attrs = {self._tuple(self.attrs)}")
        if self.broadcasts:
            shapes = [f"{name}_.shape" for name in self.fixed]
            lines.append(f"node.shapes = None if {' == '.join(shapes)} else {self._tuple(shapes)}")
        return [
            *lines,
            "frame = getframe(1)",
            "code = frame.f_code",
            "if internal_code.get(id(code)) is not False:",
            "    code, node.offset = caller_site(frame)",
            "else:",
            "    node.offset = frame.f_lasti",
            "node.code = code",
        ]

    def _saved(self, name: str) -> str:
        """Return the expression to save: nothing, where only unneeded rules would ask for it."""
        value = self._saved_value(name)
        users = [n for n, wanted in self.wanted.items() if name in wanted]
        if name.endswith(META) or len(users) == len(self.rules):
            return value
        needed = " or ".join(f"{n}_n is not None" for n in users if n != self.variadic)
        return f"{value} if {needed} else None" if needed else value

    def _saved_value(self, name: str) -> str:
        if name == "out":
            return "v" if self.op.outputs == 1 else "tuple(v)"
        if name in self.op.inputs:
            return f"{name}_"
        base, _, meta = name.rpartition("_")
        if base not in self.op.inputs or f"_{meta}" not in META:
            raise TypeError(
                f"a rule of {self.op.name} asks for {name!r}, which is neither g, out, an input "
                f"{self.op.inputs}, an attribute {self.attrs}, nor <input>_shape/_dtype"
            )
        if base == self.variadic:
            return f"[t.{meta} for t in {base}_]"
        value = f"{base}_.{meta}"
        return f"None if {base}_ is None else {value}" if base in self.op.optional else value

    @staticmethod
    def _tuple(items: Any) -> str:
        items = tuple(items)
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _same(value: Any) -> Any:
    """Return what a transfer made: an array, or a value of a device."""
    return value


def needs(rule: Rule | str | int) -> tuple[str, ...]:
    """Return the names of the values a rule needs: its parameters, or what it is itself."""
    if isinstance(rule, int):
        return ()
    if isinstance(rule, str):
        return (rule,)
    code = rule.__code__
    return code.co_varnames[: code.co_argcount]


def function(name: str, signature: str, lines: list[str]) -> str:
    """Return the text of a function definition."""
    return "\n".join([f"def {name}({signature}):", *indent(lines)])


def indent(lines: list[str], levels: int = 1) -> list[str]:
    """Return lines moved to the right."""
    return ["    " * levels + line for line in lines]
