"""Balance the pole of CartPole-v1: deep Q-learning with wf.nn and wf.optim.

The games are gymnasium's (pip install "weft[rl]"). A network estimates the discounted reward of
either push; it learns from transitions replayed in random order, towards the estimate of a target
network that follows it slowly. As the maximum over noisy estimates is too high, one network chooses
the best action and the other rates it (double Q-learning, van Hasselt 2016). The task counts as
solved at a mean return of 475 over 100 games; the best possible is 500.

    python examples/cartpole_dqn.py
    python examples/cartpole_dqn.py --quick
"""

import argparse

import gymnasium
import numpy as np

import weft as wf
import weft.nn.functional as F

GAMES = 16  # played side by side while learning
UPDATES = 4  # of the network after each step of all games
HIDDEN, BATCH, CAPACITY = 128, 128, 50_000
DISCOUNT = 0.99
FOLLOW = 0.01  # how far the target network goes towards the other in an update
RATE, LAST_RATE = 1e-3, 1e-4  # of learning, falling linearly while it goes on
SOLVED = 475


class Replay:
    """The last transitions, drawn from in random order: neighbours in time are too alike."""

    def __init__(self):
        self.columns = [
            np.zeros((CAPACITY, 4), np.float32),  # observation before
            np.zeros(CAPACITY, np.int64),  # action
            np.zeros(CAPACITY, np.float32),  # reward
            np.zeros(CAPACITY, np.float32),  # 0 where the pole fell, else 1
            np.zeros((CAPACITY, 4), np.float32),  # observation after
        ]
        self.written = 0

    def add(self, *values):
        """Write transitions over the oldest ones."""
        rows = (self.written + np.arange(len(values[0]))) % CAPACITY
        for column, value in zip(self.columns, values, strict=True):
            column[rows] = value
        self.written += len(rows)

    def draw(self, rng):
        """Return a random batch as tensors."""
        rows = rng.integers(min(self.written, CAPACITY), size=BATCH)
        return [wf.tensor(column[rows]) for column in self.columns]


class Games:
    """Games of CartPole side by side, each begun anew when it has ended."""

    def __init__(self, count, seed):
        self.environment = gymnasium.make_vec(
            "CartPole-v1", num_envs=count, vectorization_mode="vector_entry_point"
        )
        self.observations, _ = self.environment.reset(seed=seed)
        self.over = np.zeros(count, bool)

    def step(self, actions):
        """Make a step in each game; return its transitions, without those that only begin anew."""
        before, playing = self.observations, ~self.over
        self.observations, rewards, fell, timed_out, _ = self.environment.step(actions)
        self.over = fell | timed_out
        # A game cut off after 500 steps would have gone on: only a fall ends the future rewards.
        columns = (before, actions, rewards, 1.0 - fell, self.observations)
        return [column[playing] for column in columns]


def make_network():
    """Return a perceptron: 4 observations - 2 hidden layers - the values of 2 actions."""
    return wf.nn.Sequential(
        wf.nn.Linear(4, HIDDEN),
        wf.nn.ReLU(),
        wf.nn.Linear(HIDDEN, HIDDEN),
        wf.nn.ReLU(),
        wf.nn.Linear(HIDDEN, 2),
    )


@wf.no_grad()
def best_actions(network, observations):
    """Return the action of the larger value in each game."""
    return network(wf.tensor(observations)).argmax(axis=1).numpy()


def q_of(network, observations, actions):
    """Return the values of the given actions: (batch,)."""
    return wf.gather(network(observations), 1, actions.unsqueeze(1)).squeeze(1)


def td_loss(network, target, batch):
    """Return the Huber loss between Q of the actions taken and its bootstrapped estimate."""
    before, actions, rewards, went_on, after = batch
    with wf.no_grad():  # the estimate is a label here: no gradient flows into it
        best = network(after).argmax(axis=1)
        estimate = rewards + DISCOUNT * went_on * q_of(target, after, best)
    return F.huber_loss(q_of(network, before, actions), estimate)


@wf.no_grad()
def follow(target, network):
    """Move the target network a little towards the other (Lillicrap 2016)."""
    for slow, fast in zip(target.parameters(), network.parameters(), strict=True):
        slow.copy_(slow + FOLLOW * (fast - slow))


def mean_return(network, seed, count=100):
    """Return the mean return of the greedy policy over new games."""
    games = Games(count, seed)
    playing, total = np.ones(count, bool), 0
    while playing.any():
        total += playing.sum()  # each step with the pole up is worth 1
        games.step(best_actions(network, games.observations))
        playing &= ~games.over
    return total / count


class Learner:
    """The two networks, the games they learn from, and what is remembered of these."""

    def __init__(self, steps, seed):
        self.rng = np.random.default_rng(seed)
        self.steps = steps
        self.network, self.target = make_network(), make_network()
        self.target.load_state_dict(self.network.state_dict())
        self.optimizer = wf.optim.Adam(self.network.parameters(), lr=RATE)
        self.games, self.replay = Games(GAMES, seed), Replay()

    def play(self, epsilon):
        """Make a step in every game, at random with probability epsilon, and remember it."""
        best = best_actions(self.network, self.games.observations)
        explore = self.rng.random(GAMES) < epsilon
        actions = np.where(explore, self.rng.integers(2, size=GAMES), best)
        self.replay.add(*self.games.step(actions))

    def learn(self, step):
        """Improve the network on some batches."""
        self.optimizer.param_groups[0]["lr"] = RATE + (LAST_RATE - RATE) * step / self.steps
        for _ in range(UPDATES):
            self.optimizer.minimize(td_loss(self.network, self.target, self.replay.draw(self.rng)))
            follow(self.target, self.network)

    def run(self, seed):
        """Play and learn until the policy plays almost perfectly; keep its best weights."""
        best, weights = -1.0, self.network.state_dict()
        for step in range(1, self.steps + 1):
            self.play(epsilon=max(0.05, 1 - step / 500))
            if self.replay.written >= 1000:
                self.learn(step)
            if step % 250 == 0 or step == self.steps:
                score = mean_return(self.network, seed)
                print(f"step {step:5}  mean return {score:6.1f}", flush=True)
                if score > best:
                    best, weights = score, self.network.state_dict()
            if best >= 499:
                break
        self.network.load_state_dict(weights)


def main():
    """Train and print the mean return of the best policy over 100 games not seen before."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=10_000, help=f"at most, each in {GAMES} games")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="learn for a few steps only")
    args = parser.parse_args()

    wf.manual_seed(args.seed)
    learner = Learner(steps=300 if args.quick else args.steps, seed=args.seed)
    learner.run(seed=args.seed + 1)  # the games that choose the policy ...
    score = mean_return(learner.network, seed=args.seed + 2)  # ... and those that judge it
    print(f"mean return: {score:.1f} ({'solved' if score >= SOLVED else 'NOT solved'}: {SOLVED})")


if __name__ == "__main__":
    main()
