"""Trains the two networks that the demo ships: 784 - hidden - 10 with relu, hidden = 128 and 256.

Plain numpy, Adam (Kingma and Ba, 2015), softmax cross-entropy, a fixed seed. The 60,000 training images are in the
Debian package ``dataset-fashion-mnist`` (under ``/usr/share/datasets/fashion-mnist``)::

    python examples/train_mlp.py /usr/share/datasets/fashion-mnist
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from fashion_mnist import DATA, load
from rich.progress import track
from safetensors.numpy import save_file

Weights = dict[str, np.ndarray]


def initial(hidden: int, rng: np.random.Generator) -> Weights:
    """He-initialised weights (He et al., 2015) and zero biases, float32."""
    return {
        "w0": (rng.standard_normal((784, hidden)) * np.sqrt(2 / 784)).astype("float32"),
        "b0": np.zeros(hidden, "float32"),
        "w1": (rng.standard_normal((hidden, 10)) * np.sqrt(2 / hidden)).astype("float32"),
        "b1": np.zeros(10, "float32"),
    }


def forward(p: Weights, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hidden layer's output and the logits."""
    h = np.maximum(x @ p["w0"] + p["b0"], 0)
    return h, h @ p["w1"] + p["b1"]


def gradients(p: Weights, x: np.ndarray, labels: np.ndarray) -> Weights:
    """Of the mean cross-entropy of one batch."""
    h, logits = forward(p, x)
    e = np.exp(logits - logits.max(1, keepdims=True))
    d = e / e.sum(1, keepdims=True)
    d[np.arange(len(labels)), labels] -= 1
    d /= np.float32(len(labels))
    dh = (d @ p["w1"].T) * (h > 0)
    return {"w0": x.T @ dh, "b0": dh.sum(0), "w1": h.T @ d, "b1": d.sum(0)}


def train(hidden: int, images: np.ndarray, labels: np.ndarray, epochs: int, seed: int = 0) -> Weights:
    """Adam with a step that falls linearly from 1e-3 to 0, batches of 128."""
    rng = np.random.default_rng(seed)
    p = initial(hidden, rng)
    mean = {k: np.zeros_like(v) for k, v in p.items()}
    square = {k: np.zeros_like(v) for k, v in p.items()}
    batch, step = 128, 0
    total = epochs * (len(images) // batch)
    for _ in track(range(epochs), f"hidden = {hidden}"):
        order = rng.permutation(len(images))
        for start in range(0, len(images) - batch + 1, batch):
            rows = order[start : start + batch]
            step += 1
            rate = 1e-3 * (1 - step / (total + 1))
            for k, g in gradients(p, images[rows], labels[rows]).items():
                mean[k] = 0.9 * mean[k] + 0.1 * g
                square[k] = 0.999 * square[k] + 0.001 * g * g
                corrected = np.sqrt(square[k] / (1 - 0.999**step)) + 1e-8
                p[k] -= (rate * (mean[k] / (1 - 0.9**step)) / corrected).astype("float32")
    return p


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where train-images-idx3-ubyte.gz is")
    parser.add_argument("--epochs", type=int, default=12)
    options = parser.parse_args()
    images, labels = load(options.folder, "train")
    test_images, test_labels = load()
    for hidden in (128, 256):
        p = train(hidden, images, labels, options.epochs)
        accuracy = float((forward(p, test_images)[1].argmax(1) == test_labels).mean())
        print(f"hidden = {hidden}: test accuracy {accuracy:.2%}")
        save_file({k: np.ascontiguousarray(v) for k, v in p.items()}, DATA / f"mlp_{hidden}.safetensors")


if __name__ == "__main__":
    main()
