"""What PyTorch says of operands of arithmetic, products and matrices."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentTypeError, DTypeError, LinalgError, ShapeError
from ..linalg import LinAlgError
from ..sentences import expanded_size, unequal_sizes
from .refused import Refused, Rule, joined, kind_of


def matmul(refused: Refused) -> Exception | None:
    """Say it of a product: by the numbers of dimensions, as PyTorch chooses its kernels."""
    x, y = refused["x"], refused["y"]
    if refused.is_a(ArgumentTypeError):
        return None
    if not x.ndim or not y.ndim:
        return _without_dims(x, y)
    if "shapes" in refused.facts:
        return unequal_sizes(refused.facts["shapes"])
    return _of_sizes(refused, x, y)


def _without_dims(x: Any, y: Any) -> Exception:
    if not (_is_given(x) and _is_given(y)):
        return _unsupported("matmul", [_kind(v) if _is_given(v) else "int" for v in (x, y)])
    return RuntimeError(
        f"both arguments to matmul need to be at least 1D, but they are {x.ndim}D and {y.ndim}D"
    )


def _of_sizes(refused: Refused, x: Any, y: Any) -> Exception:
    if x.ndim == 1 and y.ndim == 1:
        return dot(refused)
    if x.ndim > 2 and y.ndim > 2:
        return _batches(x, y)
    if y.ndim == 1:
        return _vector(x.shape, y)
    if x.ndim == 1:
        return _vector((*reversed(y.shape),), x)
    return _matrices((x.numel() // max(x.shape[-1], 1), x.shape[-1]), y.shape)


def _is_given(x: Any) -> bool:
    """Tell whether an operand is a tensor of this face, and no number that was made one."""
    return getattr(type(x), "_words", None) is not None


def _matrices(left: Any, right: Any) -> Exception:
    return RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({joined(left)} and {joined(right)})"
    )


def _vector(matrix: Any, vector: Any) -> Exception:
    return RuntimeError(
        f"size mismatch, got input ({matrix[0]}), mat ({joined(matrix)}), vec ({vector.shape[0]})"
    )


def _batches(x: Any, y: Any) -> Exception:
    batch = x.numel() // max(x.shape[-1] * x.shape[-2], 1)
    other = y.numel() // max(y.shape[-1] * y.shape[-2], 1)
    return RuntimeError(
        "Expected size for first two dimensions of batch2 tensor to be: "
        f"[{batch}, {x.shape[-1]}] but got: [{other}, {y.shape[-2]}]."
    )


def dot(refused: Refused) -> Exception:
    """Say it of vectors."""
    x, y = refused["x"], refused["y"]
    if x.ndim != 1 or y.ndim != 1:
        return RuntimeError(f"1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors")
    n, m = x.shape[0], y.shape[0]
    return RuntimeError(
        f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number "
        f"of elements, but got {n} and {m} elements respectively"
    )


def mm(refused: Refused) -> Exception | None:
    """Say it of two matrices."""
    for name, x in (("self", refused["x"]), ("mat2", refused["y"])):
        if x.ndim != 2:
            return RuntimeError(f"{name} must be a matrix")
    return _matrices(refused["x"].shape, refused["y"].shape)


def bmm(refused: Refused) -> Exception:
    """Say it of batches of matrices."""
    for name, x in (("batch1", refused["x"]), ("batch2", refused["y"])):
        if x.ndim != 3:
            return RuntimeError(f"{name} must be a 3D tensor")
    return _batches(refused["x"], refused["y"])


def mv(refused: Refused) -> Exception:
    """Say it of a matrix and a vector."""
    x, vector = refused["x"], refused["vec"]
    if x.ndim != 2 or vector.ndim != 1:
        return RuntimeError(f"vector + matrix @ vector expected, got 1, {x.ndim}, {vector.ndim}")
    return _vector(x.shape, vector)


def addmm(refused: Refused) -> Exception:
    """Say it of a product that is added."""
    x, a, b = refused["x"], refused["a"], refused["b"]
    if a.ndim != 2 or b.ndim != 2:
        return RuntimeError(
            f"mat{1 if a.ndim != 2 else 2} must be a matrix, got "
            f"{a.ndim if a.ndim != 2 else b.ndim}-D tensor"
        )
    if a.shape[1] != b.shape[0]:
        return _matrices(a.shape, b.shape)
    return expanded_size((a.shape[0], b.shape[1]), x.shape)


def linear(refused: Refused) -> Exception | None:
    """Say it of inputs, weights and biases."""
    x, weight, bias = refused["x"], refused["weight"], refused["bias"]
    if x.dtype != weight.dtype:
        return RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {kind_of(x)} and {kind_of(weight)}"
        )
    rows = x.numel() // max(x.shape[-1], 1)
    if x.shape[-1] != weight.shape[-1]:
        if x.ndim == 1:
            return _vector((*weight.shape,), x)
        return _matrices((rows, x.shape[-1]), (*reversed(weight.shape),))
    return expanded_size((rows, weight.shape[0]), bias.shape)


def einsum(refused: Refused) -> Exception | None:
    """Say it of subscripts and the sizes they name."""
    facts = refused.facts
    if "label" in facts and "sizes" in facts:
        known, size = facts["sizes"]
        return RuntimeError(
            f"einsum(): subscript {facts['label']} has size {size} for operand "
            f"{facts['operand']} which does not broadcast with previously seen size {known}"
        )
    if "label" in facts:
        return RuntimeError(
            f"einsum(): output subscript {facts['label']} does not appear in the equation for any "
            "input operand"
        )
    if "term" in facts:
        return RuntimeError(
            f"einsum(): the number of subscripts in the equation ({len(facts['term'])}) does not "
            f"match the number of dimensions ({facts['ndim']}) for operand {facts['operand']} and "
            "no ellipsis was given"
        )
    return None


def tensordot(refused: Refused) -> Exception | None:
    """Say it of dimensions that are summed over together."""
    i, j, left, right = (refused.facts[n] for n in ("i", "j", "left", "right"))
    if isinstance(refused["axes"], int):
        i -= refused["x"].ndim
    return RuntimeError(
        f"contracted dimensions need to match, but first has size {left} in dim {i} and second "
        f"has size {right} in dim {j}"
    )


def cross(refused: Refused) -> Exception | None:
    """Say it of vectors that are not of three."""
    if not refused.is_a(ShapeError) or refused.facts:
        return None
    x, y = refused["x"], refused["y"]
    axis = refused["axis"]
    axis = range(x.ndim)[-1 if axis is None else axis]
    return RuntimeError(
        f"linalg.cross: inputs dimension {axis} must have length 3. Got {x.shape[axis]} and "
        f"{y.shape[axis]}"
    )


def cdist(refused: Refused) -> Exception | None:
    """Say it of rows of two lengths."""
    x, y = refused["x1"], refused["x2"]
    if x.ndim < 2 or y.ndim < 2:
        number, least = ("X1", x) if x.ndim < 2 else ("X2", y)
        return RuntimeError(f"cdist only supports at least 2D tensors, {number} got: {least.ndim}D")
    return RuntimeError(
        f"X1 and X2 must have the same number of columns. X1: {x.shape[-1]} X2: {y.shape[-1]}"
    )


def bits(refused: Refused) -> Exception | None:
    """Say it of floats, which have no bits to be combined."""
    x, y = refused["x"], refused["y"]
    if refused.function == "bitwise_not":
        return TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    if "shapes" in refused.facts or not refused.is_a(DTypeError):
        return None
    if tuple(x.shape) != tuple(y.shape) and _differ(x.shape, y.shape):
        return unequal_sizes((x.shape, y.shape))
    kind = kind_of(x if x.dtype.kind == "f" else y)
    return NotImplementedError(f"\"{refused.function}_cpu\" not implemented for '{kind}'")


def _differ(first: Any, second: Any) -> bool:
    pairs = zip(reversed(first), reversed(second), strict=False)
    return any(a != b and 1 not in (a, b) for a, b in pairs)


def together(refused: Refused) -> Exception | None:
    """Say it of three tensors, in the order in which they are given."""
    if not refused.is_a(ShapeError):
        return None
    return unequal_sizes([x.shape for x in refused.given.values() if hasattr(x, "shape")])


def negation(refused: Refused) -> Exception | None:
    """Say it of truth values."""
    if not refused.is_a(DTypeError):
        return None
    return RuntimeError(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
        "invert a mask, use the `~` or `logical_not()` operator instead."
    )


def subtraction(refused: Refused) -> Exception | None:
    """Say it of truth values."""
    if not refused.is_a(DTypeError):
        return operand(refused)
    if refused["x"].dtype == refused["y"].dtype:
        return RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    return RuntimeError(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
        "invert a mask, use the `~` or `logical_not()` operator instead."
    )


SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "** or pow()", "matmul": "@"}


def operand(refused: Refused) -> Exception | None:
    """Say it of an operand that is no tensor."""
    if not refused.is_a(ArgumentTypeError):
        return None
    if "x" not in refused.given:
        if len(refused["args"] or ()) > 1:
            return None
        return TypeError(f'{refused.function}() missing 1 required positional arguments: "other"')
    return _unsupported(refused.function, [_kind(refused[name]) for name in ("x", "y")])


def _unsupported(function: str, kinds: list[str]) -> Exception:
    return TypeError(
        f"unsupported operand type(s) for {SYMBOLS[function]}: {kinds[0]!r} and {kinds[1]!r}"
    )


def _kind(x: Any) -> str:
    return "Tensor" if hasattr(x, "_node") else type(x).__name__


def matrices(name: str, singular: str = "") -> Rule:
    """Return the rule of a function of square matrices."""

    def rule(refused: Refused) -> Exception | None:
        a = refused["x"] if refused["x"] is not None else refused["a"]
        if refused.is_a(LinalgError):
            return LinAlgError(singular) if singular else None
        if a.ndim < 2:
            return RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
        if a.shape[-1] != a.shape[-2]:
            return RuntimeError(
                f"{name}: A must be batches of square matrices, but they are {a.shape[-2]} by "
                f"{a.shape[-1]} matrices"
            )
        return None

    return rule


def matmul_or_operand(refused: Refused) -> Exception | None:
    """Say it of what stands beside `@`."""
    return operand(refused) or matmul(refused)


RULES: dict[str, Rule] = {
    "matmul": matmul_or_operand,
    "dot": dot,
    "mm": mm,
    "bmm": bmm,
    "mv": mv,
    "addmm": addmm,
    "linear": linear,
    "einsum": einsum,
    "tensordot": tensordot,
    "cross": cross,
    "cdist": cdist,
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"), bits),
    "neg": negation,
    "addcmul": together,
    "addcdiv": together,
    "sub": subtraction,
    **dict.fromkeys(("add", "mul", "div", "pow"), operand),
    "inv": matrices(
        "linalg.inv",
        "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because "
        "the input matrix is singular.",
    ),
    "det": matrices("linalg.det"),
    "solve": matrices(
        "linalg.solve",
        "torch.linalg.solve: The solver failed because the input matrix is singular.",
    ),
    "cholesky": matrices(
        "linalg.cholesky",
        "linalg.cholesky: The factorization could not be completed because the input is not "
        "positive-definite (the leading minor of order 1 is not positive-definite).",
    ),
    **{name: matrices(f"linalg.{name}") for name in ("eigh", "eigvalsh", "slogdet", "lu_factor")},
}
