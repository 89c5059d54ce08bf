"""Data and tools that several tests use."""

import os
import pathlib

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="session")
def digits():
    """Rows to learn from and rows to test on."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X[:900] / 16, y[:900], X[900:1300] / 16, y[900:1300]


@pytest.fixture(scope="session")
def program():
    """The program `lssvm`, built before these tests."""
    candidates = [os.environ.get("LSSVM_PROGRAM", "")]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    candidates += [target / kind / "lssvm" for kind in ("debug", "release")]
    for path in candidates:
        if path and os.access(path, os.X_OK):
            return str(path)
    pytest.skip("the program is not built: cargo build, or set LSSVM_PROGRAM")


def theta_solution(omega, targets, c, weights=None):
    """Weights and bias by the linear system, written out (f64)."""
    n = len(omega)
    weights = np.ones(n) if weights is None else weights
    theta = np.zeros((n + 1, n + 1))
    theta[0, 1:] = theta[1:, 0] = 1
    theta[1:, 1:] = omega + np.diag(1 / (c * weights))
    solution = np.linalg.solve(theta, np.vstack([np.zeros(targets.shape[1]), targets]))
    return solution[1:], solution[0]
