#!/usr/bin/env python3
"""Searches for settings: `lssvm tune` beside scikit-learn's GridSearchCV over SVC.

Usage: search.py --lssvm PROGRAM --small DIR [--mnist DIR] [--only grid,nested,calibration] [--jobs 2]

Three tables in Markdown, for docs/tuning.md:

- grid: the same 10 x 10 values of gamma and C, on 5,000 rows: leave-one-out errors here, five folds there;
  with --mnist also on 5,000 digits, which takes GridSearchCV half an hour;
- nested: each searches as it would be used and is then trained on all training rows; the test rows are
  looked at once. GridSearchCV has 5 x 5 values, and 3,000 random rows where there are more than 10,000;
- calibration: log loss of test rows by the softmax of the scores, and by probabilities calibrated on
  leave-one-out scores.

It needs numpy and scikit-learn; DIR holds optdigits.dat, satimage.dat, a9a and a9a.t (docs/small-data.md).
"""
import argparse
import gzip
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

SETS = ["optdigits", "satimage", "a9a"]
GRID = 10
ROWS = 5000
LARGE, SEARCHED = 10_000, 3000


def keel(path):
    lines = [line.strip() for line in path.read_text().splitlines()]
    rows = [line.replace(",", " ").split() for line in lines if line and not line.startswith("@")]
    return np.array([row[:-1] for row in rows], np.float32), np.array([row[-1] for row in rows])


def read(name, folder):
    """Training rows, their classes, test rows, their classes."""
    if name == "a9a":
        X, y = load_svmlight_file(str(folder / "a9a"), n_features=123)
        T, t = load_svmlight_file(str(folder / "a9a.t"), n_features=123)
        classes = np.array(["under", "over"])
        dense = [np.asarray(part.todense(), np.float32) for part in (X, T)]
        return dense[0], classes[(y > 0).astype(int)], dense[1], classes[(t > 0).astype(int)]
    X, y = keel(folder / f"{name}.dat")
    X, T, y, t = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    return X, y, T, t


def read_mnist(folder):
    """Training and test digits as `read` returns them: rows centred and of unit norm."""
    def part(name):
        images = gzip.decompress((folder / f"{name}-images-idx3-ubyte.gz").read_bytes())
        labels = gzip.decompress((folder / f"{name}-labels-idx1-ubyte.gz").read_bytes())
        X = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784).astype(np.float32)
        X -= X.mean(axis=1, keepdims=True)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return X, np.frombuffer(labels, np.uint8, offset=8).astype(str)

    return *part("train"), *part("t10k")


def write(path, X, y):
    header = ",".join([f"x{j}" for j in range(X.shape[1])] + ["label"])
    rows = (",".join([f"{v:g}" for v in row] + [label]) for row, label in zip(X, y))
    path.write_text("\n".join([header, *rows]) + "\n")


class Lssvm:
    """The program, in a folder of its own."""

    def __init__(self, program, folder, threads):
        self.program, self.folder, self.threads = program, folder, threads

    def run(self, *line):
        line = [str(part) for part in line]
        start = time.perf_counter()
        done = subprocess.run([self.program, *line], cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"lssvm {' '.join(line)}: {done.stderr}")
        return done.stdout, time.perf_counter() - start

    def json(self, name):
        return json.loads((self.folder / name).read_text())

    def tune(self, *options):
        _, seconds = self.run("tune", "train.csv", "--output", "best.toml", "--json", "tune.json",
                              "--threads", self.threads, *options)
        return self.json("tune.json"), seconds

    def train(self, *options):
        """Trains by best.toml; returns the test error."""
        self.run("train", "train.csv", "--test", "test.csv", "--config", "best.toml", "--model", "m.lssvm",
                 "--json", "train.json", "--threads", self.threads, *options)
        return self.json("train.json")["error_percent"]


def svc(grid, jobs, scaler):
    steps = make_pipeline(scaler, SVC(cache_size=1000))
    return GridSearchCV(steps, grid, cv=5, n_jobs=jobs)


def percent_wrong(model, T, t):
    return 100 * np.mean(model.predict(T) != t)


def grid_sets(sets):
    """5,000 training rows of each set and how they are scaled; the other rows test."""
    for name in ("optdigits", "satimage"):
        X, y, T, t = sets[name]
        X, y = np.vstack([X, T]), np.concatenate([y, t])
        X, T, y, t = train_test_split(X, y, train_size=ROWS, random_state=0, stratify=y)
        yield name, X, y, T, t, "standardize", StandardScaler()
    if "mnist" in sets:
        X, y, T, t = sets["mnist"]
        X, _, y, _ = train_test_split(X, y, train_size=ROWS, random_state=0, stratify=y)
        yield "mnist", X, y, T, t, "none", FunctionTransformer()


def grid(sets, lssvm, jobs):
    print("| data | features | GridSearchCV(SVC) s | test error % | lssvm tune s | test error % | ratio "
          "| every setting on all rows s | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for name, X, y, T, t, preprocess, scaler in grid_sets(sets):
        write(lssvm.folder / "train.csv", X, y)
        write(lssvm.folder / "test.csv", T, t)
        multiples = np.logspace(-1.5, 1, GRID)
        cs = np.logspace(-1, 3, GRID)
        space = {"preprocess": [preprocess], "kernels": ["rbf"], "gamma": multiples.tolist(),
                 "degree": [], "c": cs.tolist()}
        (lssvm.folder / "space.toml").write_text(
            "\n".join(f"{key} = {json.dumps(value)}" for key, value in space.items()))
        options = "--space", "space.toml", "--rows", ROWS
        _, whole = lssvm.tune(*options, "--exhaustive")
        _, ours = lssvm.tune(*options)
        our_error = lssvm.train()
        scale = 1 / (X.shape[1] * scaler.fit_transform(X).var())
        start = time.perf_counter()
        model = svc({"svc__gamma": multiples * scale, "svc__C": cs}, jobs, scaler).fit(X, y)
        theirs = time.perf_counter() - start
        print(f"| {name} | {X.shape[1]} | {theirs:.1f} | {percent_wrong(model, T, t):.2f} | {ours:.1f} "
              f"| {our_error:.2f} | {theirs / ours:.0f} | {whole:.1f} | {theirs / whole:.0f} |", flush=True)


def nested(sets, lssvm, jobs):
    print("| data | training rows | GridSearchCV(SVC) s | test error % | lssvm tune s | chosen | test error % |")
    print("|---|---:|---:|---:|---:|---|---:|", flush=True)
    for name in SETS:
        X, y, T, t = sets[name]
        write(lssvm.folder / "train.csv", X, y)
        write(lssvm.folder / "test.csv", T, t)
        found, ours = lssvm.tune()
        our_error = lssvm.train()
        chosen = found["best"]["config"]
        words = ", ".join(f"{key} {chosen[key]:.3g}" if isinstance(chosen[key], float) else str(chosen[key])
                          for key in ("kernel", "degree", "gamma", "c") if chosen.get(key) is not None)
        values = {"svc__gamma": np.logspace(-1, 1, 5) / X.shape[1], "svc__C": np.logspace(-1, 3, 5)}
        start = time.perf_counter()
        search = svc(values, jobs, StandardScaler())
        if len(X) > LARGE:
            few, _, few_y, _ = train_test_split(X, y, train_size=SEARCHED, random_state=0, stratify=y)
            model = search.fit(few, few_y).best_estimator_.fit(X, y)
        else:
            model = search.fit(X, y)
        theirs = time.perf_counter() - start
        print(f"| {name} | {len(X)} | {theirs:.1f} | {percent_wrong(model, T, t):.2f} | {ours:.1f} | {words} "
              f"| {our_error:.2f} |", flush=True)


def log_loss(probabilities, names, truth):
    place = {name: at for at, name in enumerate(names)}
    own = np.array([row[place[label]] for row, label in zip(probabilities, truth)])
    return -np.mean(np.log(np.maximum(own, 1e-15)))


def calibration(sets, lssvm, jobs):
    print("| data | training rows | log loss of the softmax | calibrated |")
    print("|---|---:|---:|---:|", flush=True)
    for name in SETS:
        X, y, T, t = sets[name]
        if len(X) > LARGE:
            X, _, y, _ = train_test_split(X, y, train_size=LARGE, random_state=0, stratify=y)
        write(lssvm.folder / "train.csv", X, y)
        write(lssvm.folder / "test.csv", T, t)
        lssvm.run("train", "train.csv", "--loo", "--model", "m.lssvm", "--threads", lssvm.threads)
        losses = []
        for option, key in (("--scores", "scores"), ("--probabilities", "probabilities")):
            lssvm.run("predict", "m.lssvm", "test.csv", option, "--json", "--output", "p.json")
            lines = (lssvm.folder / "p.json").read_text().splitlines()
            rows = [json.loads(line) for line in lines]
            names = list(rows[0][key])
            values = np.array([[row[key][name] for name in names] for row in rows])
            if option == "--scores":
                values = np.exp(values - values.max(axis=1, keepdims=True))
                values /= values.sum(axis=1, keepdims=True)
            losses.append(log_loss(values, names, t))
        print(f"| {name} | {len(X)} | {losses[0]:.4f} | {losses[1]:.4f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lssvm", type=Path, required=True)
    parser.add_argument("--small", type=Path, required=True)
    parser.add_argument("--mnist", type=Path)
    parser.add_argument("--only", default="grid,nested,calibration")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    sets = {name: read(name, args.small) for name in SETS}
    if args.mnist:
        sets["mnist"] = read_mnist(args.mnist)
    tables = {"grid": grid, "nested": nested, "calibration": calibration}
    with tempfile.TemporaryDirectory() as folder:
        lssvm = Lssvm(args.lssvm.resolve(), Path(folder), args.jobs)
        for name in args.only.split(","):
            tables[name](sets, lssvm, args.jobs)
            print()


if __name__ == "__main__":
    main()
