# Rows of digits from above and from below.
import tensorflow as tf

import data

tf.set_random_seed(6)
digits = data.read_data_sets(one_hot=True)
timesteps, num_input, num_hidden = 8, 8, 24
X = tf.placeholder(tf.float32, [None, timesteps, num_input])
Y = tf.placeholder(tf.float32, [None, 10])
fw = tf.nn.rnn_cell.GRUCell(num_hidden)
bw = tf.nn.rnn_cell.GRUCell(num_hidden)
outputs, states = tf.nn.bidirectional_dynamic_rnn(fw, bw, X, dtype=tf.float32)
last = tf.concat(states, 1)
logits = tf.layers.dense(last, 10)
loss = tf.losses.softmax_cross_entropy(onehot_labels=Y, logits=logits)
optimizer = tf.train.AdamOptimizer(0.01)
grads, variables = zip(*optimizer.compute_gradients(loss))
grads, norm = tf.clip_by_global_norm(grads, 5.0)
train_op = optimizer.apply_gradients(zip(grads, variables))
accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, 1), tf.argmax(Y, 1))))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(250):
        batch_x, batch_y = digits.train.next_batch(100)
        sess.run(train_op, {X: batch_x.reshape(-1, 8, 8), Y: batch_y})
    score = sess.run(accuracy, {X: digits.test.images.reshape(-1, 8, 8), Y: digits.test.labels})
    print("Testing Accuracy:", score)
    assert score > 0.92, score
