#!/usr/bin/env python
# Deep Q-learning with replay and a target network, on a corridor with a trap at one end.
from __future__ import division

import argparse
import collections
import copy
import random

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


class Corridor(object):
    """A walk to the right end; each step costs, and the left end is a trap."""

    size = 7

    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)

    def observe(self):
        seen = np.zeros(self.size, np.float32)
        seen[self.at] = 1
        return seen

    def reset(self):
        self.at = self.rng.randint(1, self.size - 1)
        self.t = 0
        return self.observe()

    def step(self, action):
        self.at += 1 if action == 1 else -1
        self.t += 1
        reward = {0: -1.0, self.size - 1: 1.0}.get(self.at, -0.05)
        done = self.at in (0, self.size - 1)
        return self.observe(), reward, done


class QFunction(chainer.Chain):

    def __init__(self, obs_size, n_actions, n_units=32):
        super(QFunction, self).__init__()
        with self.init_scope():
            self.l0 = L.Linear(obs_size, n_units)
            self.l1 = L.Linear(n_units, n_units)
            self.l2 = L.Linear(n_units, n_actions)

    def forward(self, x):
        h = F.relu(self.l0(x))
        h = F.relu(self.l1(h))
        return self.l2(h)


def get_greedy_action(Q, obs):
    with chainer.no_backprop_mode():
        q = Q(Q.xp.asarray(obs[None], dtype=np.float32)).array[0]
    return int(q.argmax())


def mean_clipped_loss(y, t):
    return F.mean(F.huber_loss(y, t, delta=1.0, reduce='no'))


def update(Q, target_Q, opt, samples, gamma=0.9, target_type='double_dqn'):
    dtype = np.float32
    obs = np.asarray([sample[0] for sample in samples], dtype=dtype)
    action = np.asarray([sample[1] for sample in samples], dtype=np.int32)
    reward = np.asarray([sample[2] for sample in samples], dtype=dtype)
    done = np.asarray([sample[3] for sample in samples], dtype=dtype)
    obs_next = np.asarray([sample[4] for sample in samples], dtype=dtype)
    y = F.select_item(Q(obs), action)
    with chainer.no_backprop_mode():
        if target_type == 'dqn':
            next_q = F.max(target_Q(obs_next), axis=1)
        else:
            next_q = F.select_item(target_Q(obs_next), F.argmax(Q(obs_next), axis=1))
        target = reward + gamma * (1 - done) * next_q.array
    loss = mean_clipped_loss(y, target)
    Q.cleargrads()
    loss.backward()
    opt.update()
    return float(loss.array)


def main():
    parser = argparse.ArgumentParser(description='Deep Q-learning')
    parser.add_argument('--out', '-o', default='dqn_result')
    parser.add_argument('--unit', '-u', type=int, default=32)
    parser.add_argument('--episodes', '-e', type=int, default=150)
    parser.add_argument('--batch-size', '-b', type=int, default=32)
    parser.add_argument('--target-type', default='double_dqn', choices=['dqn', 'double_dqn'])
    args = parser.parse_args()

    np.random.seed(8)
    random.seed(8)
    env = Corridor(8)
    D = collections.deque(maxlen=2000)
    Q = QFunction(env.size, 2, n_units=args.unit)
    target_Q = copy.deepcopy(Q)
    opt = chainer.optimizers.Adam(alpha=0.003, eps=1e-2)
    opt.setup(Q)

    reward_history = collections.deque(maxlen=50)
    iteration = 0
    for episode in range(args.episodes):
        obs = env.reset()
        done = False
        R = 0.0
        while not done and env.t < 30:
            epsilon = max(0.05, 1.0 - iteration / 400)
            action = random.randrange(2) if random.random() < epsilon else get_greedy_action(Q, obs)
            new_obs, reward, done = env.step(action)
            R += reward
            D.append((obs, action, reward, done, new_obs))
            obs = new_obs
            iteration += 1
            if len(D) >= 100:
                update(Q, target_Q, opt, random.sample(D, args.batch_size),
                       target_type=args.target_type)
            if iteration % 50 == 0:
                target_Q.copyparams(Q)
        reward_history.append(R)
        if episode % 50 == 49:
            print('episode: {}, iteration: {}, mean reward {:.2f}'.format(
                episode + 1, iteration, np.mean(reward_history)))

    # The value of a place next to the end is 1; one more step back it is 0.9 - 0.05.
    with chainer.no_backprop_mode():
        values = Q(np.eye(env.size, dtype=np.float32)).array[1:-1].max(axis=1)
    expected = [1.0]
    for _ in range(env.size - 3):
        expected.insert(0, -0.05 + 0.9 * expected[0])
    actions = [get_greedy_action(Q, seen) for seen in np.eye(env.size, dtype=np.float32)[1:-1]]
    error = np.abs(values - expected).max()
    print('actions', actions, 'values', values, 'error', error)
    assert actions == [1] * (env.size - 2), actions
    assert error < 0.1, error


if __name__ == '__main__':
    main()
