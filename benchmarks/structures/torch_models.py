"""The networks in PyTorch: one example after another, and batched by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from . import examples as x
from .examples import act, best, view


class Network:
    """Parameters by name, made from the same arrays as Weft's."""

    def __init__(self, shapes: dict[str, tuple[int, ...]]) -> None:
        arrays = x.weights(shapes)
        self.parameters = {n: torch.tensor(a, requires_grad=True) for n, a in arrays.items()}
        for name, p in self.parameters.items():
            setattr(self, name, p)

    def one_by_one(self, given: list[Any]) -> Any:
        """Return the mean of the losses of examples, each computed alone."""
        return torch.stack([self.loss(example) for example in given]).mean()


class Training:
    """A network with its optimizer."""

    def __init__(self, net: Network) -> None:
        self.parameters = list(net.parameters.values())
        self.optimizer = torch.optim.SGD(self.parameters, lr=1e-4)

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


def tree_gates(gates: Any, cl: Any, cr: Any) -> tuple[Any, Any]:
    """Return the state of nodes."""
    i, fl, fr, o, u = gates.chunk(5, -1)
    c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(fl) * cl + torch.sigmoid(fr) * cr
    return torch.sigmoid(o) * torch.tanh(c), c


class TreeLSTM(Network):
    """The binary tree-LSTM, with a class for each tree."""

    def state(self, tree: Any) -> Any:
        """Return the state of a tree."""
        if tree.left is None:
            return self.table[tree.word].chunk(2)
        (hl, cl), (hr, cr) = self.state(tree.left), self.state(tree.right)
        return tree_gates(torch.cat([hl, hr]) @ self.weight + self.bias, cl, cr)

    def loss(self, tree: Any) -> Any:
        """Return the loss of a tree."""
        return -F.log_softmax(self.state(tree)[0] @ self.out, -1)[tree.label]

    def by_depth(self, trees: list[Any]) -> Any:
        """Return the mean loss, computed level by level over all trees."""
        levels, roots = numbered(trees)
        words = torch.tensor(levels[0])
        width = self.table.shape[1] // 2
        total = len(words) + sum(len(level) for level in levels[1:])
        h, c = torch.empty(total, width), torch.empty(total, width)
        start = len(words)
        h[:start], c[:start] = self.table[words].chunk(2, -1)
        for level in levels[1:]:
            left, right = torch.tensor(level).T
            both = torch.cat([h[left], h[right]], -1)
            made = tree_gates(torch.addmm(self.bias, both, self.weight), c[left], c[right])
            h[start : start + len(level)], c[start : start + len(level)] = made
            start += len(level)
        labels = torch.tensor([tree.label for tree in trees])
        return F.cross_entropy(h[torch.tensor(roots)] @ self.out, labels)


def numbered(trees: list[Any]) -> tuple[list[list[Any]], list[int]]:
    """Return the words, then for each height the pairs of children; and the numbers of roots."""
    levels: list[list[Any]] = []
    order: list[list[Any]] = []
    for tree in trees:
        _collect(tree, order)
    number, count = {}, 0
    for nodes in order:
        levels.append(
            [n.word if n.left is None else (number[id(n.left)], number[id(n.right)]) for n in nodes]
        )
        for node in nodes:
            number[id(node)] = count
            count += 1
    return levels, [number[id(tree)] for tree in trees]


def _collect(node: Any, order: list[list[Any]]) -> int:
    level = 0
    if node.left is not None:
        level = 1 + max(_collect(node.left, order), _collect(node.right, order))
    while len(order) <= level:
        order.append([])
    order[level].append(node)
    return level


class Tagger(Network):
    """A BiLSTM over words; rare words are spelled by an LSTM over their letters."""

    def lstm(self, name: str, given: Any, state: Any) -> Any:
        """Return the next state (h, c) of an LSTM, of one example or of many."""
        h, c = state
        weight, bias = (self.parameters[f"{name}_{part}"] for part in ("weight", "bias"))
        i, f, o, u = (torch.cat([given, h], -1) @ weight + bias).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
        return torch.sigmoid(o) * torch.tanh(c), c

    def vector(self, word: int, letters: list[int] | None) -> Any:
        """Return what a word is read as."""
        if letters is None:
            return self.words[word]
        state = (torch.zeros(self.words.shape[1]),) * 2
        for letter in letters:
            state = self.lstm("spell", self.letters[letter], state)
        return state[0]

    def scan(self, name: str, vectors: list[Any]) -> list[Any]:
        """Return the states of an LSTM after each vector."""
        state = (torch.zeros(self.out.shape[0] // 2),) * 2
        states = []
        for vector in vectors:
            state = self.lstm(name, vector, state)
            states.append(state[0])
        return states

    def loss(self, sentence: Any) -> Any:
        """Return the mean loss of the tags of a sentence."""
        vectors = [self.vector(*w) for w in zip(sentence.words, sentence.letters, strict=True)]
        before = self.scan("forward", vectors)
        after = self.scan("backward", vectors[::-1])[::-1]
        h = torch.cat([torch.stack(before), torch.stack(after)], -1)
        return F.cross_entropy(h @ self.out, torch.tensor(sentence.tags))

    def padded(self, given: list[Any]) -> Any:
        """Return the mean loss, computed over padded words and sentences."""
        longest = max(len(s.words) for s in given)
        vectors = self.padded_words(given, longest)
        lengths = torch.tensor([len(s.words) for s in given])
        inside = torch.arange(longest) < lengths[:, None]
        backward = torch.where(
            inside, lengths[:, None] - 1 - torch.arange(longest), torch.arange(longest)
        )
        rows = torch.arange(len(given))[:, None]
        before = self.padded_scan("forward", vectors)
        after = self.padded_scan("backward", vectors[rows, backward])[rows, backward]
        scores = torch.cat([before, after], -1) @ self.out
        tags = torch.full((len(given), longest), -100)
        for i, s in enumerate(given):
            tags[i, : len(s.tags)] = torch.tensor(s.tags)
        losses = F.cross_entropy(scores.transpose(1, 2), tags, reduction="none").sum(1)
        return (losses / lengths).mean()

    def padded_words(self, given: list[Any], longest: int) -> Any:
        """Return the vectors of all words, (sentences, longest, width)."""
        numbers = torch.zeros(len(given), longest, dtype=torch.long)
        places, spelled = [], []
        for i, s in enumerate(given):
            numbers[i, : len(s.words)] = torch.tensor(s.words)
            for j, letters in enumerate(s.letters):
                if letters is not None:
                    places.append((i, j))
                    spelled.append(letters)
        vectors = self.words[numbers]
        if not spelled:
            return vectors
        letters = torch.zeros(len(spelled), max(map(len, spelled)), dtype=torch.long)
        for i, word in enumerate(spelled):
            letters[i, : len(word)] = torch.tensor(word)
        states = self.padded_scan("spell", self.letters[letters])
        last = torch.tensor([len(word) - 1 for word in spelled])
        made = states[torch.arange(len(spelled)), last]
        return vectors.index_put(tuple(torch.tensor(places).T), made)

    def padded_scan(self, name: str, vectors: Any) -> Any:
        """Return the states of an LSTM over (batch, length, width)."""
        weight, bias = (self.parameters[f"{name}_{part}"] for part in ("weight", "bias"))
        inputs, width = vectors.shape[2], weight.shape[1] // 4
        # What does not depend on the state is one product for all steps.
        given = (vectors @ weight[:inputs] + bias).unbind(1)
        h = c = torch.zeros(vectors.shape[0], width)
        states = []
        for gates in given:
            i, f, o, u = torch.addmm(gates, h, weight[inputs:]).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return torch.stack(states, 1)


class Parser(Network):
    """A parser that reads its own scores at each step; the steps of the data are what it learns."""

    def scores(self, features: Any) -> Any:
        """Return the scores of the three steps, of one example or of many."""
        h = torch.tanh(features @ self.hidden + self.b_hidden)
        return F.log_softmax(h @ self.out, -1)

    def joined(self, head: Any, child: Any) -> Any:
        """Return a phrase."""
        return torch.tanh(torch.cat([head, child], -1) @ self.join + self.b_join)

    def loss(self, sentence: Any) -> Any:
        """Return the mean loss of the steps; those taken are the best allowed ones."""
        rest = [self.words[word] for word in reversed(sentence.words)]
        stack: list[Any] = []
        losses = []
        for gold in sentence.steps:
            scores = self.scores(torch.cat(view(stack, rest, self.nothing)))
            losses.append(-scores[gold])
            act(stack, rest, best(scores.tolist(), stack, rest), self.joined)
        return torch.stack(losses).mean()

    def in_step(self, given: list[Any]) -> Any:
        """Return the mean loss, with all sentences at the same step at the same time."""
        stacks: list[list[Any]] = [[] for _ in given]
        rests = [list(self.words[torch.tensor(s.words)].flip(0).unbind(0)) for s in given]
        losses: list[Any] = []
        weights: list[float] = []
        for t in range(max(len(s.steps) for s in given)):
            live = [i for i, s in enumerate(given) if t < len(s.steps)]
            seen = [view(stacks[i], rests[i], self.nothing) for i in live]
            scores = self.scores(torch.stack([torch.cat(v) for v in seen]))
            gold = torch.tensor([given[i].steps[t] for i in live])
            losses.append(-scores.gather(1, gold[:, None])[:, 0])
            weights += [1 / len(given[i].steps) for i in live]
            self.act_together(live, stacks, rests, scores.tolist())
        return (torch.cat(losses) * torch.tensor(weights)).sum() / len(given)

    def act_together(self, live: Any, stacks: Any, rests: Any, scores: Any) -> None:
        """Take a step in each sentence; phrases are joined together."""
        pairs, owners = [], []
        for i, values in zip(live, scores, strict=True):
            step = best(values, stacks[i], rests[i])
            if step == 0:
                stacks[i].append(rests[i].pop())
                continue
            top, below = stacks[i].pop(), stacks[i].pop()
            pairs.append((top, below) if step == 1 else (below, top))
            owners.append(i)
        if owners:
            heads, children = (torch.stack(side) for side in zip(*pairs, strict=True))
            for i, phrase in zip(owners, self.joined(heads, children).unbind(0), strict=True):
                stacks[i].append(phrase)
