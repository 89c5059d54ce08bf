"""Chooses c, C and epsilon on training rows alone, and prints the errors that decided.

Usage: tune.py THREADS --mnist DIR [--small DIR]

Of the first 10,000 training rows of MNIST as they are, and of the shuffled training rows of the others,
5,000 train and the next 2,500 validate. The least-squares machine is the Cholesky solution of peers.py,
the SVM scikit-learn's. The smallest value with the least error is chosen; write it into catalogue.py.
"""
import argparse
import itertools
from pathlib import Path

import numpy as np

from catalogue import CLASSIFICATION, SETS
from peers import PEERS, Data
from prepare import READERS, STEPS, kernel

TRAIN_ROWS, VALIDATION_ROWS = 5000, 2500
C = [0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000]
SVM_C = [0.1, 0.3, 1, 3, 10, 30, 100, 300]
SVM_EPSILON = [0.01, 0.03, 0.1, 0.3]


def splits(data_set, folder, threads):
    X, y, *_ = READERS[data_set.source](folder)
    if data_set.from_repository:
        order = np.arange(len(X))
    else:
        order = np.random.RandomState(0).permutation(len(X))
    train, validation = order[:TRAIN_ROWS], order[TRAIN_ROWS:][:VALIDATION_ROWS]
    fitted, held_out = STEPS[data_set.preprocess](X[train], X[train], X[validation])
    settings = {"task": data_set.task, "kernel": kernel(data_set, fitted)}
    return Data(fitted, y[train], held_out, y[validation], settings, threads)


def search(name, peer, data, grid):
    """Prints the validation error of every point of the grid, and the least."""
    errors = []
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values))
        data.settings.update(point)
        fit, predict = PEERS[peer](data)
        fit()
        (error,) = data.score(predict()).values()
        errors.append((error, point))
        print(f"{name} {peer} {point}: {error:.4g}", flush=True)
    error, best = min(errors, key=lambda pair: pair[0])
    ends = [key for key, values in grid.items() if best[key] in (values[0], values[-1])]
    remark = f"; {', '.join(ends)} at an end of the grid" if ends else ""
    print(f"{name} {peer}: chosen {best}, {error:.4g}{remark}\n", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("threads", type=int)
    parser.add_argument("--mnist", type=Path)
    parser.add_argument("--small", type=Path)
    args = parser.parse_args()
    sources = {data_set.source: data_set for data_set in SETS.values()}
    for name, data_set in sources.items():
        folder = args.mnist if data_set.from_repository else args.small
        if folder is None:
            print(f"{name}: skipped, --small says where it is")
            continue
        data = splits(data_set, folder, args.threads)
        epsilon = {} if data_set.task == CLASSIFICATION else {"svm_epsilon": SVM_EPSILON}
        search(name, "sklearn-svm", data, {"svm_c": SVM_C, **epsilon})
        # That of MNIST is the paper's.
        if not data_set.from_repository:
            search(name, "numpy-cholesky", data, {"c": C})


if __name__ == "__main__":
    main()
