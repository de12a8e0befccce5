# Two hidden layers, weights in dictionaries.
import tensorflow as tf

import data

tf.set_random_seed(1)
digits = data.read_data_sets(one_hot=True)
n_hidden_1, n_hidden_2, num_input, num_classes = 64, 32, 64, 10

X = tf.placeholder("float", [None, num_input])
Y = tf.placeholder("float", [None, num_classes])
weights = {
    'h1': tf.Variable(tf.random_normal([num_input, n_hidden_1], stddev=0.2)),
    'h2': tf.Variable(tf.random_normal([n_hidden_1, n_hidden_2], stddev=0.2)),
    'out': tf.Variable(tf.random_normal([n_hidden_2, num_classes], stddev=0.2))
}
biases = {
    'b1': tf.Variable(tf.random_normal([n_hidden_1])),
    'b2': tf.Variable(tf.random_normal([n_hidden_2])),
    'out': tf.Variable(tf.random_normal([num_classes]))
}


def multilayer_perceptron(x):
    layer_1 = tf.nn.relu(tf.add(tf.matmul(x, weights['h1']), biases['b1']))
    layer_2 = tf.nn.relu(tf.add(tf.matmul(layer_1, weights['h2']), biases['b2']))
    return tf.matmul(layer_2, weights['out']) + biases['out']


logits = multilayer_perceptron(X)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=Y))
train_op = tf.train.AdamOptimizer(learning_rate=0.01).minimize(loss_op)
correct_pred = tf.equal(tf.argmax(tf.nn.softmax(logits), 1), tf.argmax(Y, 1))
accuracy = tf.reduce_mean(tf.cast(correct_pred, tf.float32))
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    for step in range(1, 401):
        batch_x, batch_y = digits.train.next_batch(100)
        sess.run(train_op, feed_dict={X: batch_x, Y: batch_y})
        if step % 200 == 0:
            loss, acc = sess.run([loss_op, accuracy], feed_dict={X: batch_x, Y: batch_y})
            print("Step " + str(step) + ", Minibatch Loss= " + "{:.4f}".format(loss))
    score = sess.run(accuracy, feed_dict={X: digits.test.images, Y: digits.test.labels})
    print("Testing Accuracy:", score)
    assert score > 0.94, score
