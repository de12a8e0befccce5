"""Learn to cross a frozen lake: tabular Q-learning (Watkins 1989) on a 4x4 gridworld.

The ice is slippery: a step goes where it was meant to in one case of three, and to one of the two
sides in the others. Falling into a hole ends the walk with nothing; reaching the goal gives 1. The
walker is told neither the map nor the odds. We know both, so the policy it learns can be compared
with the best one that exists, exactly, by dynamic programming.

    python examples/q_learning.py
"""

import argparse
import random

import numpy as np

import weft as wf

LAKE = """
S...
.o.o
...o
o..G
"""  # Start, ice, holes, Goal
CELLS = LAKE.replace("\n", "")
SIDE = 4
MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))  # left, down, right, up: neighbours are perpendicular
ARROWS = "<v>^"
DISCOUNT = 0.99


def neighbour(state, action):
    """Return the cell that a step leads to; the shore stops it."""
    row, column = divmod(state, SIDE)
    down, right = MOVES[action % 4]
    return SIDE * min(max(row + down, 0), SIDE - 1) + min(max(column + right, 0), SIDE - 1)


def step(state, action, rng):
    """Slip to one of the three possible cells; return it, the reward, and whether it is over."""
    state = neighbour(state, action + rng.randint(-1, 1))
    return state, float(CELLS[state] == "G"), CELLS[state] in "oG"


def choose(q, state, epsilon, rng):
    """Explore with probability epsilon, else take the action that looks best."""
    if rng.random() < epsilon:
        return rng.randrange(4)
    return q[state].argmax().item()


def learn(episodes, rng, epsilon=0.3, max_steps=100):
    """Return the table Q[state, action] of expected discounted rewards, learned by walking."""
    q = wf.ones(SIDE * SIDE, 4)  # what is unknown looks good, and so gets tried
    visits = wf.zeros(SIDE * SIDE, 4)
    for _ in range(episodes):
        state = CELLS.index("S")
        for _ in range(max_steps):
            action = choose(q, state, epsilon, rng)
            after, reward, over = step(state, action, rng)
            target = reward if over else reward + DISCOUNT * q[after].max()
            visits[state, action] += 1
            # The rate falls with the visits, but slowly enough to forget the first guesses.
            rate = visits[state, action] ** -0.5
            q[state, action] += rate * (target - q[state, action])
            state = after
            if over:
                break
    return q


def lake_model():
    """Return the odds P[state, action, next] and the expected rewards R[state, action]."""
    odds = np.zeros((SIDE * SIDE, 4, SIDE * SIDE))
    for state, cell in enumerate(CELLS):
        for action in range(4) if cell not in "oG" else ():
            for slip in (-1, 0, 1):
                odds[state, action, neighbour(state, action + slip)] += 1 / 3
    return wf.tensor(odds), wf.tensor(odds[:, :, CELLS.index("G")])


def best_value(sweeps=1000):
    """Return the value of the start under the best policy, by value iteration (Bellman 1957)."""
    odds, rewards = lake_model()
    v = wf.zeros(SIDE * SIDE, dtype=wf.float64)
    for _ in range(sweeps):
        v = (rewards + DISCOUNT * odds @ v).max(axis=1)
    return v[0].item()


def policy_value(policy, sweeps=1000):
    """Return the value of the start under a given policy."""
    odds, rewards = lake_model()
    states = wf.arange(SIDE * SIDE)
    odds, rewards = odds[states, policy], rewards[states, policy]
    v = wf.zeros(SIDE * SIDE, dtype=wf.float64)
    for _ in range(sweeps):
        v = rewards + DISCOUNT * odds @ v
    return v[0].item()


def main():
    """Learn, draw the policy on the map, and compare it with the best one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--episodes", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a smaller run: 1500 episodes")
    args = parser.parse_args()
    if args.quick:
        args.episodes = 1500

    q = learn(args.episodes, random.Random(args.seed))
    policy = q.argmax(axis=1)
    arrows = [
        cell if cell in "oG" else ARROWS[action]
        for cell, action in zip(CELLS, policy.tolist(), strict=True)
    ]
    for row in range(0, len(CELLS), SIDE):
        print(" ".join(CELLS[row : row + SIDE]), "   ", " ".join(arrows[row : row + SIDE]))
    value, best = policy_value(policy), best_value()
    print(f"value of the learned policy: {value:.4f}, of the best: {best:.4f}")
    print(f"share of the best: {value / best:.1%}")


if __name__ == "__main__":
    main()
