"""Sentiments of phrases: a tree-LSTM over parsed sentences (Tai et al. 2015), batched by itself.

    python examples/sentiment_trees.py

Data are in the brackets of the Stanford Sentiment Treebank, `(3 (2 It) (4 works))`: each phrase has
a class from 0, very negative, to 4. The example writes a small treebank of that kind, in which
"not" turns a phrase, "very" strengthens it and "but" lets the second half win, and reads it back;
`--treebank DIR` reads train.txt and dev.txt of the real one instead.

The network is written for one tree, as plain recursion. `wf.batched` runs it for many: nodes that
are ready in any of the trees are computed together, and `wf.cell` makes each step one kernel.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn
from weft.data import Tree, read_brackets

NOUNS = ("film", "plot", "cast", "script", "music", "ending", "story", "camera")
WORDS = {
    0: ("awful", "dreadful", "terrible"),
    1: ("dull", "weak", "slow", "bland"),
    3: ("good", "fine", "clever", "warm"),
    4: ("brilliant", "superb", "wonderful"),
}


class TreeLSTM(nn.Module):
    """A binary tree-LSTM with a class at every node."""

    def __init__(self, words, width=24, classes=5):
        super().__init__()
        self.number = {word: i + 1 for i, word in enumerate(words)}  # 0: never seen
        self.embed = nn.Embedding(len(words) + 1, 2 * width)
        self.gates = nn.Linear(2 * width, 5 * width)
        self.out = nn.Linear(width, classes)

    @wf.cell
    def leaf(self, word):
        """Return the state of a word."""
        h, c = wf.chunk(self.embed(word), 2, axis=-1)
        return wf.tanh(h), c

    @wf.cell
    def node(self, left, right):
        """Return the state of a phrase from those of its halves."""
        (hl, cl), (hr, cr) = left, right
        i, fl, fr, o, u = wf.chunk(self.gates(wf.concat([hl, hr], axis=-1)), 5, axis=-1)
        c = wf.sigmoid(i) * wf.tanh(u) + wf.sigmoid(fl) * cl + wf.sigmoid(fr) * cr
        return wf.sigmoid(o) * wf.tanh(c), c

    @wf.cell
    def scores(self, h):
        """Return the log-probabilities of the classes."""
        return F.log_softmax(self.out(h), -1)

    def state(self, tree, visit):
        """Return the state of a tree; `visit` is told of every node."""
        if tree.word is not None:
            state = self.leaf(wf.tensor(self.number.get(tree.word, 0)))
        else:
            state = self.node(self.state(tree.left, visit), self.state(tree.right, visit))
        visit(tree, state[0])
        return state

    def loss(self, tree):
        """Return the mean loss of the nodes of one tree."""
        losses = []
        self.state(tree, lambda node, h: losses.append(-self.scores(h)[node.label]))
        return sum(losses) / len(losses)

    def predict(self, tree):
        """Return the scores of the whole tree."""
        h, _ = self.state(tree, lambda node, h: None)
        return self.scores(h)


# -- a treebank -----------------------------------------------------------------------------------


def write_treebank(path, count, rng):
    """Write sentences in brackets, one on each line."""
    path.write_text("".join(f"{sentence(rng)}\n" for _ in range(count)))


def sentence(rng):
    """Return a random sentence with the classes of all its phrases."""
    first = clause(rng)
    if rng.random() < 0.35:
        second = clause(rng)
        rest = Tree(second.label, None, [Tree(2, "but"), second])
        return Tree(second.label, None, [first, rest])  # what follows "but" decides
    return first


def clause(rng):
    """Return "the plot is not very good"."""
    judged = judgement(rng, 2)
    verb = Tree(judged.label, None, [Tree(2, "is"), judged])
    noun = Tree(2, None, [Tree(2, "the"), Tree(2, str(rng.choice(NOUNS)))])
    return Tree(judged.label, None, [noun, verb])


def judgement(rng, depth):
    """Return an adjective, perhaps with "not" or "very" before it."""
    kind = rng.random() if depth else 1.0
    if kind < 0.35:
        inner = judgement(rng, depth - 1)
        return Tree(4 - inner.label, None, [Tree(2, "not"), inner])
    if kind < 0.6:
        inner = judgement(rng, depth - 1)
        label = 0 if inner.label < 2 else 4
        return Tree(label, None, [Tree(2, "very"), inner])
    label = int(rng.choice((0, 1, 3, 4)))
    return Tree(label, str(rng.choice(WORDS[label])))


# -- training -------------------------------------------------------------------------------------


def accuracy(net, trees, predict):
    """Return the share of trees whose class is found."""
    net.eval()
    with wf.no_grad():
        scores = predict(trees)
    net.train()
    return np.mean(scores.argmax(axis=1).numpy() == [tree.label for tree in trees])


def main():
    """Train, and report the accuracy on sentences that were not seen."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--treebank", type=Path, help="a directory with train.txt and dev.txt")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="fewer sentences and epochs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wf.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        root = options.treebank or Path(folder)
        if options.treebank is None:
            write_treebank(root / "train.txt", 300 if options.quick else 1000, rng)
            write_treebank(root / "dev.txt", 200, rng)
        train, dev = (
            [tree.binarized().without_unary() for tree in read_brackets(root / name, label=int)]
            for name in ("train.txt", "dev.txt")
        )
    net = TreeLSTM(sorted({word for tree in train for word in tree.words()}))
    losses = wf.batched(net.loss, reduce="mean")
    predict = wf.batched(net.predict, reduce="stack")
    optimizer = wf.optim.Adam(net.parameters(), lr=0.02 if options.quick else 0.01)
    for epoch in range(1, (4 if options.quick else options.epochs) + 1):
        order, total = rng.permutation(len(train)), 0.0
        for start in range(0, len(train), 25):
            optimizer.zero_grad()
            batch = [train[i] for i in order[start : start + 25]]
            loss = losses(batch)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch}: loss {total / len(train):.4f}")
    print(f"accuracy on unseen sentences: {100 * accuracy(net, dev, predict):.1f}%")


if __name__ == "__main__":
    main()
