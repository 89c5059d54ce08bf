"""Reads a data set, preprocesses it, and writes what every method then reads.

Usage: prepare.py SET FOLDER --mnist DIR [--small DIR] [--limit ROWS]

FOLDER gets X_train.npy, y_train.npy, X_test.npy and y_test.npy, and settings.json with the numbers
that all methods share. Means and deviations come from the training rows.
"""
import argparse
import gzip
import json
from pathlib import Path

import numpy as np

from catalogue import DEGREE, SETS

TRAIN_SHARE = 0.7
"""Of a set that has no test part of its own: the split of docs/small-data.md."""
A9A_FEATURES = 123


def read_idx(path):
    """The array in a gzipped IDX file of bytes."""
    with gzip.open(path, "rb") as file:
        dimensions = file.read(4)[3]
        shape = np.frombuffer(file.read(4 * dimensions), ">u4")
        return np.frombuffer(file.read(), np.uint8).reshape(shape)


def read_mnist(folder):
    def part(name):
        images = read_idx(folder / f"{name}-images-idx3-ubyte.gz")
        labels = read_idx(folder / f"{name}-labels-idx1-ubyte.gz")
        return images.reshape(len(images), -1), labels.astype(np.int64)

    return *part("train"), *part("t10k")


def read_a9a(folder):
    def part(name):
        lines = (folder / name).read_text().split("\n")
        rows = [line.split() for line in lines if line.strip()]
        features = np.zeros((len(rows), A9A_FEATURES), np.float32)
        for i, (_, *entries) in enumerate(rows):
            for entry in entries:
                index, value = entry.split(":")
                features[i, int(index) - 1] = float(value)
        return features, np.array([int(row[0]) for row in rows])

    return *part("a9a"), *part("a9a.t")


def read_bike(folder):
    table = np.loadtxt(folder / "bike.data.csv.gz", delimiter=",")
    order = np.random.RandomState(0).permutation(len(table))
    count = round(TRAIN_SHARE * len(table))
    train, test = table[order[:count]], table[order[count:]]
    return train[:, :-1], train[:, -1], test[:, :-1], test[:, -1]


def unit_norm(_train, *parts):
    """Each row less its own mean, of length 1."""
    for part in parts:
        rows = part.astype(np.float32)
        rows -= rows.mean(axis=1, keepdims=True)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        yield rows


def standardize(train, *parts):
    """Each column to mean 0 and variance 1, as in the training rows."""
    mean, deviation = train.mean(axis=0, dtype=np.float64), train.std(axis=0, dtype=np.float64)
    deviation[deviation == 0] = 1
    for part in parts:
        yield ((part - mean) / deviation).astype(np.float32)


READERS = {"mnist": read_mnist, "a9a": read_a9a, "bike": read_bike}
STEPS = {"unit-norm": unit_norm, "standardize": standardize}


def kernel(data_set, features):
    """The kernel with its numbers, as scikit-learn names them."""
    if data_set.kernel == "poly":
        return {"kernel": "poly", "gamma": 1.0, "degree": DEGREE, "coef0": 0.0}
    variance = features.var(dtype=np.float64)
    return {"kernel": "rbf", "gamma": float(1 / (features.shape[1] * variance))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mnist", type=Path)
    parser.add_argument("--small", type=Path)
    parser.add_argument("--limit", type=int)
    args = parser.parse_args()
    data_set = SETS[args.name]
    folder = args.mnist if data_set.from_repository else args.small
    train, labels, test, truth = READERS[data_set.source](folder)
    train, labels = train[: data_set.rows][: args.limit], labels[: data_set.rows][: args.limit]
    test, truth = test[: args.limit], truth[: args.limit]
    train, test = STEPS[data_set.preprocess](train, train, test)
    arrays = {"X_train": train, "y_train": labels, "X_test": test, "y_test": truth}
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(args.folder / f"{name}.npy", array)
    settings = {
        "task": data_set.task,
        "rows": len(train),
        "test_rows": len(test),
        "features": train.shape[1],
        "preprocess": data_set.preprocess,
        "kernel": kernel(data_set, train),
        "c": data_set.c,
        "svm_c": data_set.svm_c,
        "svm_epsilon": data_set.svm_epsilon,
    }
    (args.folder / "settings.json").write_text(json.dumps(settings, indent=1))


if __name__ == "__main__":
    main()
