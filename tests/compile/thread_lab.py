"""Compute products and factorisations, and print a digest of the bits of each as JSON.

    OPENBLAS_NUM_THREADS=2 WEFT_NUM_THREADS=2 python -m tests.compile.thread_lab

Processes with other numbers of threads must print the same.
"""

from __future__ import annotations

import hashlib
import json
import sys

import numpy as np

import weft as wf
from weft.nn.functional import conv2d

SHAPES = {
    "97x1000x48": ((97, 1000), (1000, 48)),
    "65 cubed": ((65, 65), (65, 65)),
    "outer": ((700, 1), (1, 700)),
    "three rows": ((3, 9000), (9000, 90)),
    "ten columns": ((128, 512), (512, 10)),
    "row and matrix": ((1, 3000), (3000, 301)),
    "matrix and vector": ((301, 3000), (3000,)),
    "vectors": ((200_003,), (200_003,)),
    "stack": ((3, 70, 300), (3, 300, 70)),
    "shared right": ((2, 50, 400), (400, 130)),
    "shared left": ((70, 300), (3, 300, 70)),
    "specialised": ((520, 509), (509, 514)),
}


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def digest(*arrays):
    found = hashlib.sha256()
    for array in arrays:
        value = array.numpy() if isinstance(array, wf.Tensor) else np.asarray(array)
        found.update(np.ascontiguousarray(value).tobytes())
    return found.hexdigest()


def turned(x):
    return wf.tensor(np.ascontiguousarray(np.swapaxes(x, -1, -2))).swapaxes(-1, -2)


def product_digests():
    for name, (left, right) in SHAPES.items():
        for dtype in (np.float32, np.float64):
            x, y = normal(*left, dtype=dtype), normal(*right, seed=1, dtype=dtype)
            operands = [(wf.tensor(x), wf.tensor(y))]
            if min(x.ndim, y.ndim) > 1:
                operands += [(turned(x), wf.tensor(y)), (wf.tensor(x), turned(y))]
            yield f"{name} {np.dtype(dtype).name}", digest(*(a @ b for a, b in operands))


def half_digests():
    for dtype in (wf.float16, wf.bfloat16):
        for name in ("97x1000x48", "ten columns", "matrix and vector", "stack"):
            x, y = (wf.tensor(normal(*shape)).to(dtype) for shape in SHAPES[name])
            eager = wf.matmul(x, y)
            compiled = wf.compile(wf.matmul, x, y)(x, y)
            wide = [v.to(wf.float32) for v in (eager, compiled)]
            yield f"{name} {dtype} eager and compiled", digest(*wide)


def gradient_digests():
    x, w, b = (wf.tensor(normal(*shape)) for shape in ((128, 300), (200, 300), (200,)))

    def net(w, b):
        return wf.tanh(wf.linear(x, w, b)).sum()

    yield "gradient of linear", digest(*wf.grad(net, argnums=(0, 1))(w, b))
    image, kernel = wf.tensor(normal(4, 8, 30, 31)), wf.tensor(normal(24, 8, 3, 3))
    for name, stride in (("convolution", 1), ("strided convolution", 2)):

        def squares(i, k, stride=stride):
            return (conv2d(i, k, stride=stride) ** 2).sum()

        yield name, digest(conv2d(image, kernel, stride=stride))
        yield f"gradient of {name}", digest(*wf.grad(squares, argnums=(0, 1))(image, kernel))


def contraction_digests():
    x, y = wf.tensor(normal(40, 50, 60)), wf.tensor(normal(60, 50, 70, seed=1))
    yield "tensordot", digest(wf.tensordot(x, y, axes=([2, 1], [0, 1])))
    yield "einsum", digest(wf.einsum("abc,cbd->ad", x, y))
    yield "inner", digest(wf.inner(wf.tensor(normal(90, 700)), wf.tensor(normal(80, 700))))


def linalg_digests(n, dtype):
    a = normal(n, n, dtype=dtype) + n**0.5 * np.eye(n, dtype=dtype)
    tall, sides = normal(n + 40, n // 2, dtype=dtype), normal(n, 7, seed=1, dtype=dtype)
    definite = (a + a.T) / 2 + n * np.eye(n, dtype=dtype)
    s, t, b = wf.tensor(definite), wf.tensor(tall), wf.tensor(sides)
    a = wf.tensor(a)
    pair = wf.stack([a, s])
    calls = {
        "solve": lambda: [wf.linalg.solve(a, b), wf.linalg.solve(a, b[:, 0])],
        "stack solve": lambda: [wf.linalg.solve(pair, b)],
        "inv": lambda: [wf.linalg.inv(a), wf.linalg.inv(pair)],
        "det": lambda: [wf.linalg.det(a / n**0.5), *wf.linalg.slogdet(pair)],
        "cholesky": lambda: [wf.linalg.cholesky(s), wf.linalg.cholesky(s, upper=True)],
        "qr": lambda: [*wf.linalg.qr(t), *wf.linalg.qr(t, mode="complete"), *wf.linalg.qr(t.T)],
        "svd": lambda: [*wf.linalg.svd(t), *wf.linalg.svd(t.T, full_matrices=False)],
        "svdvals": lambda: [wf.linalg.svdvals(t)],
        "eigh": lambda: [*wf.linalg.eigh(s), wf.linalg.eigvalsh(s)],
        "pinv": lambda: [wf.linalg.pinv(t)],
        "lstsq": lambda: [wf.linalg.lstsq(t, t[:, :3])[0]],
        "matrix_exp": lambda: [wf.linalg.matrix_exp(a / n)],
        "matrix_power": lambda: [wf.linalg.matrix_power(a / n, 5)],
        "solve_triangular": lambda: [wf.linalg.solve_triangular(a, b, upper=True)],
    }
    for name, call in calls.items():
        yield f"{name} {n} {np.dtype(dtype).name}", digest(*call())


def main():
    found = {}
    for part in (product_digests, half_digests, gradient_digests, contraction_digests):
        found |= dict(part())
    wf.config.eager_kernels = False
    found |= {f"{name} in blocks": bits for name, bits in product_digests()}
    wf.config.eager_kernels = True
    for n in map(int, sys.argv[1:]):
        for dtype in (np.float32, np.float64):
            found |= dict(linalg_digests(n, dtype))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
