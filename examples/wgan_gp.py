"""Generate points on a circle: a Wasserstein GAN with gradient penalty (Gulrajani et al. 2017).

The critic's penalty holds the norm of its gradient by the input near 1 between real and generated
points. So the critic's own gradient goes through a gradient: `vmap(grad(critic))` inside the loss,
and `backward` through it.

    python examples/wgan_gp.py
"""

import argparse

import numpy as np

import weft as wf
from weft import nn


def mlp(inputs, outputs, width=32):
    """Return a small perceptron."""
    return nn.Sequential(
        nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
        nn.Linear(width, outputs),
    )  # fmt: skip


def real_points(rng, count):
    """Return points close to the unit circle."""
    angle = rng.uniform(0, 2 * np.pi, count)
    radius = 1 + 0.05 * rng.normal(size=count)
    return wf.tensor(np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).astype("f4"))


def penalty(critic, real, fake, rng):
    """Return how far the critic's slope is from 1 at points in between, squared."""
    mix = wf.tensor(rng.random((real.shape[0], 1)).astype("f4"))
    between = mix * real + (1 - mix) * fake
    slopes = wf.vmap(wf.grad(lambda x: critic(x)[0]))(between)
    return ((wf.sqrt((slopes**2).sum(axis=1) + 1e-12) - 1) ** 2).mean()


def critic_loss(critic, real, fake, rng):
    """Return the negative distance that the critic sees, with the penalty."""
    return critic(fake).mean() - critic(real).mean() + 10 * penalty(critic, real, fake, rng)


def update(optimizer, loss):
    """Take one step of an optimizer."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def radius_error(generator, rng, count=500):
    """Return the mean distance of generated points from the circle."""
    with wf.no_grad():
        points = generator(noise(rng, count)).numpy()
    return float(np.abs(np.linalg.norm(points, axis=1) - 1).mean())


def noise(rng, count):
    """Return what the generator starts from."""
    return wf.tensor(rng.normal(size=(count, 2)).astype("f4"))


def main():
    """Train both networks in turns."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smaller run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wf.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    generator, critic = mlp(2, 2), mlp(2, 1)
    of_generator = wf.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.9))
    of_critic = wf.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))
    first = radius_error(generator, rng)
    for _ in range(120 if options.quick else 800):
        for _ in range(3):
            fake = generator(noise(rng, 64)).detach()
            update(of_critic, critic_loss(critic, real_points(rng, 64), fake, rng))
        update(of_generator, -critic(generator(noise(rng, 64))).mean())
    print(f"distance from the circle: {first:.3f} -> {radius_error(generator, rng):.3f}")


if __name__ == "__main__":
    main()
