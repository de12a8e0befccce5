# Towers on two devices that share variables; their gradients are averaged.
import tensorflow as tf

import data

tf.set_random_seed(12)
digits = data.read_data_sets()
num_gpus = 2


def network(x, reuse):
    with tf.variable_scope('net', reuse=reuse):
        h = tf.layers.dense(x, 48, activation=tf.nn.tanh)
        return tf.layers.dense(h, 10)


def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars]
        grad = tf.reduce_mean(tf.concat(grads, 0), 0)
        average_grads.append((grad, grad_and_vars[0][1]))
    return average_grads


with tf.device('/cpu:0'):
    tower_grads = []
    reuse_vars = False
    X = tf.placeholder(tf.float32, [None, 64])
    Y = tf.placeholder(tf.float32, [None, 10])
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    xs, ys = tf.split(X, num_gpus), tf.split(Y, num_gpus)
    for i in range(num_gpus):
        with tf.device('/gpu:%d' % i), tf.name_scope('tower_%d' % i):
            logits = network(xs[i], reuse_vars)
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=ys[i]))
            if i == 0:
                correct = tf.equal(tf.argmax(network(X, True), 1), tf.argmax(Y, 1))
                accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
            reuse_vars = True
            tower_grads.append(optimizer.compute_gradients(loss))
    train_op = optimizer.apply_gradients(average_gradients(tower_grads))

config = tf.ConfigProto(allow_soft_placement=True, log_device_placement=False)
config.gpu_options.allow_growth = True
with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(300):
        batch_x, batch_y = digits.train.next_batch(100)
        sess.run(train_op, feed_dict={X: batch_x, Y: batch_y})
    score = sess.run(accuracy, feed_dict={X: digits.test.images, Y: digits.test.labels})
    print("Accuracy:", score, logits.device)
    assert score > 0.94, score
