# A linear regression, fed one point at a time.
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
learning_rate = 0.01
training_epochs = 500

train_X = rng.uniform(2, 11, 40)
train_Y = 0.25 * train_X + 0.8 + 0.05 * rng.randn(40)
n_samples = train_X.shape[0]

X = tf.placeholder("float")
Y = tf.placeholder("float")
W = tf.Variable(rng.randn(), name="weight", dtype=tf.float32)
b = tf.Variable(rng.randn(), name="bias", dtype=tf.float32)

pred = tf.add(tf.multiply(X, W), b)
cost = tf.reduce_sum(tf.pow(pred - Y, 2)) / (2 * n_samples)
optimizer = tf.train.GradientDescentOptimizer(learning_rate * 10).minimize(cost)
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    for epoch in range(training_epochs):
        for (x, y) in zip(train_X, train_Y):
            sess.run(optimizer, feed_dict={X: x, Y: y})
    training_cost = sess.run(cost, feed_dict={X: train_X, Y: train_Y})
    print("cost=", training_cost, "W=", sess.run(W), "b=", sess.run(b))
    assert training_cost < 0.01, training_cost
