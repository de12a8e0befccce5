# Sequences of different lengths: those that rise in steps against random ones.
import numpy as np
import tensorflow as tf

tf.set_random_seed(5)
rng = np.random.RandomState(5)
seq_max_len, n_hidden, n_classes = 12, 24, 2


def sequences(n):
    xs, ys, lengths = [], [], []
    for i in range(n):
        length = rng.randint(4, seq_max_len + 1)
        if rng.rand() < .5:
            start = rng.randint(0, 100 - length)
            s = [[float(k) / 100] for k in range(start, start + length)]
            ys.append([1., 0.])
        else:
            s = [[float(rng.randint(0, 100)) / 100] for k in range(length)]
            ys.append([0., 1.])
        xs.append(s + [[0.]] * (seq_max_len - length))
        lengths.append(length)
    return xs, ys, lengths


x = tf.placeholder("float", [None, seq_max_len, 1])
y = tf.placeholder("float", [None, n_classes])
seqlen = tf.placeholder(tf.int32, [None])
weights = {'out': tf.Variable(tf.random_normal([n_hidden, n_classes]))}
biases = {'out': tf.Variable(tf.random_normal([n_classes]))}

lstm_cell = tf.nn.rnn_cell.LSTMCell(n_hidden)
outputs, state = tf.nn.dynamic_rnn(lstm_cell, x, dtype=tf.float32, sequence_length=seqlen)
batch_size = tf.shape(outputs)[0]
index = tf.range(0, batch_size) * seq_max_len + (seqlen - 1)
last = tf.gather(tf.reshape(outputs, [-1, n_hidden]), index)
pred = tf.matmul(last, weights['out']) + biases['out']
cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=pred, labels=y))
optimizer = tf.train.AdamOptimizer(0.01).minimize(cost)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(pred, 1), tf.argmax(y, 1)), tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    batch_x, batch_y, batch_len = sequences(128)
    for step in range(250):
        if step % 10 == 0:
            batch_x, batch_y, batch_len = sequences(128)
        sess.run(optimizer, feed_dict={x: batch_x, y: batch_y, seqlen: batch_len})
    test_x, test_y, test_len = sequences(200)
    score, h = sess.run([accuracy, state.h], feed_dict={x: test_x, y: test_y, seqlen: test_len})
    print("Testing Accuracy:", score)
    assert score > 0.85 and h.shape == (200, n_hidden), score
