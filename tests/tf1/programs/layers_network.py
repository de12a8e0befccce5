# tf.layers with batch normalisation, dropout, UPDATE_OPS, and the same net twice by variable_scope.
import tensorflow as tf

import data

tf.set_random_seed(3)
digits = data.read_data_sets(one_hot=False)
images = tf.placeholder(tf.float32, [None, 64], name="images")
labels = tf.placeholder(tf.int64, [None], name="labels")


def conv_net(x, n_classes, dropout, reuse, is_training):
    with tf.variable_scope('ConvNet', reuse=reuse):
        x = tf.reshape(x, shape=[-1, 8, 8, 1])
        conv1 = tf.layers.conv2d(x, 16, 3, activation=tf.nn.relu, padding='same')
        conv1 = tf.layers.batch_normalization(conv1, momentum=0.9, training=is_training)
        conv1 = tf.layers.max_pooling2d(conv1, 2, 2)
        fc1 = tf.layers.flatten(conv1)
        fc1 = tf.layers.dense(fc1, 64, activation=tf.nn.relu)
        fc1 = tf.layers.dropout(fc1, rate=dropout, training=is_training)
        return tf.layers.dense(fc1, n_classes)


logits_train = conv_net(images, 10, 0.25, reuse=False, is_training=True)
logits_test = conv_net(images, 10, 0.25, reuse=True, is_training=False)
loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits_train)
global_step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.01, global_step, 100, 0.9, staircase=True)
update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
with tf.control_dependencies(update_ops):
    train_op = tf.train.AdamOptimizer(rate).minimize(loss, global_step=global_step)
accuracy, update_accuracy = tf.metrics.accuracy(labels, tf.argmax(logits_test, axis=1))

assert [v.name for v in tf.trainable_variables()][:2] == ['ConvNet/conv2d/kernel:0', 'ConvNet/conv2d/bias:0']
with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for step in range(200):
        batch_x, batch_y = digits.train.next_batch(64)
        sess.run(train_op, {images: batch_x, labels: batch_y})
    for start in range(0, digits.test.num_examples, 100):
        sess.run(update_accuracy, {images: digits.test.images[start:start + 100],
                                   labels: digits.test.labels[start:start + 100]})
    score = sess.run(accuracy)
    print("Testing Accuracy:", score, "steps", sess.run(global_step))
    assert score > 0.94 and sess.run(global_step) == 200, score
