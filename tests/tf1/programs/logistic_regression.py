# Logistic regression on digits by the formula of the cross entropy.
import tensorflow as tf

import data

digits = data.read_data_sets(one_hot=True)
learning_rate = 0.5
training_epochs = 25
batch_size = 100

x = tf.placeholder(tf.float32, [None, 64])
y = tf.placeholder(tf.float32, [None, 10])
W = tf.Variable(tf.zeros([64, 10]))
b = tf.Variable(tf.zeros([10]))

pred = tf.nn.softmax(tf.matmul(x, W) + b)
cost = tf.reduce_mean(-tf.reduce_sum(y * tf.log(pred), reduction_indices=1))
optimizer = tf.train.GradientDescentOptimizer(learning_rate).minimize(cost)
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    for epoch in range(training_epochs):
        avg_cost = 0.
        total_batch = int(digits.train.num_examples / batch_size)
        for i in range(total_batch):
            batch_xs, batch_ys = digits.train.next_batch(batch_size)
            _, c = sess.run([optimizer, cost], feed_dict={x: batch_xs, y: batch_ys})
            avg_cost += c / total_batch
    correct_prediction = tf.equal(tf.argmax(pred, 1), tf.argmax(y, 1))
    accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))
    score = accuracy.eval({x: digits.test.images, y: digits.test.labels})
    print("cost=", "{:.9f}".format(avg_cost), "Accuracy:", score)
    assert score > 0.92, score
