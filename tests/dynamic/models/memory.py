"""Networks with a memory: a stack, a tape that is addressed softly, the beams of a search."""

from __future__ import annotations

import numpy as np

import weft as wf

from .base import Model, lstm_step, pick

WIDTH, SYMBOLS = 5, 6


class StackLSTM(Model):
    """A stack-LSTM (Dyer 2015): reading goes on from whatever state the stack has on its top."""

    cell_names = ("push",)

    def build(self):
        self.table, self.weights = self.make(SYMBOLS, WIDTH), self.lstm(WIDTH, WIDTH)
        self.start = (self.make(WIDTH), self.make(WIDTH))
        self.out = self.make(WIDTH, SYMBOLS)

    def examples(self, count):
        rng = np.random.default_rng(9)
        return [self.program(rng, int(rng.integers(1, 12))) for _ in range(count)]

    def program(self, rng, length):
        """Return pushes of symbols and pops (-1), of which none empties the stack."""
        steps, height = [], 0
        for _ in range(length):
            pops = height > 0 and rng.random() < 0.4
            steps.append(-1 if pops else int(rng.integers(SYMBOLS)))
            height += -1 if pops else 1
        return steps

    def push(self, symbol, state):
        return lstm_step(self.weights, self.table[symbol], state)

    def loss(self, program):
        stack, losses = [self.start], []
        for step in program:
            if step < 0:
                stack.pop()
            else:
                losses.append(pick(wf.log_softmax(stack[-1][0] @ self.out), step))
                stack.append(self.push(wf.tensor(step), stack[-1]))
        return sum(losses) / len(losses), stack[-1]


class TuringMemory(Model):
    """A controller that reads and writes a memory by content and by shifts (Graves 2014)."""

    cell_names = ("turn",)
    slots, key = 4, 3

    def build(self):
        self.table = self.make(SYMBOLS, WIDTH)
        self.weights = self.lstm(WIDTH + self.key, WIDTH)
        self.heads, self.b_heads = self.make(WIDTH, 3 * self.key + 5), self.make(3 * self.key + 5)
        self.memory = self.make(self.slots, self.key)
        self.out = self.make(WIDTH + self.key, SYMBOLS)

    def examples(self, count):
        rng = np.random.default_rng(10)
        lengths = rng.integers(1, 6, count)
        return [rng.integers(0, SYMBOLS, n).tolist() for n in lengths]

    def address(self, memory, where, key, strength, gate, shifts):
        dots = memory @ key
        norms = wf.sqrt((memory * memory).sum(axis=1) * (key * key).sum() + 1e-6)
        content = wf.softmax(wf.softplus(strength) * dots / norms)
        mixed = wf.sigmoid(gate) * content + (1 - wf.sigmoid(gate)) * where
        shift = wf.softmax(shifts)
        return sum(shift[i] * wf.roll(mixed, i - 1) for i in range(3))

    def turn(self, symbol, state, memory, where, read):
        state = lstm_step(self.weights, wf.concat([self.table[symbol], read]), state)
        given = state[0] @ self.heads + self.b_heads
        key, erase, add = given[:3], wf.sigmoid(given[3:6]), wf.tanh(given[6:9])
        where = self.address(memory, where, key, given[9], given[10], given[11:14])
        column = wf.reshape(where, (self.slots, 1))
        memory = memory * (1 - column * erase) + column * add
        return state, memory, where, where @ memory

    def loss(self, symbols):
        state, memory = (self.zeros(WIDTH), self.zeros(WIDTH)), self.memory
        where, read = wf.full((self.slots,), 0.25, dtype=self.dtype), self.zeros(self.key)
        for symbol in symbols:
            state, memory, where, read = self.turn(wf.tensor(symbol), state, memory, where, read)
        total = 0.0
        for symbol in symbols:
            scores = wf.log_softmax(wf.concat([state[0], read]) @ self.out)
            total = total + pick(scores, symbol)
            state, memory, where, read = self.turn(wf.tensor(0), state, memory, where, read)
        return total / len(symbols), memory


class BeamSearch(Model):
    """A decoder that keeps the best beams by their scores, and ends when the best one ends."""

    cell_names = ("step",)
    beams, most, end = 3, 6, 0

    def build(self):
        self.table, self.weights = self.make(SYMBOLS, WIDTH), self.lstm(WIDTH, WIDTH)
        self.out = self.make(WIDTH, SYMBOLS, scale=1.5)

    def examples(self, count):
        rng = np.random.default_rng(11)
        return [rng.normal(0, 1, WIDTH).astype(self.dtype) for _ in range(count)]

    def step(self, symbol, state):
        state = lstm_step(self.weights, self.table[symbol], state)
        return state, wf.log_softmax(state[0] @ self.out)

    def loss(self, start):
        state = wf.tensor(start), wf.tensor(start)
        beams = [(0.0, [1], state)]
        for _ in range(self.most):
            grown = []
            for score, symbols, state in beams:
                if symbols[-1] == self.end:
                    grown.append((score, symbols, state))
                    continue
                after, scores = self.step(wf.tensor(symbols[-1]), state)
                total = scores + score
                grown += [(total[i], [*symbols, i], after) for i in range(SYMBOLS)]
            grown.sort(key=lambda beam: -float(beam[0]))
            beams = grown[: self.beams]
            if beams[0][1][-1] == self.end:
                break
        score, symbols, _ = beams[0]
        return -score / len(symbols), symbols
