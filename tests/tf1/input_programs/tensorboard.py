# A logistic regression that writes its loss, its weights and its graph for TensorBoard.
import os
import tempfile

import numpy as np
import tensorflow as tf

logs_path = tempfile.mkdtemp()
rng = np.random.RandomState(0)
data = rng.rand(400, 16).astype(np.float32)
target = np.eye(2)[(data[:, :8].sum(1) > data[:, 8:].sum(1)).astype(int)]

x = tf.placeholder(tf.float32, [None, 16], name="InputData")
y = tf.placeholder(tf.float32, [None, 2], name="LabelData")
W = tf.Variable(tf.zeros([16, 2]), name="Weights")
b = tf.Variable(tf.zeros([2]), name="Bias")

with tf.name_scope("Model"):
    pred = tf.nn.softmax(tf.matmul(x, W) + b)
with tf.name_scope("Loss"):
    cost = tf.reduce_mean(-tf.reduce_sum(y * tf.log(pred + 1e-8), reduction_indices=1))
with tf.name_scope("SGD"):
    optimizer = tf.train.GradientDescentOptimizer(0.5).minimize(cost)
with tf.name_scope("Accuracy"):
    acc = tf.equal(tf.argmax(pred, 1), tf.argmax(y, 1))
    acc = tf.reduce_mean(tf.cast(acc, tf.float32))

init = tf.global_variables_initializer()
tf.summary.scalar("loss", cost)
tf.summary.scalar("accuracy", acc)
tf.summary.histogram("weights", W)
tf.summary.image("input", tf.reshape(x, [-1, 4, 4, 1]), max_outputs=2)
merged_summary_op = tf.summary.merge_all()

with tf.Session() as sess:
    sess.run(init)
    summary_writer = tf.summary.FileWriter(logs_path, graph=tf.get_default_graph())
    for epoch in range(60):
        for i in range(4):
            batch = slice(100 * i, 100 * i + 100)
            _, c, summary = sess.run(
                [optimizer, cost, merged_summary_op], feed_dict={x: data[batch], y: target[batch]}
            )
            summary_writer.add_summary(summary, epoch * 4 + i)
    summary_writer.close()
    found = acc.eval({x: data, y: target})
    print("Accuracy:", found)
    assert found > 0.95

(name,) = os.listdir(logs_path)
events = list(tf.train.summary_iterator(os.path.join(logs_path, name)))
losses = [v.simple_value for e in events for v in e.summary.value if v.tag.startswith("loss")]
assert len(losses) == 240 and losses[-1] < losses[0], len(losses)
assert any(e.graph_def for e in events)
