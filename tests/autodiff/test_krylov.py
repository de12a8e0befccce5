"""Linear solvers that know a matrix by its products alone."""

import numpy as np
import pytest

import weft as wf
from weft.autodiff.krylov import (
    Limits,
    as_linear_solver,
    conjugate_gradients,
    gmres,
    neumann,
)


def array(*shape, seed=0):
    return wf.tensor(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize("size", [1, 5, 40])
@pytest.mark.parametrize("solver", [conjugate_gradients, gmres, neumann])
def test_solvers(solver, size):
    matrix = array(size, size).numpy() / (4 * np.sqrt(size))
    matrix = np.eye(size) + (matrix @ matrix.T if solver is conjugate_gradients else matrix)
    b = array(size, seed=1)
    a = wf.tensor(matrix)
    found = solver(lambda v: a @ v, b, Limits())
    np.testing.assert_allclose(matrix @ found.numpy(), b.numpy(), atol=1e-8)


@pytest.mark.parametrize("solver", [conjugate_gradients, gmres, neumann])
def test_zero_needs_no_steps(solver):
    b = wf.tensor(np.zeros(3))
    assert solver(lambda v: v / 0.0, b, Limits()).tolist() == [0.0, 0.0, 0.0]


def test_gmres_when_the_space_is_exhausted_early():
    a = wf.tensor(np.diag([1.0, 1.0, 2.0, 2.0]))
    b = wf.tensor(np.ones(4))
    found = gmres(lambda v: a @ v, b, Limits())
    np.testing.assert_allclose(found.numpy(), [1, 1, 0.5, 0.5], atol=1e-12)


def test_the_number_of_products_is_limited():
    a, b = wf.tensor(np.diag(np.arange(1.0, 21.0))), array(20)
    exact = b.numpy() / np.arange(1.0, 21.0)
    few, many = (
        np.abs(conjugate_gradients(lambda v: a @ v, b, Limits(maxiter=n)).numpy() - exact).max()
        for n in (2, 100)
    )
    assert many < 1e-9 < few


def test_solvers_have_names():
    assert [as_linear_solver(name) for name in ("cg", "gmres", "neumann")] == [
        conjugate_gradients,
        gmres,
        neumann,
    ]
    assert as_linear_solver(gmres) is gmres
