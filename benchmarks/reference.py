#!/usr/bin/env python3
"""The methods of the paper in numpy, with an explicit Θ: a second implementation to compare with.

    benchmarks/reference.py table [--seeds 8]     test errors after so many passes, in percent
    benchmarks/reference.py permutations FILE     the blocks of seed 0, for the library's tests

The first 6,000 MNIST images, all 10,000 test images, degree-4 polynomial kernel, c = 10⁴, blocks of 600. Needs numpy and
scipy.
"""

import argparse
from pathlib import Path

import numpy as np
import scipy.linalg

from prepare import read_mnist, unit_norm

ROWS, BLOCK, LAMBDA = 6_000, 600, 1e-4
PASS = (ROWS + 1) // BLOCK
# Iterations after which errors are told.
TOLD = [1, PASS, 2 * PASS, 25, 3 * PASS, 4 * PASS, 6 * PASS]
MNIST = Path(__file__).resolve().parent.parent / "data" / "mnist"


class Problem:
    """Θ W = Z, and what scores the test images."""

    def __init__(self):
        images, labels, test, self.truth = read_mnist(MNIST)
        train, test = unit_norm(images, images[:ROWS], test)
        self.theta = np.zeros((ROWS + 1, ROWS + 1), np.float32)
        self.theta[1:, 1:] = (train @ train.T) ** 4 + LAMBDA * np.eye(ROWS, dtype=np.float32)
        self.theta[0, 1:] = self.theta[1:, 0] = 1
        self.z = np.zeros((ROWS + 1, 10), np.float32)
        self.z[1 + np.arange(ROWS), labels[:ROWS]] = 1
        self.scores = np.c_[np.ones(len(test), np.float32), (test @ train.T) ** 4]

    def error(self, w: np.ndarray) -> float:
        """Of the test images, in percent."""
        return 100 * np.mean((self.scores @ w).argmax(axis=1) != self.truth)


def permutations(seed: int):
    """Of all rows and the bias, one for each pass."""
    rng = np.random.default_rng(seed)
    while True:
        yield rng.permutation(ROWS + 1)


def blocks(seed: int):
    for permutation in permutations(seed):
        for block in range(PASS):
            yield permutation[block * BLOCK : (block + 1) * BLOCK]


def run(problem: Problem, method: str, seed: int) -> list[float]:
    """Test errors after the iterations of TOLD."""
    theta, z = problem.theta, problem.z
    w, r, errors = np.zeros_like(z), z.copy(), []
    for iteration, s in zip(range(1, TOLD[-1] + 1), blocks(seed)):
        # Θ is symmetric: these are J rows, and the transpose of J columns.
        a = theta[s]
        gram = scipy.linalg.cho_factor(a @ a.T)
        solve = lambda b: scipy.linalg.cho_solve(gram, b)  # noqa: E731

        def pursue(w, r):
            q = solve(a @ r)
            w = w.copy()
            w[s] += q
            return w, r - a.T @ q

        def project(w):
            return w + a.T @ solve(z[s] - a @ w)

        if method == "nystrom":
            member = a.T @ solve(theta[np.ix_(s, s)] @ solve(a @ z))
            w = w + (member - w) / iteration
        if method in ("mp", "mp, then kaczmarz"):
            w, r = pursue(w, r)
        if method != "mp" and method != "nystrom":
            w = project(w)
        if method == "kaczmarz, then mp":
            w, r = pursue(w, r)
        if iteration in TOLD:
            errors.append(problem.error(w))
    return errors


def table(seeds: int) -> None:
    problem = Problem()
    exact = np.linalg.solve(problem.theta.astype(np.float64), problem.z)
    print(f"exact: {problem.error(exact):.2f}")
    print("| method | seeds |", " | ".join(f"{told}" for told in TOLD), "|")
    print("|---|---|" + "---|" * len(TOLD))
    for method in ("mp", "kaczmarz", "mp, then kaczmarz", "kaczmarz, then mp", "nystrom"):
        errors = np.array([run(problem, method, seed) for seed in range(seeds)])
        print(f"| {method} | 0 |", " | ".join(f"{error:.2f}" for error in errors[0]), "|", flush=True)
        if seeds > 1:
            mean, spread = errors.mean(axis=0), errors.std(axis=0, ddof=1)
            cells = (f"{m:.2f} ± {d:.2f}" for m, d in zip(mean, spread))
            print(f"| | 0 to {seeds - 1} |", " | ".join(cells), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("table").add_argument("--seeds", type=int, default=8)
    commands.add_parser("permutations").add_argument("file", type=Path)
    args = parser.parse_args()
    if args.command == "table":
        table(args.seeds)
    else:
        passes = permutations(0)
        np.save(args.file, np.array([next(passes) for _ in range(TOLD[-1] // PASS)], dtype="<u2"))


if __name__ == "__main__":
    main()
