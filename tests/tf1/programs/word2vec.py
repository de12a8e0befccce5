# Skip-gram vectors by noise-contrastive estimation; words of one group stand together.
import numpy as np
import tensorflow as tf

tf.set_random_seed(10)
rng = np.random.RandomState(10)
groups, each = 5, 8
vocabulary_size, embedding_size, batch_size, num_sampled = groups * each, 16, 128, 8


def generate_batch():
    group = rng.randint(0, groups, batch_size)
    words = group * each + rng.randint(0, each, batch_size)
    contexts = group * each + rng.randint(0, each, batch_size)
    return words.astype(np.int32), contexts.reshape(-1, 1).astype(np.int32)


X = tf.placeholder(tf.int32, shape=[None])
Y = tf.placeholder(tf.int32, shape=[None, 1])
with tf.device('/cpu:0'):
    embedding = tf.Variable(tf.random_uniform([vocabulary_size, embedding_size], -1.0, 1.0))
    X_embed = tf.nn.embedding_lookup(embedding, X)
    nce_weights = tf.Variable(tf.truncated_normal([vocabulary_size, embedding_size], stddev=0.25))
    nce_biases = tf.Variable(tf.zeros([vocabulary_size]))
loss_op = tf.reduce_mean(
    tf.nn.nce_loss(weights=nce_weights, biases=nce_biases, labels=Y, inputs=X_embed,
                   num_sampled=num_sampled, num_classes=vocabulary_size))
train_op = tf.train.AdagradOptimizer(1.0).minimize(loss_op)
X_embed_norm = X_embed / tf.sqrt(tf.reduce_sum(tf.square(X_embed), axis=1, keep_dims=True))
embedding_norm = embedding / tf.sqrt(tf.reduce_sum(tf.square(embedding), 1, keep_dims=True))
cosine_sim_op = tf.matmul(X_embed_norm, embedding_norm, transpose_b=True)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(800):
        batch_x, batch_y = generate_batch()
        _, loss = sess.run([train_op, loss_op], feed_dict={X: batch_x, Y: batch_y})
    sim = sess.run(cosine_sim_op, feed_dict={X: np.arange(vocabulary_size)})
    np.fill_diagonal(sim, -2)
    nearest = sim.argmax(1)
    score = np.mean(nearest // each == np.arange(vocabulary_size) // each)
    print("loss", loss, "nearest word of the same group:", score)
    assert score > 0.9, score
