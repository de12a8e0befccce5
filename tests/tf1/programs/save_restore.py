# Train, save, and go on from what was saved in another session.
import os
import tempfile

import numpy as np
import tensorflow as tf

import data

tf.set_random_seed(13)
digits = data.read_data_sets()
model_path = os.path.join(tempfile.mkdtemp(), "model.ckpt")
x = tf.placeholder("float", [None, 64])
y = tf.placeholder("float", [None, 10])
weights = {'h1': tf.Variable(tf.random_normal([64, 32], stddev=0.2), name="h1"),
           'out': tf.Variable(tf.random_normal([32, 10], stddev=0.2), name="out")}
biases = {'b1': tf.Variable(tf.zeros([32]), name="b1"), 'out': tf.Variable(tf.zeros([10]), name="bout")}
hidden = tf.nn.relu(tf.matmul(x, weights['h1']) + biases['b1'])
pred = tf.matmul(hidden, weights['out']) + biases['out']
cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=pred, labels=y))
optimizer = tf.train.AdamOptimizer(learning_rate=0.01).minimize(cost)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(pred, 1), tf.argmax(y, 1)), "float"))
init = tf.global_variables_initializer()
saver = tf.train.Saver()


def train(sess, steps):
    for i in range(steps):
        batch_x, batch_y = digits.train.next_batch(100)
        sess.run([optimizer, cost], feed_dict={x: batch_x, y: batch_y})


test = {x: digits.test.images, y: digits.test.labels}
with tf.Session() as sess:
    sess.run(init)
    train(sess, 60)
    first = accuracy.eval(test)
    w1 = sess.run(weights['h1'])
    save_path = saver.save(sess, model_path)
    print("First Optimization Finished! Accuracy:", first, "saved in file: %s" % save_path)

with tf.Session() as sess:
    sess.run(init)
    saver.restore(sess, model_path)
    assert np.array_equal(sess.run(weights['h1']), w1)
    assert accuracy.eval(test) == first
    train(sess, 200)
    second = accuracy.eval(test)
    print("Second Optimization Finished! Accuracy:", second)
    assert second > 0.94 and second > first, second
