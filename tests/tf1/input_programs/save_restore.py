# A perceptron that is trained, saved, restored, and trained on.
import os
import tempfile

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
features = rng.randn(600, 10).astype(np.float32)
classes = (features[:, 0] + features[:, 1] * features[:, 2] > 0).astype(np.int64)
labels = np.eye(2)[classes]
model_path = os.path.join(tempfile.mkdtemp(), "model.ckpt")

x = tf.placeholder("float", [None, 10])
y = tf.placeholder("float", [None, 2])
weights = {
    "h1": tf.Variable(tf.random_normal([10, 64], seed=1)),
    "out": tf.Variable(tf.random_normal([64, 2], seed=2)),
}
biases = {"b1": tf.Variable(tf.zeros([64])), "out": tf.Variable(tf.zeros([2]))}
layer_1 = tf.nn.relu(tf.add(tf.matmul(x, weights["h1"]), biases["b1"]))
pred = tf.matmul(layer_1, weights["out"]) + biases["out"]
cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=pred, labels=y))
optimizer = tf.train.AdamOptimizer(learning_rate=0.01).minimize(cost)
correct = tf.equal(tf.argmax(pred, 1), tf.argmax(y, 1))
accuracy = tf.reduce_mean(tf.cast(correct, "float"))
init = tf.global_variables_initializer()
saver = tf.train.Saver()


def train(sess, epochs):
    for _ in range(epochs):
        for i in range(0, 600, 100):
            sess.run(optimizer, feed_dict={x: features[i : i + 100], y: labels[i : i + 100]})
    return accuracy.eval({x: features, y: labels})


with tf.Session() as sess:
    sess.run(init)
    first = train(sess, 10)
    save_path = saver.save(sess, model_path)
    print("saved in %s" % save_path)

with tf.Session() as sess:
    sess.run(init)
    saver.restore(sess, model_path)
    restored = accuracy.eval({x: features, y: labels})
    assert restored == first, (restored, first)
    last = train(sess, 30)
    print("accuracy", first, last)
    assert last > 0.97 and last > first

tf.reset_default_graph()
with tf.Session() as sess:
    new_saver = tf.train.import_meta_graph(model_path + ".meta")
    new_saver.restore(sess, tf.train.latest_checkpoint(os.path.dirname(model_path)))
    found = sess.run([v.name for v in tf.global_variables()])
    assert found[0].shape == (10, 64)
