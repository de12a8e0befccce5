"""Random compositions of transforms on random smooth functions, equal to torch.func's and JAX's.

A seed makes a program: a few layers of vectors, each a function of earlier ones, and one to three
transforms of it, each from vectors to vectors. The three frameworks run the same program in
float64.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import weft as wf

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore:.*torch.jit"),  # which torch.func.jvp uses itself
]

SIZE = 4
SEEDS = range(100)
COMPILED = range(0, 100, 10)
TOLERANCE = {"rtol": 1e-8, "atol": 1e-10}


# -- the same names for three frameworks -----------------------------------------------------------


def of_weft():
    return SimpleNamespace(
        **{name: getattr(wf, name) for name in ("sin", "tanh", "exp", "log", "sqrt", "where")},
        **{name: getattr(wf, name) for name in ("cumsum", "flip", "logsumexp")},
        **{name: getattr(wf, name) for name in TRANSFORMS_ALIKE},
        array=wf.tensor,
        softmax=lambda x: wf.nn.functional.softmax(x, -1),
        join=lambda xs: wf.concatenate(xs, 0),
        run=lambda fn, x: fn(x),
        read=lambda x: x.numpy(),
    )


def of_torch():
    torch = pytest.importorskip("torch")
    return SimpleNamespace(
        **{name: getattr(torch, name) for name in ("sin", "tanh", "exp", "log", "sqrt", "where")},
        **{name: getattr(torch.func, name) for name in TRANSFORMS_ALIKE},
        array=torch.tensor,
        cumsum=torch.cumsum,
        flip=lambda x, axis: torch.flip(x, (axis,)),
        logsumexp=torch.logsumexp,
        softmax=lambda x: torch.softmax(x, -1),
        join=torch.cat,
        run=lambda fn, x: fn(x),
        read=lambda x: x.detach().numpy(),
    )


def of_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    return SimpleNamespace(
        **{name: getattr(jnp, name) for name in ("sin", "tanh", "exp", "log", "sqrt", "where")},
        **{name: getattr(jax, name) for name in TRANSFORMS_ALIKE},
        array=jnp.asarray,
        cumsum=jnp.cumsum,
        flip=jnp.flip,
        logsumexp=jax.scipy.special.logsumexp,
        softmax=jax.nn.softmax,
        join=jnp.concatenate,
        run=lambda fn, x: jax.jit(fn)(x),  # compiling it whole is faster than its parts
        read=np.asarray,
    )


TRANSFORMS_ALIKE = ("grad", "vmap", "jvp", "vjp", "jacfwd", "jacrev", "hessian")
PEERS = {"torch.func": of_torch, "jax": of_jax}


# -- random functions from vectors to vectors ------------------------------------------------------

# Each takes the names, constants (a matrix and a vector), and one or two vectors.
LAYERS = {
    "sin": lambda m, w, c, x, y: m.sin(x + c),
    "tanh": lambda m, w, c, x, y: m.tanh(x) * y,
    "bell": lambda m, w, c, x, y: m.exp(-x * x) + y,
    "log": lambda m, w, c, x, y: m.log(1.5 + x * x) - c * y,
    "root": lambda m, w, c, x, y: m.sqrt(1 + x * x + y * y),
    "ratio": lambda m, w, c, x, y: x / (2 + m.sin(y)),
    "power": lambda m, w, c, x, y: (x**3 - y**2) * 0.1,
    "matrix": lambda m, w, c, x, y: x @ m.array(w),
    "form": lambda m, w, c, x, y: (m.array(w) @ x) @ y * x,
    "outer": lambda m, w, c, x, y: m.tanh(x[:, None] * y[None, :]) @ m.array(c),
    "rows": lambda m, w, c, x, y: (m.array(w) * x).sum(1) + y.mean(),
    "softmax": lambda m, w, c, x, y: m.softmax(x) * y,
    "logsumexp": lambda m, w, c, x, y: m.logsumexp(x[:, None] + m.array(w), 0) - y,
    "cumsum": lambda m, w, c, x, y: m.cumsum(x * m.array(c), 0),
    "flip": lambda m, w, c, x, y: m.flip(x, 0) * y,
    "join": lambda m, w, c, x, y: m.join([x[1:], y[:1]]) * m.array(c),
    "where": lambda m, w, c, x, y: m.where(x > y, x * y, m.sin(x) - y),
    "pick": lambda m, w, c, x, y: x[m.array(np.array([2, 0, 0, 3]))] * y,
}


def random_function(rng):
    """Return the names of a program's layers, and the program as a function of names."""
    names = rng.choice(list(LAYERS), size=rng.integers(2, 6))
    matrices, vectors = rng.normal(size=(9, SIZE, SIZE)) / 2, rng.normal(size=(9, SIZE)) / 2
    places = [[int(i) for i in rng.integers(0, k + 1, 2)] for k in range(len(names))]

    def make(m):
        def program(x):
            values = [x]
            for name, w, c, (i, j) in zip(names, matrices, vectors, places, strict=False):
                given = m.array(c) if name in ("sin", "log") else c
                values.append(LAYERS[name](m, w, given, values[-1] + values[i], values[j]))
            return values[-1]

        return program

    return [str(name) for name in names], make


# -- random transforms of them ---------------------------------------------------------------------


def summed(m, fn, w):
    return lambda x: (fn(x) * m.array(w)).sum()


def pulled(m, fn, w):
    def function(x):
        y, pull = m.vjp(fn, x)
        return pull(m.tanh(y) * m.array(w))[0]

    return function


def mapped(m, fn, w):
    def function(x):
        scales = m.array(np.array([[1.0], [0.5], [-0.75]])) + x * 0
        return m.vmap(lambda s, x: fn(s * x), (0, None))(scales, x).sum(0)

    return function


def mapped_gradients(m, fn, w):
    each = m.vmap(m.grad(lambda s, x: (fn(s * x) * m.array(w)).sum()), (0, None))
    return lambda x: each(m.array(np.linspace(0.5, 1.5, SIZE)), x) * x


TRANSFORMS = {
    "grad": lambda m, fn, w: m.grad(summed(m, fn, w)),
    "jvp": lambda m, fn, w: lambda x: m.jvp(fn, (x,), (m.sin(x) + m.array(w),))[1],
    "fixed jvp": lambda m, fn, w: lambda x: m.jvp(fn, (x,), (m.array(w),))[1],
    "vjp": pulled,
    "vmap": mapped,
    "vmap of grad": mapped_gradients,
    "jacfwd": lambda m, fn, w: lambda x: m.jacfwd(fn)(x) @ m.array(w),
    "jacrev": lambda m, fn, w: lambda x: m.array(w) @ m.jacrev(fn)(x),
    "hessian": lambda m, fn, w: lambda x: m.hessian(summed(m, fn, w))(x) @ x,
}
ORDER = {"hessian": 2, "vmap": 0}  # how often a transform differentiates; once otherwise
HIGHEST = 4


def random_transforms(rng):
    """Return the names of up to three transforms, innermost first, and their weights."""
    names, order = [], 0
    for _ in range(rng.integers(1, 4)):
        name = str(rng.choice(list(TRANSFORMS)))
        order += ORDER.get(name, 1)
        if order <= HIGHEST:
            names.append(name)
    return names, rng.normal(size=(len(names), SIZE))


class Program:
    """What a seed makes: the same function and transforms for every framework."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.layers, self.make = random_function(rng)
        self.transforms, self.weights = random_transforms(rng)
        self.x = rng.normal(size=SIZE)

    def function(self, m):
        fn = self.make(m)
        for name, w in zip(self.transforms, self.weights, strict=True):
            fn = TRANSFORMS[name](m, fn, w)
        return fn

    def value(self, m):
        return np.asarray(m.read(m.run(self.function(m), m.array(self.x))))


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_compositions_equal_those_of_peers(seed, peer):
    theirs = PEERS[peer]()
    program = Program(seed)
    found, wanted = program.value(of_weft()), program.value(theirs)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, **TOLERANCE, err_msg=str(vars(program)))


@pytest.mark.parametrize("seed", COMPILED)
def test_compiled_compositions_equal_those_of_jax(seed):
    theirs, ours = of_jax(), of_weft()
    program = Program(seed)
    x = wf.tensor(program.x)
    found = wf.compile(program.function(ours), x)(x).numpy()
    np.testing.assert_allclose(found, program.value(theirs), **TOLERANCE)


def test_seeds_reach_every_layer_and_transform():
    programs = [Program(seed) for seed in SEEDS]
    assert {name for p in programs for name in p.layers} == set(LAYERS)
    assert {name for p in programs for name in p.transforms} == set(TRANSFORMS)
    assert all(p.transforms for p in programs)
