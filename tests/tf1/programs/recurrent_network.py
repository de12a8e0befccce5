# Rows of digits as steps in time, by a static network.
import tensorflow as tf
from tensorflow.contrib import rnn

import data

tf.set_random_seed(4)
digits = data.read_data_sets(one_hot=True)
num_input, timesteps, num_hidden, num_classes = 8, 8, 32, 10
X = tf.placeholder("float", [None, timesteps, num_input])
Y = tf.placeholder("float", [None, num_classes])
weights = {'out': tf.Variable(tf.random_normal([num_hidden, num_classes]))}
biases = {'out': tf.Variable(tf.random_normal([num_classes]))}


def RNN(x, weights, biases):
    x = tf.unstack(x, timesteps, 1)
    lstm_cell = rnn.BasicLSTMCell(num_hidden, forget_bias=1.0)
    outputs, states = rnn.static_rnn(lstm_cell, x, dtype=tf.float32)
    return tf.matmul(outputs[-1], weights['out']) + biases['out']


logits = RNN(X, weights, biases)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=Y))
train_op = tf.train.RMSPropOptimizer(0.01).minimize(loss_op)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(Y, 1)), tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(1, 301):
        batch_x, batch_y = digits.train.next_batch(100)
        batch_x = batch_x.reshape((100, timesteps, num_input))
        sess.run(train_op, feed_dict={X: batch_x, Y: batch_y})
    test = digits.test.images.reshape((-1, timesteps, num_input))
    score = sess.run(accuracy, feed_dict={X: test, Y: digits.test.labels})
    print("Testing Accuracy:", score)
    assert score > 0.9, score
