"""Jacobians and Hessians: a whole basis pushed forward, or pulled back, at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.dim import Dim
from ..core.dtype import is_float
from ..core.errors import ArgumentError, DTypeError, ShapeError
from ..core.imports import deferred_imports
from ..core.modes import current_tracer, no_grad
from ..core.op import F
from ..core.rng import default_generator
from ..core.shape import TensorType, size_of
from ..core.tensor import Tensor, constant
from .arguments import Argnums, Chosen, check_callable, name_of
from .batching import vmap
from .coloring import Coloring, as_pattern, color
from .forward import jvp
from .gradient import Beside, grad, named_after
from .pullback import or_zeros, pull_back_of

Rows = Sequence[Any]
LinearMap = Callable[[list[Any]], list[Any]]


def jacfwd(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes fn's Jacobian column by column, in forward mode.

    That suits functions with fewer inputs than outputs. The result is fn's result with the tree of
    the argument in place of each leaf y; its leaves have the shape y.shape + x.shape. argnums and
    has_aux are as in `grad`.

    >>> import weft as wf
    >>> wf.jacfwd(lambda x: x * x)(wf.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _transform(fn, argnums, has_aux, _Jacobian.forward, "jacfwd")


def jacrev(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes fn's Jacobian row by row, in reverse mode.

    That suits functions with fewer outputs than inputs. The result is that of `jacfwd`.

    >>> import weft as wf
    >>> wf.jacrev(lambda x: wf.stack([x.sum(), x[0]]))(wf.tensor([1.0, 2.0]))
    tensor([[1., 1.],
            [1., 0.]])
    """
    return _transform(fn, argnums, has_aux, _Jacobian.reverse, "jacrev")


def jacobian(
    fn: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    sparsity: Any = None,
) -> Callable[..., Any]:
    """Return the function that computes fn's Jacobian in the mode that needs fewer passes.

    To know which, fn is run once more, on the values alone.

    sparsity   where the Jacobian may differ from zero: an array of truth values with a row for each
               element of the result and a column for each element of the argument, both one tensor.
               Columns (or rows) that share no row (no column) are then computed together.

    >>> import weft as wf
    >>> pattern = [[True, False], [False, True]]
    >>> wf.jacobian(lambda x: x * x, sparsity=pattern)(wf.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if sparsity is None:
        return _transform(fn, argnums, has_aux, _Jacobian.either, "jacobian")
    pattern = as_pattern(sparsity)

    def compressed(self: _Jacobian) -> Any:
        return self.sparse(pattern)

    return _transform(fn, argnums, has_aux, compressed, "jacobian")


def hessian(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes fn's matrix of second derivatives, forward over reverse.

    >>> import weft as wf
    >>> wf.hessian(lambda x: x[0] * x[1] ** 2)(wf.tensor([1.0, 3.0]))
    tensor([[0., 6.],
            [6., 2.]])
    """
    check_callable(fn, "hessian")
    return named_after(jacfwd(jacrev(fn, argnums, has_aux), argnums, has_aux), fn)


def hvp(fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Return the Hessian of fn, whose result is one number, times the tangents.

    Forward over reverse: about the cost of four evaluations of fn, and no matrix is formed. As
    `grad` does, it returns a tree like the primal, or a tuple of them if there are several.

    >>> import weft as wf
    >>> wf.hvp(lambda x: (x**3).sum(), (wf.tensor([1.0, 2.0]),), (wf.tensor([1.0, 1.0]),))
    tensor([ 6., 12.])
    """
    check_callable(fn, "hvp")
    single = len(primals) == 1
    return jvp(grad(fn, 0 if single else tuple(range(len(primals)))), primals, tangents)[1]


def _transform(
    fn: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    compute: Callable[[_Jacobian], Any],
    what: str,
) -> Callable[..., Any]:
    check_callable(fn, what)

    def transformed(*args: Any, **kwargs: Any) -> Any:
        call = _Jacobian(Chosen(fn, args, kwargs, argnums), has_aux, what)
        found = compute(call)
        return (found, call.beside.restored(call.others)) if has_aux else found

    return named_after(transformed, fn)


class _Jacobian:
    """One computation of a Jacobian: a function of flat lists, with the forms of its trees."""

    def __init__(self, call: Chosen, has_aux: bool, what: str) -> None:
        self.call = call
        self.primals = call.primals
        self.what = f"{what} of {name_of(call.fn)}"
        self.beside = Beside(call, has_aux)
        self.others: list[Any] = []

    def flat(self, primals: list[Any]) -> list[Any]:
        """Return the leaves of the result, then the tensors of what stands beside it."""
        return self.beside.flat(primals, f"{self.what}: the result")

    @property
    def count(self) -> int:
        """Return how many leaves the result has."""
        return self.beside.count

    def forward(self) -> Any:
        """Push the basis of the arguments forward."""
        columns = self.push(basis(self.primals, self.what))
        return self._tree([self._cut(column) for column in columns])

    def push(self, tangents: Rows) -> list[Any]:
        """Return the tangents of the outputs for each row of tangents, first axis for rows."""
        flat = named_after(lambda *xs: self.flat(list(xs)), self.call.fn)

        def linear(row: list[Any]) -> list[Any]:
            made, found = jvp(flat, self.primals, row)
            self._settle(made)
            return found[: self.count]  # type: ignore[no-any-return]  # a list, as flat returns

        return map_rows(linear, tangents)

    def reverse(self) -> Any:
        """Pull the basis of the result back."""
        outputs, pull, _ = pull_back_of(self.flat, self.primals, what=self.beside.name)
        self._settle(outputs)
        return self._reversed(outputs[: self.count], pull)

    def either(self) -> Any:
        """Take the mode that needs fewer passes."""
        columns = total(self.primals, self.what)
        return self.reverse() if columns > 1 and self._rows() < columns else self.forward()

    def _rows(self) -> int:
        """Return how many elements the result has, by a run that keeps nothing.

        It leaves the default generator as it was: the next run draws the same numbers.
        """
        tracer = current_tracer()
        if tracer is not None:
            return self._traced_rows(tracer)
        before = default_generator.get_state()
        try:
            with no_grad():
                outputs = self.flat(list(self.primals))
        finally:
            default_generator.set_state(before)
        return total(outputs[: self.count], self.what)

    def _traced_rows(self, tracer: Any) -> int:
        """Return the same of a graph that is being built, by a trace that leaves no nodes in it."""
        rows: list[int] = []

        def looked_at(*primals: Any) -> list[Any]:
            outputs = self.flat(list(primals))
            rows.append(total(outputs[: self.count], self.what))
            return []

        with deferred_imports:
            from ..graph.control.body import Body  # noqa: PLC0415  (for graphs only)
        types = [TensorType(x.shape, x.dtype) for x in self.primals]
        with no_grad():
            Body(tracer, "probe", looked_at, types)
        return rows[0]

    def _reversed(self, ys: list[Any], pull: Any) -> Any:
        found = self.pull_rows(pull, basis(ys, self.what))
        columns = [_parts(g, ys) for g in found]
        return self._tree(
            [
                [part.reshape((*y.shape, *part.shape[1:])) for part in parts]
                for y, *parts in zip(ys, *columns, strict=True)
            ]
        )

    def pull_rows(self, pull: Any, cotangents: Rows) -> list[Any]:
        """Return the gradients of the arguments for each row of cotangents."""
        others = [None] * len(self.others)

        def linear(row: list[Any]) -> list[Any]:
            return list(map(or_zeros, pull([*row, *others]), self.primals))

        return map_rows(linear, cotangents)

    def sparse(self, pattern: np.ndarray[Any, Any]) -> Any:
        """Compute columns, or rows, together that a pattern says do not overlap."""
        self._check_single(self.primals, "argument", pattern.shape[1], "column")
        x = self.primals[0]
        columns, rows = color(pattern), color(pattern.T)
        if rows.needed < columns.needed:
            outputs, pull, _ = pull_back_of(self.flat, self.primals, what=self.beside.name)
            self._settle(outputs)
            self._check_single(outputs[: self.count], "result", pattern.shape[0], "row")
            found = self.pull_rows(pull, [_seeds(rows, outputs[0])])[0]
            dense, shape = found.reshape((rows.needed, -1))[rows.colors], outputs[0].shape
        else:
            pushed = self.push([_seeds(columns, x)])
            shape = pushed[0].shape[1:] if pushed else ()
            self._check_single(pushed, "result", pattern.shape[0], "row", columns.needed)
            dense = pushed[0].reshape((columns.needed, -1))[columns.colors].T
        kept = F.where(constant(pattern), dense, 0.0)
        return self._tree([[kept.reshape((*shape, *x.shape))]])

    def _check_single(
        self, leaves: Sequence[Any], name: str, given: int, what: str, times: int = 1
    ) -> None:
        """Raise unless there is one leaf, of as many elements as a pattern says (times so many)."""
        if len(leaves) != 1:
            raise ArgumentError(
                f"{self.what}: sparsity takes one tensor to one tensor. Received: {len(leaves)} "
                f"{name} leaf(s)"
            )
        if leaves[0].size != given * times:
            raise ShapeError(
                f"{self.what}: sparsity must have a {what} for each of the "
                f"{leaves[0].size // times} elements of the {name}. Received: {given}"
            )

    # -- trees -------------------------------------------------------------------------------------

    def _settle(self, outputs: Sequence[Any]) -> None:
        """Remember what a run returned beside its result; check the result."""
        self.others = list(outputs[self.count :])
        for y in outputs[: self.count]:
            if not is_float(y.dtype):
                raise DTypeError(
                    f"{self.what}: the result holds {y.dtype}, which has no derivative; return it "
                    "beside, with has_aux=True"
                )

    def _cut(self, column: Any) -> list[Any]:
        """Return the derivatives of an output by each argument leaf, whose axes come last."""
        pairs = zip(_parts(column, self.primals), self.primals, strict=True)
        return [_behind(part.reshape((*x.shape, *column.shape[1:])), x.ndim) for part, x in pairs]

    def _tree(self, rows: list[list[Any]]) -> Any:
        return self.beside.structure.unflatten(self.call.structure.unflatten(row) for row in rows)


def basis(leaves: Sequence[Any], what: str) -> list[Tensor]:
    """Return unit vectors over all elements of some tensors, one row for each."""
    count, start, made = total(leaves, what), 0, []
    for x in leaves:
        rows = np.zeros((count, x.size), x.dtype)
        rows[start + np.arange(x.size), np.arange(x.size)] = 1
        made.append(constant(rows.reshape((count, *x.shape))))
        start += x.size
    return made


def total(leaves: Sequence[Any], what: str) -> int:
    """Return how many elements some tensors have; raise if that is unknown yet."""
    for x in leaves:
        if any(isinstance(size, Dim) for size in x.shape):
            raise ShapeError(
                f"{what}: all sizes must be known, to lay out a Jacobian. Received: {x.shape}"
            )
    return sum(x.size for x in leaves)


def _parts(rows: Any, leaves: Sequence[Any]) -> list[Any]:
    """Return the rows that belong to the elements of each leaf."""
    if len(leaves) == 1:
        return [rows]
    return list(F.split(rows, tuple(size_of(x.shape) for x in leaves)))


def _behind(part: Any, ndim: int) -> Any:
    """Return a tensor with its first axes behind all others."""
    axes = range(part.ndim)
    return F.permute_dims(part, (*axes[ndim:], *axes[:ndim])) if ndim else part


def _seeds(coloring: Coloring, x: Any) -> Tensor:
    """Return for each color the sum of the unit vectors that have it."""
    rows = np.arange(coloring.needed)[:, None] == coloring.colors
    return constant(rows.astype(x.dtype).reshape((coloring.needed, *x.shape)))


def map_rows(linear: LinearMap, batches: Rows) -> list[Any]:
    """Return the results of a map of lists of tensors, for each row of the batches, stacked."""
    if batches and all(x.shape[0] == 1 for x in batches):  # the gradient of one number, say
        return [F.unsqueeze(y, 0) for y in linear([F.squeeze(x, 0) for x in batches])]
    found: list[Any] = vmap(linear)(list(batches))
    return found
