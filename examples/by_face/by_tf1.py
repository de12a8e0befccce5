"""TensorFlow 1: placeholders, variables, an optimizer's `minimize`, a session.

Its programs say products and sums where others say a layer, and the rate is a constant of the
graph: another graph, the same weights.
"""

from task import BATCH, INPUTS, OUTPUTS, RATE, Trained, batches, start

import weft.tf1 as tf


def train() -> Trained:
    """Train by running a session."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [BATCH, INPUTS])
        y = tf.placeholder(tf.float32, [BATCH, OUTPUTS])
        w1, b1, w2, b2 = variables = [tf.Variable(w) for w in start()]
        hidden = tf.nn.relu(tf.matmul(x, w1, transpose_b=True) + b1)
        output = tf.matmul(hidden, w2, transpose_b=True) + b2
        loss = tf.reduce_mean(tf.square(output - y))
        step = tf.train.GradientDescentOptimizer(RATE).minimize(loss)
        session.run(tf.global_variables_initializer())
        for inputs, targets in batches():
            session.run(step, feed_dict={x: inputs, y: targets})
        return Trained(session.run(variables), None)
