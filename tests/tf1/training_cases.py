"""Training runs: functions of the module `tf` that return figures to hold against TensorFlow's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import draws

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "descent": lambda tf: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda tf: tf.train.MomentumOptimizer(0.05, 0.9),
    "nesterov": lambda tf: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adam": lambda tf: tf.train.AdamOptimizer(0.05),
    "adam_epsilon": lambda tf: tf.train.AdamOptimizer(0.05, beta1=0.5, beta2=0.9, epsilon=0.1),
    "rmsprop": lambda tf: tf.train.RMSPropOptimizer(0.02),
    "rmsprop_momentum": lambda tf: tf.train.RMSPropOptimizer(0.02, momentum=0.5, decay=0.8),
    "rmsprop_centered": lambda tf: tf.train.RMSPropOptimizer(0.02, centered=True),
    "adagrad": lambda tf: tf.train.AdagradOptimizer(0.3),
    "adadelta": lambda tf: tf.train.AdadeltaOptimizer(5.0),
    "ftrl": lambda tf: tf.train.FtrlOptimizer(
        0.3, l1_regularization_strength=0.01, l2_regularization_strength=0.02
    ),
    "proximal": lambda tf: tf.train.ProximalGradientDescentOptimizer(0.1, 0.02, 0.03),
    "proximal_adagrad": lambda tf: tf.train.ProximalAdagradOptimizer(
        0.3, l1_regularization_strength=0.01
    ),
}


def trained(tf: Any, name: str) -> list[Any]:
    """Return losses of eight steps, and the weights after them."""
    x = tf.placeholder(tf.float32, [None, 3])
    w = tf.Variable(draws(3, 2, seed=3), name="w")
    b = tf.Variable(np.zeros(2, np.float32), name="b")
    target = tf.constant(draws(6, 2, seed=4))
    loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, w)) + b - target))
    count = tf.Variable(0, trainable=False, name="count")
    step = OPTIMIZERS[name](tf).minimize(loss, global_step=count)
    ema = tf.train.ExponentialMovingAverage(0.8, num_updates=count)
    with tf.control_dependencies([step]):
        averaged = ema.apply([w])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feeds = {x: draws(6, 3, seed=5)}
        losses = [session.run([loss, averaged], feeds)[0] for _ in range(8)]
        return [np.array(losses), *session.run([w, b, count, ema.average(w)])]
