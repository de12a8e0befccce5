# An autoencoder of digits.
import tensorflow as tf

import data

tf.set_random_seed(7)
digits = data.read_data_sets()
num_input, num_hidden_1, num_hidden_2 = 64, 32, 16
X = tf.placeholder("float", [None, num_input])
init = tf.contrib.layers.xavier_initializer()
weights = {
    'encoder_h1': tf.get_variable("e1", [num_input, num_hidden_1], initializer=init),
    'encoder_h2': tf.get_variable("e2", [num_hidden_1, num_hidden_2], initializer=init),
    'decoder_h1': tf.get_variable("d1", [num_hidden_2, num_hidden_1], initializer=init),
    'decoder_h2': tf.get_variable("d2", [num_hidden_1, num_input], initializer=init),
}
biases = {
    'encoder_b1': tf.Variable(tf.zeros([num_hidden_1])),
    'encoder_b2': tf.Variable(tf.zeros([num_hidden_2])),
    'decoder_b1': tf.Variable(tf.zeros([num_hidden_1])),
    'decoder_b2': tf.Variable(tf.zeros([num_input])),
}


def layer(x, w, b):
    return tf.nn.sigmoid(tf.add(tf.matmul(x, weights[w]), biases[b]))


encoded = layer(layer(X, 'encoder_h1', 'encoder_b1'), 'encoder_h2', 'encoder_b2')
decoded = layer(layer(encoded, 'decoder_h1', 'decoder_b1'), 'decoder_h2', 'decoder_b2')
loss = tf.reduce_mean(tf.pow(X - decoded, 2))
optimizer = tf.train.RMSPropOptimizer(0.01).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    first = sess.run(loss, {X: digits.test.images})
    for i in range(600):
        batch_x, _ = digits.train.next_batch(100)
        _, l = sess.run([optimizer, loss], feed_dict={X: batch_x})
    score = sess.run(loss, {X: digits.test.images})
    print("loss", first, "->", score)
    assert score < 0.035, score
