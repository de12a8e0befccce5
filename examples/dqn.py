"""Learn the game of catch: deep Q-learning (Mnih 2015) with replay and a target network.

A ball falls from a random place, one row a step; the paddle on the bottom row moves left, stays, or
moves right. Only the last step tells whether it was caught: +1, or -1. The network sees the board,
a grid of pixels, and must find out which early moves make the late reward. Several games run
side by side, so that one call of the network decides for all of them.

    python examples/dqn.py
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F

ROWS, COLUMNS = 8, 6
GAMES = 8  # played side by side while learning
HIDDEN, BATCH, CAPACITY = 64, 64, 10_000
DISCOUNT = 0.98


class Catch:
    """Games of catch, all on the same row at the same time."""

    def __init__(self, count, rng):
        self.count, self.rng = count, rng
        self.reset()

    def reset(self):
        """Start new games: the ball and the paddle at random columns."""
        self.row = 0
        self.ball, self.paddle = self.rng.integers(COLUMNS, size=(2, self.count))

    def boards(self):
        """Return what the players see: (games, ROWS * COLUMNS) pixels."""
        boards = np.zeros((self.count, ROWS, COLUMNS), np.float32)
        games = np.arange(self.count)
        boards[games, self.row, self.ball] = 1
        boards[games, -1, self.paddle] = 1
        return boards.reshape(self.count, -1)

    def step(self, moves):
        """Move the paddles (0 left, 1 stay, 2 right); return rewards, and whether it is over."""
        self.paddle = np.clip(self.paddle + moves - 1, 0, COLUMNS - 1)
        self.row += 1
        over = self.row == ROWS - 1
        caught = np.where(self.paddle == self.ball, 1.0, -1.0)
        return caught * over, over


class Replay:
    """The last transitions, drawn from in random order: neighbours in time are too alike."""

    def __init__(self):
        self.columns = [
            np.zeros((CAPACITY, ROWS * COLUMNS), np.float32),  # board before
            np.zeros(CAPACITY, np.int64),  # move
            np.zeros(CAPACITY, np.float32),  # reward
            np.zeros(CAPACITY, np.float32),  # 1 where the game went on, 0 where it ended
            np.zeros((CAPACITY, ROWS * COLUMNS), np.float32),  # board after
        ]
        self.written = 0

    def add(self, *values):
        """Write one transition of each game over the oldest ones."""
        rows = (self.written + np.arange(GAMES)) % CAPACITY
        for column, value in zip(self.columns, values, strict=True):
            column[rows] = value
        self.written += GAMES

    def draw(self, rng):
        """Return a random batch as tensors."""
        rows = rng.integers(min(self.written, CAPACITY), size=BATCH)
        return [wf.tensor(column[rows]) for column in self.columns]


def init_network():
    """Return the parameters of a perceptron: pixels - hidden units - 3 moves."""
    pixels = ROWS * COLUMNS
    return [
        (wf.randn(HIDDEN, pixels) * pixels**-0.5).requires_grad_(),
        wf.zeros(HIDDEN, requires_grad=True),
        (wf.randn(3, HIDDEN) * HIDDEN**-0.5).requires_grad_(),
        wf.zeros(3, requires_grad=True),
    ]


def q_values(network, boards):
    """Return the expected discounted reward of each move: (batch, 3)."""
    w1, b1, w2, b2 = network
    return F.linear(F.relu(F.linear(boards, w1, b1)), w2, b2)


def choose_moves(network, boards, epsilon, rng):
    """Move at random with probability epsilon, else as looks best."""
    with wf.no_grad():
        best = q_values(network, wf.tensor(boards)).argmax(axis=1).numpy()
    explore = rng.random(len(best)) < epsilon
    return np.where(explore, rng.integers(3, size=len(best)), best)


def td_loss(network, target, batch):
    """Return the Huber loss between Q of the moves made and its bootstrapped estimate."""
    boards, moves, rewards, went_on, after = batch
    with wf.no_grad():  # the estimate is a label here: no gradient flows into it
        estimate = rewards + DISCOUNT * went_on * q_values(target, after).max(axis=1)
    made = wf.gather(q_values(network, boards), 1, moves.unsqueeze(1)).squeeze(1)
    return F.huber_loss(made, estimate)


@wf.no_grad()
def rmsprop_step(network, squares, rate=2e-3, decay=0.95, eps=1e-4):
    """Divide each gradient by the root of its running mean square (Tieleman and Hinton 2012)."""
    for p, square in zip(network, squares, strict=True):
        square.copy_(decay * square + (1 - decay) * p.grad * p.grad)
        p.copy_(p - rate * p.grad / (wf.sqrt(square) + eps))
        p.grad = None


def mean_return(network, rng, count=500):
    """Return the mean reward of the greedy policy over new games."""
    games = Catch(count, rng)
    over = False
    while not over:
        rewards, over = games.step(choose_moves(network, games.boards(), 0.0, rng))
    return rewards.mean()


def play_step(network, games, replay, epsilon, rng):
    """Make one move in every game and remember what came of it."""
    before = games.boards()
    moves = choose_moves(network, before, epsilon, rng)
    rewards, over = games.step(moves)
    replay.add(before, moves, rewards, 1.0 - over, games.boards())
    if over:
        games.reset()


def train(threshold, max_steps, rng):
    """Alternate between playing and learning until the threshold is reached; return the score."""
    network = init_network()
    squares = [wf.zeros_like(p) for p in network]
    games, replay = Catch(GAMES, rng), Replay()
    for step in range(max_steps + 1):
        if step % 100 == 0:
            # Chasing an estimate that moves with every step diverges; a copy holds it still.
            target = [p.detach() for p in network]
        if step % 200 == 0:
            score = mean_return(network, rng)
            print(f"step {step:5}  mean return {score:+.3f}")
            if score >= threshold:
                break
        play_step(network, games, replay, max(0.1, 1 - step / 500), rng)
        td_loss(network, target, replay.draw(rng)).backward()
        rmsprop_step(network, squares)
    return score


def main():
    """Train and print the mean return of the greedy policy; the best possible is 1."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--threshold", type=float, default=0.99, help="mean return to reach")
    parser.add_argument("--steps", type=int, default=6000, help="give up after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="stop at a mean return of 0.8")
    args = parser.parse_args()
    threshold = 0.8 if args.quick else args.threshold

    wf.manual_seed(args.seed)
    score = train(threshold, args.steps, np.random.default_rng(args.seed))
    outcome = "reached" if score >= threshold else "NOT reached"
    print(f"mean return: {score:.3f} (threshold {threshold:g} {outcome})")


if __name__ == "__main__":
    main()
