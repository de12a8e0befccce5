# A small generative adversarial network: points on a ring, two optimizers with their variables.
import numpy as np
import tensorflow as tf

tf.set_random_seed(9)
rng = np.random.RandomState(9)
noise_dim = 4


def real_samples(n):
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.stack([np.cos(angle), np.sin(angle)], 1) + 0.02 * rng.randn(n, 2)


def generator(z):
    with tf.variable_scope("Generator", reuse=tf.AUTO_REUSE):
        h = tf.layers.dense(z, 32, activation=tf.nn.leaky_relu)
        h = tf.layers.dense(h, 32, activation=tf.nn.leaky_relu)
        return tf.layers.dense(h, 2)


def discriminator(x, reuse=False):
    with tf.variable_scope("Discriminator", reuse=reuse):
        h = tf.layers.dense(x, 32, activation=tf.nn.leaky_relu)
        h = tf.layers.dense(h, 32, activation=tf.nn.leaky_relu)
        return tf.layers.dense(h, 1)


gen_input = tf.placeholder(tf.float32, shape=[None, noise_dim], name='input_noise')
disc_input = tf.placeholder(tf.float32, shape=[None, 2], name='disc_input')
gen_sample = generator(gen_input)
disc_real = discriminator(disc_input)
disc_fake = discriminator(gen_sample, reuse=True)
sigmoid_loss = tf.nn.sigmoid_cross_entropy_with_logits
disc_loss = tf.reduce_mean(sigmoid_loss(logits=disc_real, labels=tf.ones_like(disc_real))) \
    + tf.reduce_mean(sigmoid_loss(logits=disc_fake, labels=tf.zeros_like(disc_fake)))
gen_loss = tf.reduce_mean(sigmoid_loss(logits=disc_fake, labels=tf.ones_like(disc_fake)))
gen_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope='Generator')
disc_vars = [v for v in tf.trainable_variables() if v.name.startswith('Discriminator')]
assert len(gen_vars) == 6 and len(disc_vars) == 6
train_gen = tf.train.AdamOptimizer(0.001, beta1=0.5).minimize(gen_loss, var_list=gen_vars)
train_disc = tf.train.AdamOptimizer(0.001, beta1=0.5).minimize(disc_loss, var_list=disc_vars)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(1500):
        z = rng.uniform(-1., 1., size=[128, noise_dim])
        _, _, gl, dl = sess.run([train_gen, train_disc, gen_loss, disc_loss],
                                feed_dict={disc_input: real_samples(128), gen_input: z})
    made = sess.run(gen_sample, {gen_input: rng.uniform(-1., 1., size=[500, noise_dim])})
    radius = np.sqrt((made ** 2).sum(1))
    print("radius", radius.mean(), radius.std(), "losses", gl, dl)
    assert 0.8 < radius.mean() < 1.2 and radius.std() < 0.35, (radius.mean(), radius.std())
