"""TensorFlow's MultiWorkerMirroredStrategy on handwritten digits."""
import json
import os

import tensorflow as tf

import digits

strategy = tf.distribute.MultiWorkerMirroredStrategy()
world = strategy.num_replicas_in_sync
rank = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {}).get("index", 0)
x, y, val_x, val_y = digits.load()

with strategy.scope():
    layers = [tf.keras.layers.Dense(n, activation="relu") for n in digits.SIZES[1:-1]] + [tf.keras.layers.Dense(digits.SIZES[-1])]
    net = tf.keras.Sequential([tf.keras.Input((digits.SIZES[0],))] + layers)
    for layer, parts in zip(layers, digits.weights()):
        layer.set_weights(parts)
    variables = net.trainable_variables


def cross_entropy(labels, logits):
    """The mean over the images of this process. A loss of Keras 3 would be divided by the number of processes as well."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


@tf.function
def train(images, labels):
    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, net(images, training=True))
        context = tf.distribute.get_replica_context()
        for v, g in zip(variables, context.all_reduce("mean", tape.gradient(loss, variables))):
            v.assign_sub(digits.RATE * g)
        return loss

    return strategy.reduce("mean", strategy.run(step, args=(images, labels)), axis=None)


for epoch in range(digits.EPOCHS):
    for index in digits.batches(epoch, rank, world):
        loss = train(tf.constant(x[index]), tf.constant(y[index]))
    out = net(val_x)
    acc = float((tf.argmax(out, 1).numpy() == val_y).mean())
    if rank == 0:
        print(f"epoch {epoch + 1}/{digits.EPOCHS} loss {float(loss):.4f} val_loss {float(cross_entropy(val_y, out)):.4f} val_acc {acc:.4f}", flush=True)
