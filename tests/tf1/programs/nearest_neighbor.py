# The nearest neighbour by the L1 distance, one test image at a time.
import numpy as np
import tensorflow as tf

import data

digits = data.read_data_sets()
Xtr, Ytr = digits.train.next_batch(1000)
Xte, Yte = digits.test.next_batch(100)
xtr = tf.placeholder("float", [None, 64])
xte = tf.placeholder("float", [64])
distance = tf.reduce_sum(tf.abs(tf.add(xtr, tf.negative(xte))), reduction_indices=1)
pred = tf.arg_min(distance, 0)
accuracy = 0.
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    for i in range(len(Xte)):
        nn_index = sess.run(pred, feed_dict={xtr: Xtr, xte: Xte[i, :]})
        if np.argmax(Ytr[nn_index]) == np.argmax(Yte[i]):
            accuracy += 1. / len(Xte)
    print("Accuracy:", accuracy)
    assert accuracy > 0.95, accuracy
