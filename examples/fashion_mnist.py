"""Reads Fashion-MNIST: 28 x 28 grey images of ten kinds of clothing (MIT licence, see ``data/README.md``)."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).parent / "data"
CLASSES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")


def load(folder: Path = DATA, part: str = "t10k") -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Images ``(n, 784)`` float32 in [0, 1] and labels ``(n,)`` int64 of one part (``"t10k"`` or ``"train"``).

    Raises ``ValueError`` for files that are not in the IDX format (magic number 2051 for images, 2049 for labels).
    """
    images = _idx(folder / f"{part}-images-idx3-ubyte.gz", 2051)
    labels = _idx(folder / f"{part}-labels-idx1-ubyte.gz", 2049)
    if len(images) != len(labels):
        raise ValueError(f"{folder}: {len(images)} images but {len(labels)} labels")
    return images.reshape(len(images), -1).astype("float32") / np.float32(255), labels.astype("int64")


def _idx(path: Path, magic: int) -> NDArray[np.uint8]:
    """An IDX file: magic number, one big-endian int32 a dimension, then bytes."""
    raw = gzip.decompress(path.read_bytes())
    ndim = raw[3]
    header = np.frombuffer(raw, ">i4", 1 + ndim)
    if int(header[0]) != magic:
        raise ValueError(f"{path}: expected magic number {magic}, got {int(header[0])}")
    return np.frombuffer(raw, np.uint8, offset=4 * (1 + ndim)).reshape([int(d) for d in header[1:]])
