"""Intervals and sets of classes: what they promise, hold, and refuse."""

import pickle
import subprocess

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels

import lssvm


def surface(n, seed, outputs=1):
    """A curved surface with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] / 2
    y = y[:, None] + rng.normal(scale=[0.2, 0.4][:outputs], size=(n, outputs))
    return X, y if outputs > 1 else y[:, 0]


def clouds(n, seed):
    """Three clouds that overlap."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=n)
    centres = np.array([[0, 0], [2.2, 0], [1.1, 2]])
    return centres[codes] + rng.normal(size=(n, 2)), np.array(["a", "b c", "d"])[codes]


def margin(coverage, truth, loo_scores):
    """The k-th smallest absolute error, written out."""
    errors = np.sort(np.abs(truth - loo_scores))
    return errors[int(np.ceil((len(errors) + 1) * coverage)) - 1]


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_intervals_are_made_of_leave_one_out_errors(precision):
    X, y = surface(150, 0)
    model = lssvm.LSSVMRegressor(C=10, leave_one_out=True, precision=precision).fit(X, y)
    new = surface(50, 1)[0]
    for coverage in (0.5, 0.9, 0.95):
        lower, upper = model.predict_interval(new, coverage)
        q = margin(coverage, y, model.loo_scores_[:, 0])
        assert lower.shape == upper.shape == (50,)
        np.testing.assert_allclose(lower, model.predict(new) - q, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(upper, model.predict(new) + q, rtol=1e-5, atol=1e-5)
    lower, upper = model.predict_interval(new, 0.999)
    assert np.all(lower == -np.inf) and np.all(upper == np.inf)


def test_each_output_has_its_own_intervals():
    X, y = surface(200, 0, outputs=2)
    model = lssvm.LSSVMRegressor(C=10, leave_one_out=True).fit(X, y)
    lower, upper = model.predict_interval(X, 0.8)
    assert lower.shape == upper.shape == (200, 2)
    widths = (upper - lower)[0]
    assert widths[1] > 1.5 * widths[0]
    np.testing.assert_allclose(widths[1], 2 * margin(0.8, y[:, 1], model.loo_scores_[:, 1]))


def test_coverage_over_data_sets():
    # The mean over data sets of what is held of 200 new rows each. Of one data set it varies
    # by sqrt(p (1 - p) (1 / 152 + 1 / 200)).
    held = {"intervals": [], "sets": []}
    for seed in range(30):
        X, y = surface(150, seed)
        new, truth = surface(200, 1000 + seed)
        model = lssvm.LSSVMRegressor(C=10, leave_one_out=True, n_jobs=1).fit(X, y)
        lower, upper = model.predict_interval(new, 0.9)
        held["intervals"].append(np.mean((lower <= truth) & (truth <= upper)))
        X, y = clouds(150, seed)
        new, truth = clouds(200, 1000 + seed)
        model = lssvm.LSSVMClassifier(C=10, leave_one_out=True, n_jobs=1).fit(X, y)
        sets = model.predict_set(new, 0.9)
        held["sets"].append(np.mean(sets[np.arange(200), np.searchsorted(model.classes_, truth)]))
    p = np.ceil(151 * 0.9) / 151
    error = np.sqrt(p * (1 - p) * (1 / 152 + 1 / 200) / 30)
    for name, shares in held.items():
        assert abs(np.mean(shares) - p) < 4 * error, name


def test_sets_are_those_of_the_probabilities():
    X, y = clouds(200, 0)
    model = lssvm.LSSVMClassifier(C=10, leave_one_out=True).fit(X, y)
    new = clouds(100, 1)[0]
    p = model.predict_proba(new)
    small, large = model.predict_set(new, 0.5), model.predict_set(new, 0.95)
    assert small.dtype == bool and small.shape == (100, 3)
    assert np.all(small <= large) and small.sum() < large.sum()
    # What is in a set is more probable than what is not.
    assert p[large].min() > p[~large].max()
    assert model.predict_set(new, 0.9999).all()


def test_rows_kept_apart_do_it_too():
    X, y = clouds(400, 0)
    model = lssvm.LSSVMClassifier(C=10, early_stopping=True, random_state=0).fit(X, y)
    assert model.predict_set(X, 0.9).any()
    # 40 rows cannot promise 98 %.
    assert model.predict_set(X, 0.98).all()


def test_they_outlast_files_and_pickles(tmp_path):
    path = tmp_path / "m.lssvm"
    X, y = surface(100, 0)
    model = lssvm.LSSVMRegressor(C=10, leave_one_out=True).fit(X, y)
    model.save(path)
    expected = model.predict_interval(X, 0.8)
    for again in (lssvm.load(path), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_interval(X, 0.8), expected)
    X, y = clouds(100, 0)
    model = lssvm.LSSVMClassifier(C=10, leave_one_out=True).fit(X, y)
    model.save(path)
    np.testing.assert_array_equal(lssvm.load(path).predict_set(X), model.predict_set(X))


def test_the_program_gives_the_same(tmp_path, program):
    X, y = surface(100, 0)
    model = lssvm.LSSVMRegressor(C=10, leave_one_out=True).fit(X, y)
    model.save(tmp_path / "m.lssvm")
    np.savetxt(tmp_path / "new.csv", X, delimiter=",")
    command = [program, "predict", "m.lssvm", "new.csv", "--header", "false", "--interval", "0.8"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    header, *lines = done.stdout.splitlines()
    assert header == "output1,output1_lower,output1_upper"
    told = np.array([line.split(",") for line in lines], dtype=float)
    np.testing.assert_allclose(told[:, 0], model.predict(X), rtol=1e-12)
    np.testing.assert_allclose(told[:, 1:].T, model.predict_interval(X, 0.8), rtol=1e-12)


def test_kernels_that_are_given_have_them_too():
    X, y = surface(100, 0)

    def kernel(a, b):
        return pairwise_kernels(a, b, metric="rbf", gamma=0.5)

    expected = lssvm.LSSVMRegressor(C=10, gamma=0.5, leave_one_out=True).fit(X, y)
    model = lssvm.LSSVMRegressor(C=10, kernel="precomputed", leave_one_out=True)
    model = pickle.loads(pickle.dumps(model.fit(kernel(X, X), y)))
    np.testing.assert_allclose(
        model.predict_interval(kernel(X, X), 0.8), expected.predict_interval(X, 0.8), atol=1e-6
    )
    X, y = clouds(100, 0)
    model = lssvm.LSSVMClassifier(C=10, kernel="precomputed", leave_one_out=True)
    sets = model.fit(kernel(X, X), y).predict_set(kernel(X, X), 0.8)
    expected = lssvm.LSSVMClassifier(C=10, gamma=0.5, leave_one_out=True).fit(X, y)
    assert np.mean(sets == expected.predict_set(X, 0.8)) > 0.99
    plain = lssvm.LSSVMClassifier(C=10, kernel="precomputed").fit(kernel(X, X), y)
    with pytest.raises(ValueError, match="leave_one_out=True"):
        plain.predict_set(kernel(X, X))


def test_what_cannot_be_asked():
    X, y = surface(50, 0)
    with pytest.raises(ValueError, match="leave_one_out=True"):
        lssvm.LSSVMRegressor().fit(X, y).predict_interval(X)
    model = lssvm.LSSVMRegressor(leave_one_out=True).fit(X, y)
    for coverage in (0, 1, -0.5, 90, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            model.predict_interval(X, coverage)
    with pytest.raises(ValueError, match="coverage = 'most'"):
        model.predict_interval(X, "most")


def test_a_search_passes_them_on():
    X, y = clouds(120, 0)
    search = lssvm.LSSVMSearchCV(space={"kernels": ["linear"]}).fit(X, y)
    assert search.predict_set(X, 0.8).shape == (120, 3)
    assert not hasattr(search, "predict_interval")
    X, y = surface(120, 0)
    estimator = lssvm.LSSVMRegressor(leave_one_out=True)
    search = lssvm.LSSVMSearchCV(estimator, space={"kernels": ["rbf"]}).fit(X, y)
    lower, upper = search.predict_interval(X, 0.8)
    assert 0.7 < np.mean((lower <= y) & (y <= upper)) <= 1
