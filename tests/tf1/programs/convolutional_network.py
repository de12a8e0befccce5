# A convolutional network with dropout, wrapped as tutorials wrap it.
import tensorflow as tf

import data

tf.set_random_seed(2)
digits = data.read_data_sets(one_hot=True)
X = tf.placeholder(tf.float32, [None, 64])
Y = tf.placeholder(tf.float32, [None, 10])
keep_prob = tf.placeholder(tf.float32)


def conv2d(x, W, b, strides=1):
    x = tf.nn.conv2d(x, W, strides=[1, strides, strides, 1], padding='SAME')
    x = tf.nn.bias_add(x, b)
    return tf.nn.relu(x)


def maxpool2d(x, k=2):
    return tf.nn.max_pool(x, ksize=[1, k, k, 1], strides=[1, k, k, 1], padding='SAME')


def conv_net(x, weights, biases, dropout):
    x = tf.reshape(x, shape=[-1, 8, 8, 1])
    conv1 = maxpool2d(conv2d(x, weights['wc1'], biases['bc1']), k=2)
    conv2 = maxpool2d(conv2d(conv1, weights['wc2'], biases['bc2']), k=2)
    fc1 = tf.reshape(conv2, [-1, weights['wd1'].get_shape().as_list()[0]])
    fc1 = tf.nn.relu(tf.add(tf.matmul(fc1, weights['wd1']), biases['bd1']))
    fc1 = tf.nn.dropout(fc1, dropout)
    return tf.add(tf.matmul(fc1, weights['out']), biases['out'])


weights = {
    'wc1': tf.Variable(tf.truncated_normal([3, 3, 1, 8], stddev=0.2)),
    'wc2': tf.Variable(tf.truncated_normal([3, 3, 8, 16], stddev=0.1)),
    'wd1': tf.Variable(tf.truncated_normal([2 * 2 * 16, 64], stddev=0.1)),
    'out': tf.Variable(tf.truncated_normal([64, 10], stddev=0.1))
}
biases = {
    'bc1': tf.Variable(tf.zeros([8])),
    'bc2': tf.Variable(tf.zeros([16])),
    'bd1': tf.Variable(tf.constant(0.1, shape=[64])),
    'out': tf.Variable(tf.zeros([10]))
}
logits = conv_net(X, weights, biases, keep_prob)
prediction = tf.nn.softmax(logits)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=Y))
train_op = tf.train.AdamOptimizer(learning_rate=0.005).minimize(loss_op)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(prediction, 1), tf.argmax(Y, 1)), tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(1, 201):
        batch_x, batch_y = digits.train.next_batch(64)
        sess.run(train_op, feed_dict={X: batch_x, Y: batch_y, keep_prob: 0.8})
    score = sess.run(accuracy, feed_dict={X: digits.test.images, Y: digits.test.labels, keep_prob: 1.0})
    print("Testing Accuracy:", score)
    assert score > 0.94, score
