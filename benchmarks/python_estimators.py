"""LSSVMClassifier and LSSVMRegressor beside scikit-learn's own, on three data sets.

    python benchmarks/python_estimators.py FOLDER

Each estimator has the same grid of C (or alpha) and gamma, chosen by three-fold
cross-validation on the training rows; the test rows (30 %) are looked at once. Also measures what
the Python layer adds to a fit. Prints a table in Markdown.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import LabelBinarizer, StandardScaler
from sklearn.svm import SVC, SVR

import lssvm

C = [0.1, 1, 10, 100]
GAMMA = [0.2, 1, 5]  # times that of "scale"


class OneHotKernelRidge(ClassifierMixin, BaseEstimator):
    """KernelRidge on one-hot targets, the nearest that scikit-learn has."""

    def __init__(self, alpha=1.0, gamma=None):
        self.alpha, self.gamma = alpha, gamma

    def fit(self, X, y):
        self.coder_ = LabelBinarizer(neg_label=-1)
        targets = self.coder_.fit_transform(y)
        self.classes_ = self.coder_.classes_
        self.ridge_ = KernelRidge(alpha=self.alpha, kernel="rbf", gamma=self.gamma)
        self.ridge_.fit(X, targets)
        return self

    def predict(self, X):
        return self.coder_.inverse_transform(self.ridge_.predict(X), threshold=0)


def candidates(task: str, scale: float) -> dict:
    gamma = [scale * factor for factor in GAMMA]
    alpha = {"alpha": [1 / c for c in C], "gamma": gamma}
    both = {"C": C, "gamma": gamma}
    if task == "classification":
        return {
            "LSSVMClassifier": (lssvm.LSSVMClassifier(random_state=0), both),
            "SVC": (SVC(), both),
            "KernelRidge, one-hot": (OneHotKernelRidge(), alpha),
        }
    return {
        "LSSVMRegressor": (lssvm.LSSVMRegressor(random_state=0), both),
        "SVR": (SVR(), both),
        "KernelRidge": (KernelRidge(kernel="rbf"), alpha),
    }


def compare(path: Path, task: str, rows: int) -> None:
    data = lssvm.load_dataset(path, task=task, dtype=np.float64)
    X, X_test, y, y_test = train_test_split(
        data.data, data.target, train_size=rows, test_size=0.3, random_state=0
    )
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    center, spread = (0.0, 1.0) if task == "classification" else (y.mean(), y.std())
    scale = 1 / (X.shape[1] * X.var())
    for name, (estimator, grid) in candidates(task, scale).items():
        target = y if task == "classification" else (y - center) / spread
        search = GridSearchCV(estimator, grid, cv=3, refit=False).fit(X, target)
        best = estimator.set_params(**search.best_params_)
        start = time.perf_counter()
        best.fit(X, target)
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        predicted = best.predict(X_test)
        predicting = time.perf_counter() - start
        if task == "classification":
            quality = f"{100 * np.mean(predicted != y_test):.2f} %"
        else:
            quality = f"{root_mean_squared_error(y_test, predicted * spread + center):.4g}"
        whole = search.cv_results_["mean_fit_time"].sum() * 3
        print(
            f"| {path.name.split('.')[0]}, {len(X):,} × {X.shape[1]} | {name} | {quality} | {seconds:.2f} | "
            f"{predicting:.2f} | {whole:.1f} |",
            flush=True,
        )


def overhead() -> None:
    """What fit takes beyond the core's own seconds, 10,000 × 784.

    The core copies the rows itself, so that the time of a copy counts as Python's.
    """
    X = np.random.default_rng(0).random((10_000, 784)).astype(np.float32)
    y = np.arange(10_000) % 10
    shares = []
    for _ in range(3):
        model = lssvm.LSSVMClassifier(method="exact", preprocess="center,unit-norm")
        start = time.perf_counter()
        model.fit(X, y)
        whole = time.perf_counter() - start
        core = json.loads(model._report.json())["seconds"]
        start = time.perf_counter()
        X.copy()
        copying = time.perf_counter() - start
        shares.append((whole - core + copying) / whole)
    print(f"\nThe Python layer takes {100 * np.median(shares):.1f} % of a fit of 10,000 × 784.")


if __name__ == "__main__":
    small = Path(sys.argv[1])
    print("| data | estimator | test error or RMSE | fit, s | predict, s | all fits of the search, s |")
    print("|---|---|---:|---:|---:|---:|")
    compare(small / "optdigits.dat", "classification", 3_900)
    compare(small / "satimage.dat", "classification", 4_500)
    compare(small / "bike.data.csv.gz", "regression", 5_000)
    overhead()
