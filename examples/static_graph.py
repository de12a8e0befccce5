"""Train a network by define-and-run: build the whole step as a graph, then run it.

The same network is trained once more by an ordinary eager loop from the same seed. Graph and loop
use the same operators and the same rules, so that the weights differ only by the rounding of
compiled code; with --interpret, which goes from node to node, they agree to the last bit.

    python examples/static_graph.py
    python examples/static_graph.py --draw step.svg
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F


def spirals(n, rng):
    """Return n points on two interleaved spirals, and which spiral each is on."""
    label = rng.integers(0, 2, n)
    angle = rng.uniform(0.5, 3.5, n) * np.pi
    direction = angle + np.pi * label
    points = np.stack([np.cos(direction), np.sin(direction)], axis=1) * (angle / 8)[:, None]
    return (points + rng.normal(0, 0.02, (n, 2))).astype(np.float32), label


def make_net():
    """Return a new network, always with the same weights."""
    wf.manual_seed(1)
    layers = [wf.nn.Linear(2, 64), wf.nn.Tanh(), wf.nn.Linear(64, 64), wf.nn.Tanh()]
    return wf.nn.Sequential(*layers, wf.nn.Linear(64, 2))


def train_statically(points, labels, steps, picture=None):
    """Build forward pass, gradients and Adam's update as one graph; run it step by step."""
    net = make_net()
    with wf.Graph() as graph:
        x = wf.placeholder(("batch", 2), wf.float32, name="x")
        y = wf.placeholder(("batch",), wf.int64, name="y")
        scores = net(x)
        with wf.name_scope("loss"):
            loss = F.cross_entropy(scores, y)
            accuracy = (scores.argmax(axis=1) == y).to(wf.float32).mean()
        train = wf.optim.Adam(net.parameters(), lr=0.01).minimize(loss)
    if picture:
        graph.draw(picture)
    with wf.Session(graph) as session:
        for _ in range(steps):
            session.run(train, {x: points, y: labels})
        value = session.run(accuracy, {x: points, y: labels})
    return net, float(value), graph


def train_eagerly(points, labels, steps):
    """Train the same network by a loop that runs each operation as it is written."""
    net = make_net()
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)
    x, y = wf.tensor(points), wf.tensor(labels)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    return net


def main():
    """Train both ways and compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draw", metavar="FILE", help="draw the graph (.svg, .png or .dot)")
    parser.add_argument("--interpret", action="store_true", help="do not compile the graph")
    parser.add_argument("--quick", action="store_true", help="fewer points and steps")
    args = parser.parse_args()
    n, steps = (300, 300) if args.quick else (1000, 600)
    wf.config.debug_interpret = args.interpret
    points, labels = spirals(n, np.random.default_rng(args.seed))
    net, accuracy, graph = train_statically(points, labels, steps, args.draw)
    other = train_eagerly(points, labels, steps)
    pairs = zip(net.parameters(), other.parameters(), strict=True)
    difference = max(float(abs(a - b).max()) for a, b in pairs)
    print(f"nodes in the graph of one step: {len(graph)}, optimised {len(graph.optimize())}")
    print(f"accuracy: {accuracy:.3f}")
    print(f"largest difference between static and eager weights: {difference}")


if __name__ == "__main__":
    main()
