"""Compare hand-derived gradients of a sparse autoencoder with automatic ones, then train it.

A hidden layer of few sigmoid units learns to reproduce small image patches, while a penalty keeps
each unit inactive most of the time: the cost is

    J = 1/(2m) sum |h(x) - x|^2  +  decay/2 (|W1|^2 + |W2|^2)  +  beta sum_j KL(rho || rho_j)

with rho_j the mean activation of hidden unit j over the m patches (Ng, "Sparse autoencoder", 2011).
Deriving its gradient by hand is a rite of passage; here it is, next to `cost.backward()`.

    python examples/sparse_autoencoder.py
"""

import argparse

import numpy as np

import weft as wf

SIDE = 6  # patches are SIDE x SIDE pixels
RHO = 0.05  # wanted mean activation
BETA = 3.0  # weight of the sparsity penalty
DECAY = 1e-4  # weight decay


def make_patches(count, rng):
    """Return patches (count, SIDE**2) from images with the 1/f spectrum of natural scenes."""
    size = 128
    fy, fx = np.fft.fftfreq(size)[:, None], np.fft.fftfreq(size)[None, :]
    frequency = np.hypot(fy, fx)
    frequency[0, 0] = np.inf  # no mean brightness
    noise = np.fft.fft2(rng.normal(size=(8, size, size)))
    images = np.fft.ifft2(noise / frequency).real
    which, top, left = rng.integers(8, size=count), *rng.integers(size - SIDE, size=(2, count))
    rows = top[:, None, None] + np.arange(SIDE)[:, None]
    columns = left[:, None, None] + np.arange(SIDE)
    patches = images[which[:, None, None], rows, columns].reshape(count, -1)
    patches -= patches.mean(axis=1, keepdims=True)
    # Squeeze three standard deviations into [0.1, 0.9], where the sigmoid can follow.
    return 0.5 + 0.4 * np.clip(patches / (3 * patches.std()), -1, 1)


def init_parameters(visible, hidden, rng):
    """Return W1, b1, W2, b2 as float64 arrays (weights after Glorot and Bengio 2010)."""
    bound = np.sqrt(6 / (visible + hidden + 1))
    w1 = rng.uniform(-bound, bound, (visible, hidden))
    w2 = rng.uniform(-bound, bound, (hidden, visible))
    # On the mean patch, all 0.5, each hidden unit starts at the activation that it should have.
    b1 = np.log(RHO / (1 - RHO)) - 0.5 * w1.sum(axis=0)
    return [w1, b1, w2, np.zeros(visible)]


def cost_by_weft(x, w1, b1, w2, b2):
    """Return the cost; this is all that automatic differentiation needs."""
    a = wf.sigmoid(x @ w1 + b1)
    h = wf.sigmoid(a @ w2 + b2)
    rho = a.mean(axis=0)
    error = ((h - x) ** 2).sum() / (2 * len(x))
    weights = DECAY / 2 * ((w1**2).sum() + (w2**2).sum())
    sparsity = RHO * wf.log(RHO / rho) + (1 - RHO) * wf.log((1 - RHO) / (1 - rho))
    return error + weights + BETA * sparsity.sum()


def gradients_by_hand(x, w1, b1, w2, b2):
    """Return the gradients of the same cost, derived on paper, in plain NumPy."""
    a = 1 / (1 + np.exp(-(x @ w1 + b1)))
    h = 1 / (1 + np.exp(-(a @ w2 + b2)))
    rho = a.mean(axis=0)
    m = len(x)
    # delta is dJ/dz before each sigmoid, whose derivative is s (1 - s). Every patch shares in the
    # mean activation rho, so the penalty adds the same slope to the delta of each.
    delta2 = (h - x) / m * h * (1 - h)
    slope = BETA * (-RHO / rho + (1 - RHO) / (1 - rho)) / m
    delta1 = (delta2 @ w2.T + slope) * a * (1 - a)
    return [
        x.T @ delta1 + DECAY * w1,
        delta1.sum(axis=0),
        a.T @ delta2 + DECAY * w2,
        delta2.sum(axis=0),
    ]


def compare_gradients(patches, arrays):
    """Return the largest absolute difference between the two gradients at the given point."""
    parameters = [wf.tensor(array, requires_grad=True) for array in arrays]
    cost_by_weft(wf.tensor(patches), *parameters).backward()
    by_hand = gradients_by_hand(patches, *arrays)
    return max(np.abs(p.grad.numpy() - g).max() for p, g in zip(parameters, by_hand, strict=True))


def train(patches, arrays, steps, rate=1.0, momentum=0.95):
    """Descend the cost with momentum; yield (step, cost) along the way."""
    x = wf.tensor(patches)
    parameters = [wf.tensor(array, requires_grad=True) for array in arrays]
    velocities = [wf.zeros_like(p) for p in parameters]
    for step in range(steps + 1):
        cost = cost_by_weft(x, *parameters)
        yield step, cost.item()
        grads = wf.gradients(cost, parameters)  # returns them, instead of filling in .grad
        with wf.no_grad():
            for p, v, g in zip(parameters, velocities, grads, strict=True):
                v.copy_(momentum * v - rate * g)
                p.copy_(p + v)


def main():
    """Check the gradients, train, and print both findings."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hidden", type=int, default=12)
    parser.add_argument("--patches", type=int, default=600)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--quick", action="store_true", help="a smaller run: 300 patches, 300 steps"
    )
    args = parser.parse_args()
    if args.quick:
        args.patches, args.steps = 300, 300

    rng = np.random.default_rng(args.seed)
    patches = make_patches(args.patches, rng)
    arrays = init_parameters(SIDE * SIDE, args.hidden, rng)
    # Compare far from the start, where every term of the cost has a slope.
    anywhere = [rng.normal(0, 0.3, array.shape) for array in arrays]
    difference = compare_gradients(patches, anywhere)

    costs = []
    for step, cost in train(patches, arrays, args.steps):
        costs.append(cost)
        if step % max(args.steps // 10, 1) == 0:
            print(f"step {step:4}  cost {cost:8.4f}")
    print(f"max abs difference: {difference:.1e}")
    print(f"cost: {costs[0]:.4f} -> {costs[-1]:.4f}")


if __name__ == "__main__":
    main()
