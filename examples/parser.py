"""A transition-based parser that reads its own scores: shift and reduce, decided step by step.

    python examples/parser.py

Sentences come from a small grammar with their dependency trees (`wf.data.make_parses`); with
`--conllu train.conllu dev.conllu` from treebanks of Universal Dependencies instead, of which
projective trees are used. A bidirectional LSTM reads the tags; at each step the parser looks at two
words of its stack and the next one, and shifts, or makes one of the two the head of the other.

In training it follows its own decisions now and then, not only those of the data, so that it learns
what to do after a mistake (a simple form of Goldberg and Nivre's exploration). To decide, it must
*read* scores in the middle of the program. `wf.batched` lets the sentence that reads wait until the
others are at such a point too, and computes all their scores together.
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F
from weft import nn
from weft.data import Parse, arc_standard, make_parses, read_conllu

SHIFT, LEFT, RIGHT = range(3)


class Parser(nn.Module):
    """A BiLSTM over tags, and a perceptron that scores the three steps."""

    def __init__(self, tags, width=24, hidden=48):
        super().__init__()
        self.number = {tag: i for i, tag in enumerate(tags)}
        self.width = width
        self.embed = nn.Embedding(len(tags), width)
        self.before, self.after = (nn.Linear(2 * width, 4 * width) for _ in range(2))
        self.hidden = nn.Linear(6 * width, hidden)
        self.out = nn.Linear(hidden, 3)
        self.nothing = nn.Parameter(wf.zeros(2 * width))

    @wf.cell
    def word(self, tag):
        """Return the vector of a word."""
        return self.embed(tag)

    @wf.cell
    def left_to_right(self, x, h, c):
        """Read a word from the left."""
        return lstm(self.before(wf.concat([x, h], axis=-1)), c)

    @wf.cell
    def right_to_left(self, x, h, c):
        """Read a word from the right."""
        return lstm(self.after(wf.concat([x, h], axis=-1)), c)

    @wf.cell
    def scores(self, top, below, ahead):
        """Return the log-probabilities of the three steps."""
        h = F.relu(self.hidden(wf.concat([top, below, ahead], axis=-1)))
        return F.log_softmax(self.out(h), -1)

    def scan(self, step, vectors):
        """Return the states of an LSTM after each vector."""
        states, h, c = [], wf.zeros(self.width), wf.zeros(self.width)
        for x in vectors:
            h, c = step(x, h, c)
            states.append(h)
        return states

    def encoded(self, tags):
        """Return a vector for each word that knows its sentence."""
        vectors = [self.word(wf.tensor(self.number.get(tag, 0))) for tag in tags]
        before = self.scan(self.left_to_right, vectors)
        after = self.scan(self.right_to_left, vectors[::-1])[::-1]
        return [wf.concat(pair) for pair in zip(before, after, strict=True)]

    def look(self, words, stack, position):
        """Return the scores in a state: words on the stack are numbered from 1, 0 is the root."""
        vector = lambda i: words[i - 1] if i else self.nothing  # noqa: E731  (one line)
        top = vector(stack[-1])
        below = vector(stack[-2]) if len(stack) > 1 else self.nothing
        ahead = words[position] if position < len(words) else self.nothing
        return self.scores(top, below, ahead)

    def loss(self, example):
        """Return the mean loss of the steps on the way to the tree of one sentence."""
        parse, follows = example
        words, losses = self.encoded(parse.tags), []
        stack, position = [0], 0
        while position < len(words) or len(stack) > 1:
            scores = self.look(words, stack, position)
            good = right_steps(parse.heads, stack, position)
            allowed = possible(stack, position, len(words))
            if good:  # after a mistake there may be none
                losses.append(-scores[good[0]])
            values = scores.tolist()  # read: this sentence waits for the others
            choice = allowed if follows else good or allowed
            position = taken(max(choice, key=values.__getitem__), stack, position)
        return sum(losses) / len(losses)

    def heads(self, parse):
        """Return the heads that the parser gives to the words of one sentence."""
        words, stack, position = self.encoded(parse.tags), [0], 0
        found = [0] * len(words)
        while position < len(words) or len(stack) > 1:
            values = self.look(words, stack, position).tolist()
            step = max(possible(stack, position, len(words)), key=values.__getitem__)
            if step != SHIFT:
                head, child = (-1, -2) if step == LEFT else (-2, -1)
                found[stack[child] - 1] = stack[head]
            position = taken(step, stack, position)
        return found


def lstm(gates, c):
    """Return the next state of an LSTM."""
    i, f, o, u = wf.chunk(gates, 4, axis=-1)
    c = wf.sigmoid(f + 1.0) * c + wf.sigmoid(i) * wf.tanh(u)
    return wf.sigmoid(o) * wf.tanh(c), c


def possible(stack, position, count):
    """Return the steps that can be taken; the root never hangs below a word."""
    steps = [SHIFT] if position < count else []
    steps += [LEFT] if len(stack) > 2 else []
    return steps + ([RIGHT] if len(stack) > 2 or (len(stack) == 2 and position == count) else [])


def right_steps(heads, stack, position):
    """Return the step that is right here, in a list, or none: one that loses no head."""
    top, below = stack[-1], stack[-2] if len(stack) > 1 else None
    ahead = heads[position:]
    if len(stack) > 2 and heads[below - 1] == top and below not in ahead:
        return [LEFT]
    if below is not None and heads[top - 1] == below and top not in ahead:
        return [RIGHT] if len(stack) > 2 or not ahead else [SHIFT]
    return [SHIFT] if ahead else []


def taken(step, stack, position):
    """Take a step; return the position of the next word."""
    if step == SHIFT:
        stack.append(position + 1)
        return position + 1
    stack.pop(-2 if step == LEFT else -1)
    return position


def read_parses(path):
    """Return the projective sentences of a CoNLL-U file."""
    parses = []
    for sentence in read_conllu(path):
        try:
            steps = arc_standard(sentence.heads)
        except (TypeError, ValueError):
            continue  # crossing arcs, or heads that are not given
        tags = tuple(token.upos or "_" for token in sentence.tokens)
        parses.append(Parse(tuple(sentence.words), tags, tuple(sentence.heads), steps))
    return parses


def attachment(found, parses):
    """Return the share of words whose head is right."""
    pairs = zip(np.concatenate(found), np.concatenate([p.heads for p in parses]), strict=True)
    return np.mean([ours == theirs for ours, theirs in pairs])


def main():
    """Train, and report how many heads are right in sentences that were not seen."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--conllu", nargs=2, metavar=("TRAIN", "DEV"))
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="fewer sentences and epochs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wf.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    if options.conllu:
        train, dev = map(read_parses, options.conllu)
    else:
        train = make_parses(100 if options.quick else 500, depth=1, seed=options.seed)
        dev = make_parses(40 if options.quick else 100, depth=1, seed=options.seed + 1)
    net = Parser(sorted({tag for parse in train for tag in parse.tags}))
    losses, heads = wf.batched(net.loss, reduce="mean"), wf.batched(net.heads)
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(1, (3 if options.quick else options.epochs) + 1):
        order, total = rng.permutation(len(train)), 0.0
        for start in range(0, len(train), 10):
            optimizer.zero_grad()
            batch = [(train[i], rng.random() < 0.2) for i in order[start : start + 10]]
            loss = losses(batch)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch}: loss {total / len(train):.4f}")
    with wf.no_grad():
        found = heads(dev)
    print(f"right heads in unseen sentences: {100 * attachment(found, dev):.1f}%")


if __name__ == "__main__":
    main()
