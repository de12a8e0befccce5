"""The networks in Weft: plain code for one example; the steps that repeat are cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft as wf

from . import examples as x
from .examples import WORDS, act, best, view


class Network:
    """Parameters by name, made from arrays."""

    cells: tuple[str, ...] = ()

    def __init__(self, shapes: dict[str, tuple[int, ...]]) -> None:
        arrays = x.weights(shapes)
        self.parameters = {name: wf.tensor(a, requires_grad=True) for name, a in arrays.items()}
        for name, p in self.parameters.items():
            setattr(self, name, p)
        for name in self.cells:
            setattr(self, name, wf.cell(getattr(self, name)))


class Training:
    """A network with its optimizer."""

    def __init__(self, net: Network) -> None:
        self.parameters = list(net.parameters.values())
        self.optimizer = wf.optim.SGD(self.parameters, lr=1e-4)

    def step(self, losses: Callable[[Any], Any], given: Any) -> Any:
        """Return the loss after a step of gradient descent."""
        self.optimizer.zero_grad()
        loss = losses(given)
        loss.backward()
        self.optimizer.step()
        return loss

    def computed(self, losses: Callable[[Any], Any], given: Any) -> list[Any]:
        """Return the loss and the gradients, and change nothing."""
        self.optimizer.zero_grad()
        loss = losses(given)
        loss.backward()
        return [loss.item(), *(p.grad.numpy() for p in self.parameters)]


class TreeLSTM(Network):
    """The binary tree-LSTM, with a class for each tree."""

    cells = ("leaf", "node", "cost")

    def leaf(self, word: Any) -> Any:
        """Return the state of a word."""
        h, c = wf.chunk(self.table[word], 2)
        return h, c

    def node(self, left: Any, right: Any) -> Any:
        """Return the state of a node from those of its children."""
        (hl, cl), (hr, cr) = left, right
        i, fl, fr, o, u = wf.chunk(wf.concat([hl, hr]) @ self.weight + self.bias, 5)
        c = wf.sigmoid(i) * wf.tanh(u) + wf.sigmoid(fl) * cl + wf.sigmoid(fr) * cr
        return wf.sigmoid(o) * wf.tanh(c), c

    def cost(self, h: Any, label: Any) -> Any:
        """Return the loss of a class."""
        return -wf.log_softmax(h @ self.out)[label]

    def state(self, tree: Any) -> Any:
        """Return the state of a tree."""
        if tree.left is None:
            return self.leaf(wf.tensor(tree.word))
        return self.node(self.state(tree.left), self.state(tree.right))

    def loss(self, tree: Any) -> Any:
        """Return the loss of a tree."""
        return self.cost(self.state(tree)[0], wf.tensor(tree.label))


def lstm_step(weight: Any, bias: Any, given: Any, state: Any) -> Any:
    """Return the next state (h, c) of an LSTM."""
    h, c = state
    i, f, o, u = wf.chunk(wf.concat([given, h]) @ weight + bias, 4)
    c = wf.sigmoid(f) * c + wf.sigmoid(i) * wf.tanh(u)
    return wf.sigmoid(o) * wf.tanh(c), c


class Tagger(Network):
    """A BiLSTM over words; rare words are spelled by an LSTM over their letters."""

    cells = ("spell", "go", "back", "cost", "known")

    def known(self, word: Any) -> Any:
        """Return the vector of a word."""
        return self.words[word]

    def spell(self, letter: Any, state: Any) -> Any:
        """Read a letter."""
        return lstm_step(self.spell_weight, self.spell_bias, self.letters[letter], state)

    def go(self, word: Any, state: Any) -> Any:
        """Read a word from the left."""
        return lstm_step(self.forward_weight, self.forward_bias, word, state)

    def back(self, word: Any, state: Any) -> Any:
        """Read a word from the right."""
        return lstm_step(self.backward_weight, self.backward_bias, word, state)

    def cost(self, before: Any, after: Any, tag: Any) -> Any:
        """Return the loss of a tag."""
        return -wf.log_softmax(wf.concat([before, after]) @ self.out)[tag]

    def vector(self, word: int, letters: list[int] | None) -> Any:
        """Return what a word is read as."""
        if letters is None:
            return self.known(wf.tensor(word))
        state = (wf.zeros(self.words.shape[1]),) * 2
        for letter in letters:
            state = self.spell(wf.tensor(letter), state)
        return state[0]

    def loss(self, sentence: Any) -> Any:
        """Return the mean loss of the tags of a sentence."""
        vectors = [self.vector(*w) for w in zip(sentence.words, sentence.letters, strict=True)]
        width = self.out.shape[0] // 2
        before = self.scan(self.go, vectors, width)
        after = self.scan(self.back, vectors[::-1], width)[::-1]
        triples = zip(before, after, sentence.tags, strict=True)
        losses = [self.cost(b, a, wf.tensor(tag)) for b, a, tag in triples]
        return wf.stack(losses).mean()

    def scan(self, step: Any, vectors: list[Any], width: int) -> list[Any]:
        """Return the states of an LSTM after each vector."""
        states, state = [], (wf.zeros(width), wf.zeros(width))
        for vector in vectors:
            state = step(vector, state)
            states.append(state[0])
        return states


class Parser(Network):
    """A parser that reads its own scores at each step; the steps of the data are what it learns."""

    cells = ("scores", "joined", "known", "cost")

    def known(self, word: Any) -> Any:
        """Return the vector of a word."""
        return self.words[word]

    def scores(self, top: Any, below: Any, word: Any) -> Any:
        """Return the scores of the three steps."""
        h = wf.tanh(wf.concat([top, below, word]) @ self.hidden + self.b_hidden)
        return wf.log_softmax(h @ self.out)

    def joined(self, head: Any, child: Any) -> Any:
        """Return a phrase."""
        return wf.tanh(wf.concat([head, child]) @ self.join + self.b_join)

    def cost(self, scores: Any, step: Any) -> Any:
        """Return the loss of a step."""
        return -scores[step]

    def loss(self, sentence: Any) -> Any:
        """Return the mean loss of the steps; those taken are the best allowed ones."""
        rest = [self.known(wf.tensor(word)) for word in reversed(sentence.words)]
        stack: list[Any] = []
        losses = []
        for gold in sentence.steps:
            scores = self.scores(*view(stack, rest, self.nothing))
            losses.append(self.cost(scores, wf.tensor(gold)))
            act(stack, rest, best(scores.tolist(), stack, rest), self.joined)
        return wf.stack(losses).mean()


class Chain(TreeLSTM):
    """The tree-LSTM as a chain: each node joins what is there so far with one more word."""

    def loss(self, depth: int) -> Any:
        """Return the loss of a chain of so many words."""
        state = self.leaf(wf.tensor(0))
        for i in range(1, depth):
            state = self.node(state, self.leaf(wf.tensor(i % WORDS)))
        return self.cost(state[0], wf.tensor(0))
