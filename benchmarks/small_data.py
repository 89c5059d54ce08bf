#!/usr/bin/env python3
"""The tables of docs/small-data.md: `lssvm` beside scikit-learn on five small public sets.

    small_data.py FOLDER --program target/release/lssvm [--only satimage,bike]

FOLDER holds optdigits.dat, satimage.dat, a9a, a9a.t, elevators.data.csv.gz and bike.data.csv.gz. Needs numpy and
scikit-learn (requirements.txt). Everything runs in one thread; seconds are those of the processor. c, gamma and epsilon
are chosen on rows of the training part; the test part is looked at once, at the end.
"""
import os

# Before numpy is there.
for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
    os.environ[name] = "1"

import argparse
import gzip
import itertools
import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import LabelBinarizer, StandardScaler
from sklearn.svm import SVC, SVR

TABLES = {
    "optdigits": "optdigits.dat",
    "satimage": "satimage.dat",
    "elevators": "elevators.data.csv.gz",
    "bike": "bike.data.csv.gz",
}
SETS = ["optdigits", "satimage", "a9a-10k", "a9a", "elevators", "bike"]
REGRESSION = {"elevators", "bike"}
ALL_OF_A9A = "a9a"
"""A kernel matrix of 8.5 GB in scikit-learn, which is not run; and no search."""

VALUES_OF_C = [1, 3, 10, 30, 100, 1000]
FEATURES_OF_A9A = 123
GAMMAS = {"¼ scale": 0.25, "scale": 1.0, "3 × scale": 3.0}
SEARCH_ROWS = 2000


class Set:
    """The files of one set: `train`, `test`, and of the training part `fit` and `val`."""

    def __init__(self, name, folder, files):
        self.name, self.folder, self.files = name, folder, files
        self.regression = name in REGRESSION

    def arrays(self, part):
        if self.name.startswith("a9a"):
            x, y = load_svmlight_file(str(self.files[part]), n_features=FEATURES_OF_A9A)
            return x.toarray(), y
        rows = np.loadtxt(self.files[part], delimiter=self.delimiter())
        return rows[:, :-1], rows[:, -1]

    def delimiter(self):
        line = self.files["train"].read_text().partition("\n")[0]
        return "," if "," in line else None


def split(source, folder):
    """Writes all parts; the same rows in every run."""
    sets = {}
    for name, file in TABLES.items():
        opened = gzip.open if file.endswith("gz") else open
        with opened(source / file, "rt") as text:
            lines = [line.strip() for line in text if line.strip()]
        order = np.random.RandomState(0).permutation(len(lines))
        train = round(0.7 * len(lines))
        fit = round(0.8 * train)
        places = {"train": order[:train], "test": order[train:], "fit": order[:fit], "val": order[fit:train]}
        sets[name] = Set(name, folder, write(folder, name, lines, places))
    lines = [line.rstrip() for line in (source / "a9a").read_text().splitlines()]
    order = np.random.RandomState(0).permutation(len(lines))
    places = {"train": order[:10_000], "fit": order[:8000], "val": order[8000:10_000]}
    files = write(folder, "a9a-10k", lines, places)
    sets["a9a-10k"] = Set("a9a-10k", folder, {**files, "test": source / "a9a.t"})
    sets["a9a"] = Set("a9a", folder, {"train": source / "a9a", "test": source / "a9a.t"})
    return sets


def write(folder, name, lines, places):
    files = {}
    for part, rows in places.items():
        files[part] = folder / f"{name}-{part}.txt"
        files[part].write_text("\n".join(lines[i] for i in rows) + "\n")
    return files


class Program:
    """`lssvm train`, and what it reports."""

    def __init__(self, path, folder):
        self.path, self.results = path, folder / "results.json"

    def train(self, data, train="train", test="test", options=()):
        command = [self.path, "train", str(data.files[train]), "--test", str(data.files[test])]
        command += ["--threads", "1", "--json", str(self.results), *options]
        if data.name.startswith("a9a"):
            command += ["--features", str(FEATURES_OF_A9A)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = json.loads(self.results.read_text())
        found["cpu"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return found


def said(data, found):
    """The error as the tables have it."""
    if data.regression:
        return f"{found['rmse']:.4f} (R² {found['r2']:.3f})"
    return f"{found['error_percent']:.2f} %"


def error(data, found):
    return found["rmse"] if data.regression else found["error_percent"]


def scaled(data):
    (x, y), (x_test, y_test) = data.arrays("train"), data.arrays("test")
    scaler = StandardScaler().fit(x)
    return scaler.transform(x), y, scaler.transform(x_test), y_test


def scale_gamma(x):
    return 1.0 / (x.shape[1] * x.var())


def fitted(data, estimator, x, y, x_test, y_test):
    """Test error and processor seconds of a fit and its predictions."""
    start = time.process_time()
    if isinstance(estimator, KernelRidge) and not data.regression:
        classes = LabelBinarizer(sparse_output=False).fit(y)
        targets = classes.transform(y)
        if targets.shape[1] == 1:
            targets = np.hstack([1 - targets, targets])
        predicted = classes.classes_[estimator.fit(x, targets).predict(x_test).argmax(1)]
    else:
        predicted = estimator.fit(x, y).predict(x_test)
    seconds = time.process_time() - start
    if data.regression:
        found = {"rmse": root_mean_squared_error(y_test, predicted), "r2": r2_score(y_test, predicted)}
    else:
        found = {"error_percent": 100 * np.mean(predicted != y_test)}
    return said(data, found), seconds


def defaults(program, sets):
    print("\n| data set | lssvm | s | f64, s | KernelRidge, same settings | s | SVC / SVR, defaults | s |")
    print("|---|---|---:|---:|---|---:|---|---:|")
    for data in sets:
        found = program.train(data)
        full = program.train(data, options=["--precision", "f64"]) if data.name != ALL_OF_A9A else None
        x, y, x_test, y_test = scaled(data)
        ridge = ("not run", None)
        if data.name != ALL_OF_A9A:
            ridge = fitted(data, KernelRidge(kernel="rbf", gamma=scale_gamma(x), alpha=0.1), x, y, x_test, y_test)
        machine = SVR(cache_size=1000) if data.regression else SVC(cache_size=1000)
        svm = fitted(data, machine, x, y, x_test, y_test)
        method = found["config"]["method"]
        cells = [data.name, f"{said(data, found)}, {method}", f"{found['cpu']:.1f}"]
        cells.append("–" if full is None else f"{said(data, full)}, {full['cpu']:.1f}")
        for text, seconds in [ridge, svm]:
            cells += [text, "–" if seconds is None else f"{seconds:.1f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


def tuned(program, sets):
    print("\n| data set | lssvm | chosen | s | SVC / SVR | chosen | s |")
    print("|---|---|---|---:|---|---|---:|")
    for data in sets:
        if data.name == ALL_OF_A9A:
            continue
        fit, _ = data.arrays("fit")
        gamma = scale_gamma(StandardScaler().fit_transform(fit[:SEARCH_ROWS]))

        def judged(pair):
            options = ["--train-rows", str(SEARCH_ROWS), "-c", str(pair[0]), "--gamma", str(gamma * GAMMAS[pair[1]])]
            return error(data, program.train(data, "fit", "val", options))

        c, width = min(itertools.product(VALUES_OF_C, GAMMAS), key=judged)
        x, y, x_test, y_test = scaled(data)
        gamma = scale_gamma(x)
        found = program.train(data, options=["-c", str(c), "--gamma", str(gamma * GAMMAS[width])])
        cells = [data.name, said(data, found), f"c {c}, {width}", f"{found['cpu']:.1f}"]
        chosen, text = svm_search(data, x, y, gamma)
        text_error, seconds = fitted(data, chosen, x, y, x_test, y_test)
        print("| " + " | ".join([*cells, text_error, text, f"{seconds:.1f}"]) + " |", flush=True)


def svm_search(data, x, y, gamma):
    """The best of a grid by three folds of some rows, not fitted yet, and what it is."""
    if data.regression:
        grid = {"C": [1, 10, 100], "gamma": [gamma / 4, gamma], "epsilon": [0.01, 0.05, 0.1]}
        machine = SVR(cache_size=1000)
    else:
        grid = {"C": [1, 3, 10, 30, 100], "gamma": [gamma / 4, gamma, 3 * gamma]}
        machine = SVC(cache_size=1000)
    some = np.random.RandomState(1).permutation(len(x))[:SEARCH_ROWS]
    folds = KFold(3, shuffle=True, random_state=0)
    best = GridSearchCV(machine, grid, cv=folds).fit(x[some], y[some]).best_params_
    width = next(name for name, factor in GAMMAS.items() if np.isclose(best["gamma"], gamma * factor))
    text = f"C {best['C']}, " + (f"ε {best['epsilon']}, " if data.regression else "") + width
    return machine.set_params(**best), text


def values_of_c(program, sets):
    print("\n| data set | " + " | ".join(f"c = {c}" for c in VALUES_OF_C) + " |")
    print("|---|" + "---|" * len(VALUES_OF_C))
    excess = []
    for data in sets:
        if data.name == ALL_OF_A9A:
            continue
        found = [program.train(data, "fit", "val", ["-c", str(c)]) for c in VALUES_OF_C]
        errors = np.array([error(data, each) for each in found])
        excess.append(errors / errors.min())
        texts = [f"{e:.4f}" if data.regression else f"{e:.2f} %" for e in errors]
        texts = [f"**{text}**" if e == errors.min() else text for text, e in zip(texts, errors)]
        print(f"| {data.name} | " + " | ".join(texts) + " |", flush=True)
    if excess:
        mean = np.exp(np.log(excess).mean(0)) - 1
        for name, values in [("mean", mean), ("largest", np.max(excess, 0) - 1)]:
            print(f"| {name} excess over the best | " + " | ".join(f"{v:.0%}" for v in values) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", default="lssvm")
    parser.add_argument("--only", help="these sets, with commas")
    args = parser.parse_args()
    wanted = args.only.split(",") if args.only else SETS
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        sets = split(args.folder, folder)
        program, sets = Program(args.program, folder), [sets[name] for name in wanted]
        defaults(program, sets)
        tuned(program, sets)
        values_of_c(program, sets)


if __name__ == "__main__":
    main()
