"""Fits one peer on one prepared data set, in this process, and writes what it took.

Usage: peers.py METHOD FOLDER RESULT.json THREADS

A peer is a function from the data to a pair (fit, predict). What it does before it returns, converting
rows to the peer's own form, is not timed, as reading the file is not timed for lssvm. `fit` may
return a remark for the report.
"""
import json
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from catalogue import CLASSIFICATION

CACHE_MB = 1000
"""Kernel cache of the SVMs. The default of 100 to 200 MB holds a sixth of the 12,000 rows of a pair of digits."""
BLOCK = 500
"""Rows of the kernel matrix computed at once."""
PANEL = 4096
"""Columns of the kernel matrix factored at once."""
MOST_TRIES = 4
"""Of a Cholesky factorisation, with ten times the diagonal each."""


@dataclass
class Data:
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    settings: dict
    threads: int

    @classmethod
    def load(cls, folder: Path, threads: int):
        arrays = [np.load(folder / f"{name}.npy") for name in ("X_train", "y_train", "X_test", "y_test")]
        return cls(*arrays, json.loads((folder / "settings.json").read_text()), threads)

    @property
    def classifies(self):
        return self.settings["task"] == CLASSIFICATION

    def svm_arguments(self):
        epsilon = {} if self.classifies else {"epsilon": self.settings["svm_epsilon"]}
        return {**self.settings["kernel"], "C": self.settings["svm_c"], **epsilon}

    def score(self, predicted):
        """Test error in percent, or root mean squared error."""
        if self.classifies:
            return {"error_percent": 100 * float(np.mean(predicted != self.y_test))}
        return {"rmse": float(np.sqrt(np.mean((predicted - self.y_test) ** 2)))}


class Targets:
    """Columns to fit by least squares, and the way back: one for each class, or the values."""

    def __init__(self, data):
        self.classes = np.unique(data.y) if data.classifies else None
        one_hot = data.y[:, None] == self.classes if data.classifies else data.y[:, None]
        self.columns = one_hot.astype(np.float64)

    def decide(self, scores):
        return scores[:, 0] if self.classes is None else self.classes[scores.argmax(axis=1)]


def support_vectors(model):
    return f"{int(np.sum(model.n_support_)):,} support vectors"


def sklearn_svm(data):
    from sklearn.svm import SVC, SVR

    # It computes in f64 whatever it is given.
    X, X_test = data.X.astype(np.float64), data.X_test.astype(np.float64)
    model = (SVC if data.classifies else SVR)(cache_size=CACHE_MB, **data.svm_arguments())
    return lambda: support_vectors(model.fit(X, data.y)), lambda: model.predict(X_test)


def sklearnex_svm(data):
    from sklearnex.svm import SVC, SVR

    # Its threads are limited by the processors that compare.py leaves to this process. It takes f32 as
    # it is, which is its faster way.
    model = (SVC if data.classifies else SVR)(cache_size=CACHE_MB, **data.svm_arguments())

    def fit():
        model.fit(data.X, data.y)
        if not hasattr(model, "_onedal_estimator"):
            raise RuntimeError("it fell back to scikit-learn's own SVM")
        return support_vectors(model)

    return fit, lambda: model.predict(data.X_test)


def libsvm(data):
    from libsvm.svm import libsvm as library, svm_problem
    from libsvm.svmutil import svm_train
    from scipy.sparse import csr_matrix

    kernel = data.settings["kernel"]
    options = ["-q", "-s", 0 if data.classifies else 3, "-t", {"poly": 1, "rbf": 2}[kernel["kernel"]]]
    options += ["-g", kernel["gamma"], "-d", kernel.get("degree", 3), "-r", kernel.get("coef0", 0)]
    options += ["-c", data.settings["svm_c"], "-p", data.settings["svm_epsilon"] or 0, "-m", CACHE_MB]
    train = svm_problem(data.y.astype(np.float64), csr_matrix(data.X))
    # Its own svm_predict converts rows in Python, which takes longer than the prediction.
    test = svm_problem(data.y_test.astype(np.float64), csr_matrix(data.X_test))
    model = None

    def fit():
        nonlocal model
        model = svm_train(train, [str(option) for option in options])
        return f"{model.l:,} support vectors"

    def predict():
        return np.array([library.svm_predict(model, test.x[i]) for i in range(test.l)])

    return fit, predict


def thundersvm(data):
    from thundersvm import SVC, SVR

    arguments = data.svm_arguments()
    arguments["kernel"] = {"poly": "polynomial", "rbf": "rbf"}[arguments["kernel"]]
    model = (SVC if data.classifies else SVR)(n_jobs=data.threads, **arguments)

    def fit():
        # Nothing but None says that it failed.
        if model.fit(data.X, data.y) is None:
            raise RuntimeError("training failed, it says no more")
        return f"{model.n_sv:,} support vectors"

    return fit, lambda: model.predict(data.X_test)


def sklearn_kernel_ridge(data):
    from sklearn.kernel_ridge import KernelRidge

    X, X_test, targets = data.X.astype(np.float64), data.X_test.astype(np.float64), Targets(data)
    model = KernelRidge(alpha=1 / data.settings["c"], **data.settings["kernel"])

    def fit():
        model.fit(X, targets.columns)

    return fit, lambda: targets.decide(model.predict(X_test))


def sklearn_nystroem(components, data):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge, RidgeClassifier
    from sklearn.pipeline import make_pipeline

    # In f32 the small singular values of the chosen rows' kernel matrix, which Nystroem divides by,
    # would be noise.
    X, X_test = data.X.astype(np.float64), data.X_test.astype(np.float64)
    columns = Nystroem(n_components=min(components, len(X)), random_state=0, **data.settings["kernel"])
    ridge = RidgeClassifier if data.classifies else Ridge
    model = make_pipeline(columns, ridge(alpha=1 / data.settings["c"]))

    def fit():
        model.fit(X, data.y)

    return fit, lambda: model.predict(X_test)


class Kernel:
    """Values of the kernel between blocks of rows, computed in place, in the type of the rows."""

    def __init__(self, parameters):
        self.parameters = parameters
        rbf = parameters["kernel"] == "rbf"
        self.scale = np.float32(np.sqrt(2 * parameters["gamma"] if rbf else parameters["gamma"]))

    def rows(self, X):
        """Rows scaled so that their products need no factor, and half their squared norms."""
        X = X * self.scale
        return X, np.einsum("ij,ij->i", X, X) / 2

    def fill(self, out, left, right):
        (X, x), (Y, y) = left, right
        np.matmul(X, Y.T, out=out)
        if self.parameters["kernel"] == "rbf":
            # -gamma |x-y|² = X·Y - |X|²/2 - |Y|²/2 of the scaled rows.
            out -= x[:, None]
            out -= y
            np.exp(np.minimum(out, 0, out=out), out=out)
        else:
            out += np.float32(self.parameters["coef0"])
            power = 1
            while power < self.parameters["degree"]:
                np.square(out, out=out)
                power *= 2


def factor_in_place(K):
    """L of K = L Lᵀ in the lower half of K, by one call of LAPACK.

    With more than 2³¹ values that crashes, since its indices have 32 bits: then panel after panel.
    """
    from scipy.linalg import cholesky, solve_triangular
    from scipy.linalg.lapack import spotrf

    if K.size < 2**31:
        # Rows are columns to LAPACK.
        _, failed = spotrf(K.T, lower=0, clean=0, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError
        return
    for start in range(0, len(K), PANEL):
        end = min(start + PANEL, len(K))
        if start:
            K[start:, start:end] -= K[start:, :start] @ K[start:end, :start].T
        own = cholesky(K[start:end, start:end], lower=True, check_finite=False)
        K[start:end, start:end] = own
        if end < len(K):
            below = solve_triangular(own, K[end:, start:end].T, lower=True, check_finite=False)
            K[end:, start:end] = below.T


def solve_in_place(L, B):
    """B becomes (L Lᵀ)⁻¹ B; L is in the lower half."""
    from scipy.linalg import solve_triangular

    panels = [(start, min(start + PANEL, len(L))) for start in range(0, len(L), PANEL)]
    for start, end in panels:
        B[start:end] -= L[start:end, :start] @ B[:start]
        B[start:end] = solve_triangular(L[start:end, start:end], B[start:end], lower=True)
    for start, end in reversed(panels):
        B[start:end] -= L[end:, start:end].T @ B[end:]
        B[start:end] = solve_triangular(L[start:end, start:end], B[start:end], lower=True, trans=1)


def numpy_cholesky(data):
    """The whole system of docs/training.md.

    (Ω+λI) [V, u] = [Y, 1] by one f32 Cholesky factorisation in place; then the bias b = 1ᵀV / 1ᵀu and
    the weights a = V - u b. Only the lower half of Ω is computed.
    """
    kernel, targets = Kernel(data.settings["kernel"]), Targets(data)
    rows = weights = bias = None

    def factor(diagonal):
        n = len(data.X)
        K = np.empty((n, n), np.float32)
        for start in range(0, n, BLOCK):
            end = min(start + BLOCK, n)
            left, right = [part[start:end] for part in rows], [part[:end] for part in rows]
            kernel.fill(K[start:end, :end], left, right)
        K.reshape(-1)[:: n + 1] += np.float32(diagonal)
        factor_in_place(K)
        return K

    def fit():
        nonlocal rows, weights, bias
        rows = kernel.rows(data.X)
        diagonal = 1 / data.settings["c"]
        for _ in range(MOST_TRIES):
            try:
                factored = factor(diagonal)
                break
            except np.linalg.LinAlgError:
                diagonal *= 10
        else:
            raise RuntimeError(f"not positive definite in f32, even with {diagonal / 10:g} on the diagonal")
        solved = np.ones((len(data.X), targets.columns.shape[1] + 1), np.float32)
        solved[:, :-1] = targets.columns
        solve_in_place(factored, solved)
        values, ones = solved[:, :-1].astype(np.float64), solved[:, -1].astype(np.float64)
        bias = values.sum(axis=0) / ones.sum()
        weights = (values - np.outer(ones, bias)).astype(np.float32)
        return None if diagonal == 1 / data.settings["c"] else f"{diagonal:g} on the diagonal instead of 1/c"

    def predict():
        test = kernel.rows(data.X_test)
        scores = np.empty((len(data.X_test), weights.shape[1]))
        for start in range(0, len(scores), BLOCK):
            left = [part[start : start + BLOCK] for part in test]
            block = np.empty((len(left[0]), len(data.X)), np.float32)
            kernel.fill(block, left, rows)
            scores[start : start + BLOCK] = block @ weights + bias
        return targets.decide(scores)

    return fit, predict


PEERS = {
    "numpy-cholesky": numpy_cholesky,
    "sklearn-kernel-ridge": sklearn_kernel_ridge,
    "sklearn-nystroem-2000": partial(sklearn_nystroem, 2000),
    "sklearn-nystroem-5000": partial(sklearn_nystroem, 5000),
    "sklearn-svm": sklearn_svm,
    "sklearnex-svm": sklearnex_svm,
    "libsvm": libsvm,
    "thundersvm": thundersvm,
}


def thread_pools():
    """The numerical libraries loaded, with their threads."""
    from threadpoolctl import threadpool_info

    pools = threadpool_info()
    return sorted({f"{p['internal_api']} {p['version'] or ''} × {p['num_threads']}" for p in pools})


def timed(work):
    start = time.perf_counter()
    answer = work()
    return answer, time.perf_counter() - start


def main(method, folder, out, threads):
    data = Data.load(Path(folder), int(threads))
    fit, predict = PEERS[method](data)
    note, train_seconds = timed(fit)
    predicted, predict_seconds = timed(predict)
    result = {
        "train_seconds": train_seconds,
        "predict_seconds": predict_seconds,
        **data.score(predicted),
        "note": note,
        "thread_pools": thread_pools(),
    }
    Path(out).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
