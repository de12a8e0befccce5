"""Molecules: a graph network that finds carbonyl groups, by batches of graphs of any size.

    python examples/molecules.py

Molecules are random graphs of carbon, nitrogen, oxygen and fluorine that keep the valences
(`wf.data.make_molecules`); the class says whether some carbon has a double bond to oxygen. Atoms
send messages along their bonds, and take the sum of what they receive, a few times (Gilmer et al.
2017); attention over the atoms gives the molecule's scores.

The same network is run in two ways, which agree: for one molecule as plain code, many of which
`wf.batched` runs together; and over all atoms of a batch as one large graph, whose messages are
added up by `wf.segment_sum`, and whose molecules are the rows of a ragged tensor (`wf.ragged`).
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn
from weft.data import ATOMS, make_molecules

ORDERS = 4  # bonds are single, double or triple


class GraphNet(nn.Module):
    """Messages along bonds, a few times, and attention over atoms."""

    def __init__(self, width=16, rounds=2):
        super().__init__()
        self.rounds = rounds
        self.atoms = nn.Embedding(len(ATOMS), width)
        self.bonds = nn.Embedding(ORDERS, width)
        self.message = nn.Linear(2 * width, width)
        self.update = nn.Linear(2 * width, width)
        self.weigh = nn.Linear(width, 1)
        self.out = nn.Linear(width, 2)

    def states(self, atoms, source, target, orders):
        """Return the vector of each atom after all rounds."""
        h, bonds = self.atoms(atoms), self.bonds(orders)
        for _ in range(self.rounds):
            sent = F.relu(self.message(wf.concat([h[source], bonds], axis=1)))
            received = wf.segment_sum(sent, target, atoms.shape[0])
            h = F.relu(self.update(wf.concat([h, received], axis=1))) + h
        return h

    def alone(self, molecule):
        """Return the scores of one molecule."""
        h = self.states(*tensors(molecule.atoms, *molecule.edges, np.tile(molecule.orders, 2)))
        shares = F.softmax(self.weigh(h), 0)
        return self.out((shares * h).sum(axis=0))

    def forward(self, molecules):
        """Return the scores of many molecules, as one graph."""
        starts = np.cumsum([0, *map(len, molecules)])
        source, target = (
            np.concatenate(
                [m.edges[i] + start for m, start in zip(molecules, starts, strict=False)]
            )
            for i in range(2)
        )
        atoms = np.concatenate([m.atoms for m in molecules])
        orders = np.concatenate([np.tile(m.orders, 2) for m in molecules])
        h = wf.ragged(self.states(*tensors(atoms, source, target, orders)), row_splits=starts)
        shares = h.apply(self.weigh).softmax()
        return self.out((h * shares).sum())


def tensors(*arrays):
    """Return arrays as tensors."""
    return tuple(wf.tensor(array) for array in arrays)


def labels(molecules):
    """Return the classes of molecules."""
    return wf.tensor([molecule.label for molecule in molecules])


def main():
    """Train, and report the accuracy on molecules that were not seen."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="fewer molecules and epochs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wf.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    train = make_molecules(400 if options.quick else 1500, seed=options.seed)
    test = make_molecules(300, seed=options.seed + 1)
    net = GraphNet()
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(1, (10 if options.quick else options.epochs) + 1):
        order, total = rng.permutation(len(train)), 0.0
        for start in range(0, len(train), 25):
            optimizer.zero_grad()
            batch = [train[i] for i in order[start : start + 25]]
            loss = F.cross_entropy(net(batch), labels(batch))
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch:2}: loss {total / len(train):.4f}")
    with wf.no_grad():
        together, apart = net(test), wf.batched(net.alone, reduce="stack")(test)
    found = together.argmax(axis=1) == labels(test)
    print(f"accuracy on unseen molecules: {100 * found.numpy().mean():.1f}%")
    print(f"largest difference of both ways: {wf.abs(together - apart).max().item():.1e}")


if __name__ == "__main__":
    main()
