# One network, two datasets: an iterator that is initialised with the one or the other.
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)


def make(n):
    points = rng.randn(n, 2).astype(np.float32)
    return points, (np.hypot(points[:, 0], points[:, 1]) < 1).astype(np.int32)


train_x, train_y = make(1000)
test_x, test_y = make(300)


def widened(point, label):
    return tf.concat([point, tf.square(point)], 0), label


train = tf.data.Dataset.from_tensor_slices((train_x, train_y)).map(widened)
train = train.shuffle(1000, seed=0).batch(100)
test = tf.data.Dataset.from_tensor_slices((test_x, test_y)).map(widened).batch(300)

iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
features, labels = iterator.get_next()
train_init, test_init = iterator.make_initializer(train), iterator.make_initializer(test)

hidden = tf.layers.dense(features, 32, activation=tf.nn.relu)
logits = tf.layers.dense(hidden, 2)
loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
train_op = tf.train.AdamOptimizer(0.01).minimize(loss)
hits = tf.equal(tf.argmax(logits, 1), tf.cast(labels, tf.int64))
accuracy = tf.reduce_mean(tf.cast(hits, tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(8):
        sess.run(train_init)
        while True:
            try:
                sess.run(train_op)
            except tf.errors.OutOfRangeError:
                break
    sess.run(test_init)
    found = sess.run(accuracy)
    print("accuracy", found)
    assert found > 0.95, found
