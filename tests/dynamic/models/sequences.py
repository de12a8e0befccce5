"""Sentences: a tagger that reads characters, a parser that decides step by step."""

from __future__ import annotations

import weft as wf
from weft.data import make_parses
from weft.data.structures.grammar import LEFT, RIGHT, SHIFT

from .base import Model, lstm_step, pick

TAGS = ("ADJ", "ADP", "ADV", "CONJ", "DET", "NAME", "NOUN", "PUNCT", "REL", "VERB")
WIDTH, CHARACTER, WORD = 4, 3, 5


class Tagger(Model):
    """A BiLSTM over words; a word is its vector, or what an LSTM makes of its characters."""

    cell_names = ("read", "step_forward", "step_backward", "cost")

    def build(self):
        self.words = {word: i for i, word in enumerate(("the", "a", "old", "sees", "in", "."))}
        self.word_table, self.char_table = self.make(len(self.words), WORD), self.make(128, 3)
        self.char_lstm = self.lstm(CHARACTER, WORD)
        self.forward, self.backward = self.lstm(WORD, WIDTH), self.lstm(WORD, WIDTH)
        self.out = self.make(2 * WIDTH, len(TAGS))

    def examples(self, count):
        return make_parses(count, depth=1, seed=7)

    def read(self, character, state):
        return lstm_step(self.char_lstm, self.char_table[character], state)

    def step_forward(self, x, state):
        return lstm_step(self.forward, x, state)

    def step_backward(self, x, state):
        return lstm_step(self.backward, x, state)

    def cost(self, before, after, tag):
        return pick(wf.log_softmax(wf.concat([before, after]) @ self.out), tag)

    def word(self, text):
        if text in self.words:  # rare words are spelled out
            return self.word_table[self.words[text]]
        state = self.zeros(WORD), self.zeros(WORD)
        for character in text:
            state = self.read(wf.tensor(ord(character)), state)
        return state[0]

    def scan(self, step, vectors):
        states, state = [], (self.zeros(WIDTH), self.zeros(WIDTH))
        for x in vectors:
            state = step(x, state)
            states.append(state[0])
        return states

    def loss(self, parse):
        vectors = [self.word(text) for text in parse.words]
        before = self.scan(self.step_forward, vectors)
        after = self.scan(self.step_backward, vectors[::-1])[::-1]
        pairs = zip(before, after, parse.tags, strict=True)
        losses = [self.cost(b, a, wf.tensor(TAGS.index(tag))) for b, a, tag in pairs]
        return sum(losses) / len(losses), before[-1]


class TransitionParser(Model):
    """An arc-standard parser that follows its own decisions: its scores are read at each step."""

    cell_names = ("scores", "compose")

    def build(self):
        self.table = self.make(len(TAGS), WORD)
        self.root, self.nothing = self.make(WORD), self.make(WORD)
        self.hidden, self.b_hidden = self.make(3 * WORD, 6), self.make(6)
        self.out = self.make(6, 3)
        self.weight, self.bias = self.make(2 * WORD, WORD), self.make(WORD)

    def examples(self, count):
        return make_parses(count, depth=1, seed=8)

    def scores(self, first, second, word):
        h = wf.tanh(wf.concat([first, second, word]) @ self.hidden + self.b_hidden)
        return wf.log_softmax(h @ self.out)

    def compose(self, head, child):
        return wf.tanh(wf.concat([head, child]) @ self.weight + self.bias)

    def allowed(self, stack, rest):
        found = [SHIFT] if rest else []
        found += [LEFT] if len(stack) > 2 else []
        return found + ([RIGHT] if len(stack) > 2 or (len(stack) == 2 and not rest) else [])

    def loss(self, parse):
        rest = [self.table[TAGS.index(tag)] for tag in reversed(parse.tags)]
        stack, total, taken, gold = [self.root], 0.0, [], list(parse.transitions)
        while rest or len(stack) > 1:
            below = stack[-2] if len(stack) > 1 else self.nothing
            scores = self.scores(stack[-1], below, rest[-1] if rest else self.nothing)
            values = scores.tolist()  # here the example waits for the others
            action = max(self.allowed(stack, rest), key=lambda a: values[a])
            target = gold[len(taken)] if len(taken) < len(gold) else SHIFT
            total = total + pick(scores, target)
            taken.append(action)
            if action == SHIFT:
                stack.append(rest.pop())
            else:
                top, second = stack.pop(), stack.pop()
                pair = (top, second) if action == LEFT else (second, top)
                stack.append(self.compose(*pair))
        return total / len(taken), taken
