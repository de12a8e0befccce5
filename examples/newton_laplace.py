"""Fit a logistic regression by Newton's method, and measure how sure it is (Laplace 1774).

Newton's step needs the inverse of the Hessian times the gradient. `wf.hvp` gives products with the
Hessian at the cost of a few gradients, and conjugate gradients need nothing else: no matrix is
formed. At the optimum the same Hessian is the precision of the normal distribution that
approximates the posterior; there it is formed, by `wf.hessian`, to check.

    python examples/newton_laplace.py
"""

import argparse
from functools import partial

import numpy as np

import weft as wf

PRECISION = 1.0  # of the prior


def negative_log_posterior(w, x, y):
    """Return the loss of a logistic regression with a normal prior, up to a constant."""
    logits = x @ w
    return (wf.softplus(logits) - y * logits).sum() + 0.5 * PRECISION * (w * w).sum()


def conjugate_gradients(product, b, iterations=200):
    """Solve A x = b, where product(v) is A v, for a symmetric positive definite A."""
    x, r = wf.zeros_like(b), b
    p, squared = r, (r * r).sum()
    for _ in range(iterations):
        if squared.item() < 1e-24:
            break
        along = product(p)
        alpha = squared / (p * along).sum()
        x, r = x + alpha * p, r - alpha * along
        before, squared = squared, (r * r).sum()
        p = r + squared / before * p
    return x


def hessian_product(loss, w, v):
    """Return the Hessian of a loss times a vector."""
    return wf.hvp(loss, (w,), (v,))


def newton(loss, w, steps=20):
    """Return the minimum of a convex loss, and the norm of the gradient there."""
    for i in range(steps):
        g = wf.grad(loss)(w)
        norm = wf.sqrt((g * g).sum()).item()
        print(f"step {i}: loss {loss(w).item():.6f}, gradient {norm:.1e}")
        if norm < 1e-9:
            break
        w = w - conjugate_gradients(partial(hessian_product, loss, w), g)
    return w, norm


def main():
    """Fit, and compare the uncertainty by products with that by the whole matrix."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smaller run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows, columns = (100, 5) if options.quick else (2000, 50)
    rng = np.random.default_rng(options.seed)
    x = rng.normal(size=(rows, columns))
    truth = rng.normal(size=columns)
    y = rng.random(rows) < 1 / (1 + np.exp(-x @ truth))
    loss = partial(negative_log_posterior, x=wf.tensor(x), y=wf.tensor(y.astype(float)))
    w, norm = newton(loss, wf.tensor(np.zeros(columns)))

    unit = wf.tensor(np.eye(columns)[0])
    by_products = conjugate_gradients(partial(hessian_product, loss, w), unit)[0].item()
    by_matrix = np.linalg.inv(wf.hessian(loss)(w).numpy())[0, 0]
    print(f"first weight: {w[0].item():.3f} +- {by_products**0.5:.3f}, true {truth[0]:.3f}")
    print(
        f"gradient norm: {norm:.1e}, error of the variance: {abs(by_products / by_matrix - 1):.1e}"
    )


if __name__ == "__main__":
    main()
