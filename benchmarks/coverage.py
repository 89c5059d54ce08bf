"""How often intervals and sets of classes hold the truth, by leave-one-out errors.

    python benchmarks/coverage.py

Prints the table of docs/prediction.md: means over repeated splits, in percent, and the mean
width or size. Needs the package `lssvm` (pip install ./python) and data/mnist; takes two
minutes on two cores. The two lines of made-up data are measured by crates/lssvm/tests/library/coverage.rs.
"""

import pathlib

import lssvm
import numpy as np
from lssvm import LSSVMClassifier, LSSVMRegressor, LSSVMSearchCV
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

LEVELS = (0.8, 0.9, 0.95, 0.99)
MNIST = pathlib.Path(__file__).parents[1] / "data" / "mnist"


def held(model, X, y, coverage):
    """Share of rows whose truth is held, and the mean width or size."""
    if hasattr(model, "predict_set"):
        sets = model.predict_set(X, coverage)
        codes = np.searchsorted(model.classes_, y)
        return sets[np.arange(len(y)), codes].mean(), sets.sum(axis=1).mean()
    lower, upper = model.predict_interval(X, coverage)
    return np.mean((lower <= y) & (y <= upper)), np.mean(upper - lower)


def measure(name, repetitions, run):
    """`run` gives, for a seed, a model and new rows."""
    results = np.array(
        [[held(*made, level) for level in LEVELS] for made in map(run, range(repetitions))]
    )
    for level, (share, size) in zip(LEVELS, results.mean(axis=0), strict=True):
        print(f"{name} | {100 * level:g} % asked: {100 * share:.1f} %, mean size {size:.3f}")


def diabetes(estimator):
    X, y = load_diabetes(return_X_y=True)

    def run(seed):
        parts = train_test_split(X, y, test_size=142, random_state=seed)
        return estimator().fit(parts[0], parts[2]), parts[1], parts[3]

    return run


def plain():
    return LSSVMRegressor(preprocess="standardize", C=0.1, leave_one_out=True)


def searched():
    return LSSVMSearchCV(LSSVMRegressor(leave_one_out=True))


def digits(seed):
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X, y, test_size=797, random_state=seed)
    model = LSSVMClassifier(C=100, leave_one_out=True)
    return model.fit(parts[0], parts[2]), parts[1], parts[3]


def mnist(of_test_part):
    data = lssvm.load_dataset(MNIST)
    X, y = np.asarray(data.data, dtype=np.float32), np.asarray(data.target)

    def run(seed):
        order = np.random.default_rng(seed).permutation(len(X))
        rows, new = order[:3000], order[3000:13000]
        model = LSSVMClassifier(
            C=1e4, kernel="poly", degree=4, gamma=1, preprocess="center,unit-norm",
            leave_one_out=True,
        ).fit(X[rows], y[rows])
        if of_test_part:
            return model, np.asarray(data.test.data, dtype=np.float32), data.test.target
        return model, X[new], y[new]

    return run


def as_many_features_as_rows(C):
    def run(seed):
        rng = np.random.default_rng(seed)
        weights = rng.normal(size=100) / 10
        X, new = rng.normal(size=(100, 100)), rng.normal(size=(1000, 100))
        y = X @ weights + rng.normal(size=100) / 2
        truth = new @ weights + rng.normal(size=1000) / 2
        return LSSVMRegressor(kernel="linear", C=C, leave_one_out=True).fit(X, y), new, truth

    return run


if __name__ == "__main__":
    measure("diabetes, 300 rows, 100 x 142 new", 100, diabetes(plain))
    measure("diabetes, searched, 20 x 142 new", 20, diabetes(searched))
    measure("digits, 1,000 rows, 20 x 797 new", 20, digits)
    measure("MNIST, 3,000 rows, 12 x 10,000 new of the training part", 12, mnist(False))
    measure("MNIST, 3,000 rows, 12 x the test part", 12, mnist(True))
    for c in (0.01, 1, 1e6):
        name = f"linear, 100 rows of 100 features, C = {c:g}, 40 x 1,000 new"
        measure(name, 40, as_many_features_as_rows(c))
