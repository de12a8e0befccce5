# Threads fill a queue of shuffled batches; the training loop feeds nothing.
import numpy as np
import tensorflow as tf

import data

tf.set_random_seed(15)
digits = data.read_data_sets(one_hot=False)
image, label = tf.train.slice_input_producer([digits.train.images, digits.train.labels.astype(np.int32)],
                                             shuffle=True, seed=3)
images, labels = tf.train.shuffle_batch([image, label], batch_size=50, capacity=400, min_after_dequeue=100,
                                        num_threads=2)


def net(x, reuse):
    with tf.variable_scope("net", reuse=reuse):
        return tf.layers.dense(tf.layers.dense(x, 48, tf.nn.relu), 10)


loss = tf.losses.sparse_softmax_cross_entropy(labels, net(images, False))
train_op = tf.train.AdamOptimizer(0.01).minimize(loss)
x = tf.placeholder(tf.float32, [None, 64])
predicted = tf.argmax(net(x, True), 1)

with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    try:
        for step in range(250):
            if coord.should_stop():
                break
            _, value = sess.run([train_op, loss])
    finally:
        coord.request_stop()
        coord.join(threads)
    score = np.mean(sess.run(predicted, {x: digits.test.images}) == digits.test.labels)
    print("loss", value, "Accuracy:", score)
    assert score > 0.93, score
