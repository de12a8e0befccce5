"""Functions of lists of tensors, against the functions of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft import torch
from weft.torch import foreach

XS = [np.array([0.25, 0.5]), np.array([[0.5, 0.75, 0.125]]), np.array(0.625)]
YS = [np.array([2.0, 3.0]), np.array([[0.5, 2.0, 4.0]]), np.array(1.5)]


def lists(*which: list[Any]) -> list[list[Any]]:
    return [[torch.tensor(x) for x in some] for some in which]


def numbers(tensors: Any) -> list[Any]:
    return [x.tolist() for x in tensors]


def same(found: Any, expected: Any) -> bool:
    assert isinstance(found, tuple)
    return all(np.allclose(a.numpy(), b.numpy()) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", foreach.UNARY)
def test_functions_of_one_list(name: str) -> None:
    (xs,) = lists(XS)
    expected = [getattr(torch, name)(x) for x in xs]
    assert same(getattr(torch, f"_foreach_{name}")(xs), expected)
    assert getattr(torch, f"_foreach_{name}_")(xs) is xs
    assert numbers(xs) == numbers(expected)


FORMS: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "clamp_min": np.maximum,
    "clamp_max": np.minimum,
}


@pytest.mark.parametrize("name", FORMS)
def test_functions_of_two_lists_of_numbers_and_of_one_for_all(name: str) -> None:
    call, write = getattr(torch, f"_foreach_{name}"), getattr(torch, f"_foreach_{name}_")
    for given, others in (
        (lists(YS)[0], YS),
        ([0.5, 2.0, 0.3], [0.5, 2.0, 0.3]),
        (0.5, [0.5] * 3),
        (2, [2] * 3),
    ):
        (xs,) = lists(XS)
        expected = [FORMS[name](x, y) for x, y in zip(XS, others, strict=True)]
        for a, b in zip(call(tuple(xs), given), expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)
        assert write(xs, given) is xs
        for a, b in zip(xs, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)


def test_scales_and_one_tensor_for_all() -> None:
    xs, ys = lists(XS, YS)
    assert numbers(torch._foreach_add(xs, ys, alpha=2)) == [
        (x + 2 * y).tolist() for x, y in zip(XS, YS, strict=True)
    ]
    assert numbers(torch._foreach_sub(xs, ys, alpha=2)) == [
        (x - 2 * y).tolist() for x, y in zip(XS, YS, strict=True)
    ]
    for name in foreach.ONE_TENSOR:
        found = getattr(torch, f"_foreach_{name}")(xs, torch.tensor(2.0))
        assert numbers(found) == [FORMS[name](x, 2.0).tolist() for x in XS]
    assert numbers(torch._foreach_sub(xs, torch.tensor(2.0))) == [(x - 2.0).tolist() for x in XS]
    assert numbers(torch._foreach_mul(xs, scalar=2.0)) == [(x * 2.0).tolist() for x in XS]
    assert numbers(torch._foreach_pow(2.0, xs)) == numbers([2.0**x for x in xs])


def test_functions_of_three_lists() -> None:
    for name, sign in (("addcmul", 1), ("addcdiv", -1)):
        call, write = getattr(torch, f"_foreach_{name}"), getattr(torch, f"_foreach_{name}_")
        for value, values in (
            (2, [2.0] * 3),
            ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
            (torch.tensor([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]),
        ):
            xs, ys, zs = lists(XS, YS, YS)
            rows = zip(XS, YS, YS, values, strict=True)
            expected = [x + v * y * z**sign for x, y, z, v in rows]
            for a, b in zip(call(xs, ys, zs, value), expected, strict=True):
                np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)
            write(xs, ys, zs, value)
            for a, b in zip(xs, expected, strict=True):
                np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)
    xs, ys = lists(XS, YS)
    for weight in (0.5, [0.5, 0.5, 0.5], [torch.full(x.shape, 0.5) for x in xs]):
        assert same(
            torch._foreach_lerp(xs, ys, weight), [(x + y) / 2 for x, y in zip(xs, ys, strict=True)]
        )


def test_norms_copies_and_zeros() -> None:
    xs, ys = lists(XS, YS)
    for order in (2, 1, float("inf")):
        expected = [np.linalg.norm(x.ravel(), order) for x in XS]
        np.testing.assert_allclose(numbers(torch._foreach_norm(xs, order)), expected, rtol=1e-6)
    assert torch._foreach_norm(xs, dtype=torch.float64)[0].dtype == torch.float64
    np.testing.assert_allclose(
        numbers(torch._foreach_powsum(xs)), [(x**2).sum() for x in XS], rtol=1e-6
    )
    assert numbers(torch._foreach_max(xs)) == [x.max() for x in XS]
    (matrix,) = lists([np.ones((2, 3))])
    assert torch._foreach_mm(matrix, [matrix[0].t()])[0].tolist() == [[3.0, 3.0], [3.0, 3.0]]
    kept = torch._foreach_clone(xs)
    torch._foreach_copy_(xs, ys)
    assert numbers(xs) == [y.tolist() for y in YS]
    torch._foreach_zero_(xs)
    assert [x.sum().item() for x in xs] == [0.0, 0.0, 0.0]
    assert numbers(kept) == [x.tolist() for x in XS]


def test_gradients_pass_and_leaves_refuse_writes() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    sum(y.sum() for y in torch._foreach_mul([x, x], [2.0, 3.0])).backward()
    assert x.grad.tolist() == [5.0, 5.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch._foreach_add_([x], 1.0)
    with torch.no_grad():
        torch._foreach_add_([x], [x.grad], alpha=-0.1)
    assert x.tolist() == [0.5, 1.5]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda xs: torch._foreach_add(xs, xs[:1]), RuntimeError, "number of tensors, got 3 and 1"),
        (lambda xs: torch._foreach_add(xs, [1.0]), RuntimeError, "elements as scalar list"),
        (lambda xs: torch._foreach_add([], 1.0), RuntimeError, "at least one tensor"),
        (lambda xs: torch._foreach_abs(None), TypeError, "must be tuple of Tensors, not NoneType"),
        (lambda xs: torch._foreach_abs([1]), TypeError, "expected Tensor as element 0"),
        (lambda xs: torch._foreach_add(xs, 1, alpha=2), TypeError, "alpha"),
        (lambda xs: torch._foreach_mul(xs, xs, alpha=2), TypeError, "alpha"),
        (lambda xs: torch._foreach_mul(xs, torch.ones(2)), RuntimeError, "0 dim but it has 1"),
        (lambda xs: torch._foreach_sub(xs, None), TypeError, "invalid combination"),
        (torch._foreach_sub, TypeError, "invalid combination"),
        (lambda xs: torch._foreach_sub(xs, wrong=1), TypeError, "invalid combination"),
        (
            lambda xs: torch._foreach_addcmul(xs, xs, xs, torch.ones(2)),
            RuntimeError,
            "length of scalars to match input of length 3 but got 2",
        ),
    ],
)
def test_errors_are_those_of_pytorch(call: Any, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        call(lists(XS)[0])
