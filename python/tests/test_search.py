"""Choosing a model."""

import os
import signal
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import chi2_kernel
from sklearn.svm import SVC

import lssvm

SPACE = {
    "preprocess": ["none", "standardize"],
    "kernels": ["linear", "rbf"],
    "gamma": [0.3, 1.0],
    "degree": [],
    "c": [1.0, 100.0],
}


def test_a_classifier_is_chosen(digits):
    X, y, X_test, y_test = digits
    search = lssvm.LSSVMSearchCV(space=SPACE).fit(X, y)
    assert len(search.cv_results_["error"]) == 12
    assert search.best_score_ == -search.cv_results_["error"].min()
    assert search.best_params_["kernel"] == "rbf"
    assert search.score(X_test, y_test) > 0.9
    p = search.predict_proba(X_test)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    # The bare softmax of ten scores in 0 … 1 never says more than e / (e + 9).
    assert search.best_estimator_.leave_one_out and p.max() > 0.9
    # What it says of itself is what a fit with these settings says.
    again = lssvm.LSSVMClassifier(leave_one_out=True, **search.best_params_).fit(X, y)
    wrong = np.mean(again.classes_[again.loo_scores_.argmax(axis=1)] != y)
    assert wrong == pytest.approx(-search.best_score_, abs=2 / len(y))


def test_probabilities_are_left_as_they_are_where_the_method_is_not_exact(digits):
    X, y, _, _ = digits
    estimator = lssvm.LSSVMClassifier(method="gauss-seidel")
    other = lssvm.LSSVMSearchCV(estimator, space=SPACE).fit(X, y)
    assert not other.best_estimator_.leave_one_out
    pcg = lssvm.LSSVMSearchCV(lssvm.LSSVMClassifier(method="pcg"), space=SPACE).fit(X, y)
    assert not pcg.best_estimator_.leave_one_out
    apart = lssvm.LSSVMSearchCV(lssvm.LSSVMClassifier(early_stopping=True), space=SPACE).fit(X, y)
    assert not apart.best_estimator_.leave_one_out
    assert apart.predict_proba(X).max() > 0.9


def test_a_regressor_is_chosen():
    X = np.random.default_rng(0).normal(size=(150, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    search = lssvm.LSSVMSearchCV(lssvm.LSSVMRegressor(precision="f64"), space=SPACE)
    search.fit(X, y, sample_weight=np.ones(150))
    assert search.best_params_["kernel"] == "rbf"
    assert not hasattr(search, "predict_proba")
    assert search.score(X, y) > 0.9
    assert clone(search).get_params()["space"] == SPACE


def test_coef0_is_that_of_the_search():
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = (X[:, 0] > 0).astype(int)
    space = SPACE | {"kernels": ["sigmoid"], "gamma": [0.1], "preprocess": ["none"]}
    found = {}
    for coef0 in (0.0, -5.0):
        search = lssvm.LSSVMSearchCV(lssvm.LSSVMClassifier(coef0=coef0), space=space).fit(X, y)
        assert search.best_params_["coef0"] == search.best_estimator_.coef0 == coef0
        # The error belongs to this coef0.
        again = lssvm.LSSVMClassifier(leave_one_out=True, **search.best_params_).fit(X, y)
        wrong = np.mean(again.classes_[again.loo_scores_.argmax(axis=1)] != y)
        assert wrong == pytest.approx(-search.best_score_, abs=1.5 / len(y))
        found[coef0] = search.cv_results_["error"].tolist()
    assert found[0.0] != found[-5.0]
    # The search sets that of "poly" itself.
    poly = SPACE | {"kernels": ["poly"], "degree": [2]}
    search = lssvm.LSSVMSearchCV(lssvm.LSSVMClassifier(coef0=-5.0), space=poly).fit(X, y)
    assert search.best_estimator_.coef0 == 1.0


def test_a_part_of_the_space_is_enough():
    X = np.random.default_rng(0).normal(size=(60, 3))
    search = lssvm.LSSVMSearchCV(space={"kernels": ["rbf"], "c": np.logspace(0, 1, 2)})
    params = search.fit(X, X[:, 0] > 0).cv_results_["params"]
    assert {p["kernel"] for p in params} == {"rbf"} and {p["C"] for p in params} == {1.0, 10.0}
    assert len({p["gamma"] for p in params}) > 1 and len({p["preprocess"] for p in params}) > 1
    with pytest.raises(ValueError, match="space: .*kernel"):
        lssvm.LSSVMSearchCV(space={"kernel": ["rbf"]}).fit(X, X[:, 0] > 0)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SVC(), "must be an LSSVMClassifier"),
        (lssvm.LSSVMClassifier(kernel="precomputed"), "kernel"),
        (lssvm.LSSVMRegressor(kernel=chi2_kernel), "kernel"),
    ],
)
def test_what_cannot_be_searched_is_said(estimator, message):
    with pytest.raises(ValueError, match=message):
        lssvm.LSSVMSearchCV(estimator).fit(np.eye(20), np.arange(20) % 2)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_leaves_the_best_so_far(monkeypatch):
    from sklearn.exceptions import NotFittedError

    from lssvm import _search

    X = np.random.default_rng(0).normal(size=(1000, 20))
    y = np.sin(X[:, 0]) > 0
    search = lssvm.LSSVMSearchCV(space=SPACE).fit(X[:50], y[:50])
    keep = _search._Tried.__call__

    def interrupt(self, kind, *told):
        keep(self, kind, *told)
        if len(self.trials) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(_search._Tried, "__call__", interrupt)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert len(search.cv_results_["error"]) == 3
    assert search.best_score_ == -search.cv_results_["error"].min()
    assert search.best_params_ in search.cv_results_["params"]
    # What an earlier fit left does not belong to these settings.
    with pytest.raises(NotFittedError):
        search.predict(X)


def test_a_search_ends_in_time(digits):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="more time"):
            lssvm.LSSVMSearchCV(time=1e-9).fit(*digits[:2])
    with pytest.raises(ValueError, match="space"):
        lssvm.LSSVMSearchCV(space={"kernels": ["cubic"]}).fit(*digits[:2])


def test_an_exhaustive_search_tries_all_on_the_most_rows(digits):
    X, y, _, _ = digits
    space = {"kernels": ["rbf"], "gamma": [0.3, 1], "preprocess": ["standardize"], "c": [1, 10]}
    search = lssvm.LSSVMSearchCV(space=space, exhaustive=True).fit(X, y)
    assert set(search.cv_results_["rows"]) == {len(X)}
    assert len(search.cv_results_["rows"]) == 4
    assert search.best_score_ == -search.cv_results_["error"].min()


def test_errors_for_many_values_of_c_are_those_of_fits():
    X, y = load_iris(return_X_y=True)
    C = [10, 0.1, 1]
    weights = np.linspace(0.5, 2, len(y))
    estimator = lssvm.LSSVMClassifier(gamma=0.5)
    path = lssvm.c_path(estimator, X, y, C=C, sample_weight=weights)
    np.testing.assert_array_equal(path.C, sorted(C))
    assert path.exact and not hasattr(estimator, "classes_")
    for c, error in zip(path.C, path.error, strict=True):
        model = lssvm.LSSVMClassifier(C=c, gamma=0.5, leave_one_out=True)
        model.fit(X, y, sample_weight=weights)
        assert error == pytest.approx(model.loo_error_, abs=1e-12)
    assert path.best_C == path.C[path.error.argmin()]
    values = lssvm.c_path(lssvm.LSSVMRegressor(), X, X[:, :2])
    assert values.error.shape == values.standard_error.shape == (50,)
    assert values.simplest_C <= values.best_C
    with pytest.raises(ValueError, match="positive"):
        lssvm.c_path(estimator, X, y, C=[1, 0])
    with pytest.raises(ValueError, match="LSSVMClassifier"):
        lssvm.c_path(object(), X, y)
