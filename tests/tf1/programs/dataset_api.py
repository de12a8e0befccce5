# tf.data: shuffled batches from an iterator, and another iterator for the test.
import tensorflow as tf

import data

tf.set_random_seed(16)
digits = data.read_data_sets()
dataset = tf.data.Dataset.from_tensor_slices((digits.train.images, digits.train.labels.astype("float32")))
dataset = dataset.repeat().shuffle(500, seed=1).batch(64).prefetch(1)
iterator = dataset.make_initializable_iterator()
X, Y = iterator.get_next()


def conv_net(x, reuse):
    with tf.variable_scope('ConvNet', reuse=reuse):
        x = tf.reshape(x, shape=[-1, 8, 8, 1])
        conv1 = tf.layers.max_pooling2d(tf.layers.conv2d(x, 8, 3, activation=tf.nn.relu), 2, 2)
        fc1 = tf.contrib.layers.flatten(conv1)
        return tf.layers.dense(tf.layers.dense(fc1, 48, activation=tf.nn.relu), 10)


loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=conv_net(X, False), labels=Y))
train_op = tf.train.AdamOptimizer(learning_rate=0.01).minimize(loss_op)
inputs = tf.placeholder(tf.float32, [None, 64])
prediction = tf.argmax(conv_net(inputs, True), 1)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(iterator.initializer)
    for step in range(200):
        sess.run(train_op)
    found = sess.run(prediction, {inputs: digits.test.images})
    score = (found == digits.test.labels.argmax(1)).mean()
    print("Testing Accuracy:", score)
    assert score > 0.93, score
