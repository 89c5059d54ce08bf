"""The numbers: against the linear system written out, and against scikit-learn."""

import numpy as np
import pytest
from conftest import theta_solution
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels

import lssvm

KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.5, "coef0": 1.0, "degree": 3},
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.3},
    "sigmoid": {"gamma": 0.01, "coef0": 0.1},
}


def problem(n=80, features=4, outputs=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, features))
    return X, np.sin(X @ rng.normal(size=(features, outputs)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_solution_is_that_of_the_system(kernel):
    X, y = problem()
    parameters = KERNELS[kernel]
    model = lssvm.LSSVMRegressor(C=10, kernel=kernel, **parameters).fit(X, y)
    weights, bias = theta_solution(pairwise_kernels(X, metric=kernel, **parameters), y, 10)
    np.testing.assert_allclose(model.dual_coef_, weights.T, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, bias, rtol=1e-6, atol=1e-9)
    new = problem(20)[0] + 0.1
    expected = pairwise_kernels(new, X, metric=kernel, **parameters) @ weights + bias
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-6, atol=1e-8)
    assert model.residual_ < 1e-10


def test_it_is_kernel_ridge_of_centred_targets_on_a_centred_kernel():
    # With a kernel whose matrix is centred the bias is the mean of the targets.
    X, y = problem()
    X = X - X.mean(axis=0)
    ours = lssvm.LSSVMRegressor(C=10, kernel="linear").fit(X, y).predict(X)
    ridge = KernelRidge(alpha=0.1, kernel="linear").fit(X, y - y.mean(axis=0))
    np.testing.assert_allclose(ours, ridge.predict(X) + y.mean(axis=0), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("method", ["exact", "pcg", "gauss-seidel", "mp", "kaczmarz-mp"])
def test_every_method_finds_it(method):
    X, y = problem()
    exact = lssvm.LSSVMRegressor(C=1, gamma=1.0).fit(X, y).predict(X)
    model = lssvm.LSSVMRegressor(
        C=1, gamma=1.0, method=method, tol=1e-9, max_iter=3000, block_size=81, random_state=0
    )
    np.testing.assert_allclose(model.fit(X, y).predict(X), exact, rtol=1e-5, atol=1e-6)
    assert model.n_iter_ >= 1 and len(model.history_["seconds"]) == model.n_iter_


@pytest.mark.parametrize(
    "method", ["exact", "pcg", "gauss-seidel", "mp", "kaczmarz", "kaczmarz-mp", "nystrom"]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_kernel_matrix_or_function_gives_the_same(method, dtype):
    X, y = problem()
    X = X.astype(dtype)
    parameters = {"C": 1.0, "method": method, "tol": 1e-6, "random_state": 0, "max_iter": 2000}
    if method in ("mp", "kaczmarz", "kaczmarz-mp", "nystrom"):
        parameters["block_size"] = 81
    plain = lssvm.LSSVMRegressor(gamma=1.0, **parameters).fit(X, y)

    def kernel(a, b):
        return pairwise_kernels(a, b, metric="rbf", gamma=1.0)

    function = lssvm.LSSVMRegressor(kernel=kernel, **parameters).fit(X, y)
    matrix = lssvm.LSSVMRegressor(kernel="precomputed", **parameters).fit(kernel(X, X), y)
    new = X[:7] + np.array(0.1, dtype)
    expected = plain.predict(new)
    np.testing.assert_allclose(function.predict(new), expected, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(matrix.predict(kernel(new, X)), expected, rtol=2e-4, atol=2e-5)
    with pytest.raises(ValueError, match="precomputed kernel"):
        matrix.save("nowhere.lssvm")


def test_weights_change_the_ridge():
    X, y = problem()
    weights = np.random.default_rng(1).uniform(0.1, 5, len(X))
    model = lssvm.LSSVMRegressor(C=10, gamma=0.3).fit(X, y, sample_weight=weights)
    expected, bias = theta_solution(pairwise_kernels(X, metric="rbf", gamma=0.3), y, 10, weights)
    np.testing.assert_allclose(model.dual_coef_, expected.T, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, bias, rtol=1e-6, atol=1e-9)


def test_class_weights_are_weights_of_rows():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 3))
    y = np.where(X[:, 0] + rng.normal(size=90) > 1, "rare", "common")
    balanced = lssvm.LSSVMClassifier(class_weight="balanced").fit(X, y)
    share = {name: len(y) / (2 * np.sum(y == name)) for name in ("rare", "common")}
    named = lssvm.LSSVMClassifier(class_weight=share).fit(X, y)
    rows = lssvm.LSSVMClassifier().fit(X, y, sample_weight=[share[name] for name in y])
    plain = lssvm.LSSVMClassifier().fit(X, y)
    for other in (named, rows):
        np.testing.assert_allclose(balanced.decision_function(X), other.decision_function(X))
    assert np.sum(balanced.predict(X) == "rare") > np.sum(plain.predict(X) == "rare")
    with pytest.raises(ValueError, match="egg"):
        lssvm.LSSVMClassifier(class_weight={"egg": 1}).fit(X, y)


def test_rows_of_weight_zero_do_not_count():
    X, y = problem()
    weights = np.r_[np.zeros(30), np.ones(50)]
    some = lssvm.LSSVMRegressor(gamma=0.3).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(some.support_, np.arange(30, 80))
    rest = lssvm.LSSVMRegressor(gamma=0.3).fit(X[30:], y[30:])
    np.testing.assert_allclose(some.predict(X), rest.predict(X))


def test_classes_of_weight_zero_do_not_count():
    X = problem(60)[0]
    y = np.arange(60) % 3

    def kernel(a, b):
        return pairwise_kernels(a, b, metric="rbf", gamma=0.3)

    by_rows = lssvm.LSSVMClassifier(gamma=0.3).fit(X, y, sample_weight=(y != 0).astype(float))
    for parameters in ({"gamma": 0.3}, {"kernel": kernel}):
        model = lssvm.LSSVMClassifier(class_weight={0: 0}, **parameters).fit(X, y)
        np.testing.assert_array_equal(model.support_, np.flatnonzero(y))
        np.testing.assert_allclose(model.decision_function(X), by_rows.decision_function(X))


def test_early_stopping_keeps_the_best_iteration(digits):
    X, y, X_test, y_test = digits
    model = lssvm.LSSVMClassifier(
        C=1e4, method="mp", block_size=50, early_stopping=True, random_state=0
    ).fit(X, y)
    assert len(model.support_) <= 0.9 * len(X)
    assert model.history_["error"].min() < 0.1
    assert model.score(X_test, y_test) > 0.9


def test_the_same_seed_gives_the_same_bits(digits):
    X, y, X_test, _ = digits
    scores = [
        lssvm.LSSVMClassifier(method="mp", block_size=100, random_state=3)
        .fit(X, y)
        .decision_function(X_test)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*scores)


def test_leave_one_out_is_that_of_refits():
    X, y = problem(40)
    model = lssvm.LSSVMRegressor(C=5, gamma=0.3, leave_one_out=True).fit(X, y)
    for i in (0, 7, 39):
        rest = np.delete(np.arange(40), i)
        refit = lssvm.LSSVMRegressor(C=5, gamma=0.3).fit(X[rest], y[rest])
        np.testing.assert_allclose(model.loo_scores_[i], refit.predict(X[[i]])[0], rtol=1e-7)


def test_leave_one_out_has_the_rows_that_were_learned_from():
    X, y = problem(40)
    parameters = {"C": 5, "gamma": 0.3, "leave_one_out": True}
    weights = np.ones(40)
    weights[[3, 20]] = 0
    some = lssvm.LSSVMRegressor(**parameters).fit(X, y, sample_weight=weights)
    rest = lssvm.LSSVMRegressor(**parameters).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_allclose(some.loo_scores_, rest.loo_scores_)
    apart = lssvm.LSSVMRegressor(early_stopping=True, random_state=0, **parameters).fit(X, y)
    assert apart.loo_scores_.shape == (36, 2)


def test_leave_one_out_makes_probabilities_mean_something(digits):
    from sklearn.metrics import log_loss

    X, y, X_test, y_test = digits
    plain = lssvm.LSSVMClassifier(C=100).fit(X, y)
    model = lssvm.LSSVMClassifier(C=100, leave_one_out=True).fit(X, y)
    assert model.loo_scores_.shape == (len(X), 10)
    before = log_loss(y_test, plain.predict_proba(X_test))
    after = log_loss(y_test, model.predict_proba(X_test))
    assert after < 0.3 * before
    np.testing.assert_array_equal(plain.predict(X_test), model.predict(X_test))


def test_leave_one_out_errors_are_estimated_with_pcg(digits):
    X, y, X_test, _ = digits
    exact = lssvm.LSSVMClassifier(C=10, leave_one_out=True).fit(X, y)
    wrong = np.mean(exact.classes_[exact.loo_scores_.argmax(axis=1)] != y)
    assert exact.loo_error_ == pytest.approx(wrong) and exact.loo_standard_error_ == 0
    model = lssvm.LSSVMClassifier(C=10, leave_one_out=True, method="pcg", random_state=0)
    model.fit(X, y)
    # Where no row is in doubt, the estimate has no error of its own.
    assert 0 <= model.loo_standard_error_ < 0.01
    off = abs(model.loo_error_ - exact.loo_error_)
    assert off <= 3 * model.loo_standard_error_ + 2 / len(X)
    # Row by row, and so in the order of X.
    far = np.abs(model.loo_scores_ - exact.loo_scores_).max(axis=1) > 0.2
    assert far.mean() < 0.02
    np.testing.assert_allclose(
        model.predict_proba(X_test), exact.predict_proba(X_test), atol=0.05
    )
    values = lssvm.LSSVMRegressor(C=10, leave_one_out=True).fit(X, y)
    close = lssvm.LSSVMRegressor(C=10, leave_one_out=True, method="pcg", random_state=0)
    close.fit(X, y)
    assert values.loo_standard_error_ == 0 < close.loo_standard_error_
    off = abs(values.loo_error_ - close.loo_error_)
    assert off <= 3 * close.loo_standard_error_


def test_weights_that_are_no_solution_have_no_leave_one_out_scores(digits):
    X, y, _, _ = digits
    model = lssvm.LSSVMClassifier(C=1e4, leave_one_out=True, method="pcg", max_iter=1)
    with pytest.warns(ConvergenceWarning, match="made all 1 iterations"):
        with pytest.warns(Warning, match="there are no scores"):
            model.fit(X, y)
    assert not hasattr(model, "loo_scores_") and not hasattr(model, "loo_error_")


def test_probabilities_of_a_given_kernel_are_calibrated_too(digits):
    import pickle

    X, y, X_test, _ = digits

    def kernel(a, b):
        return pairwise_kernels(a, b, metric="rbf", gamma=0.05)

    parameters = {"C": 100, "leave_one_out": True}
    expected = lssvm.LSSVMClassifier(gamma=0.05, **parameters).fit(X, y).predict_proba(X_test)
    function = lssvm.LSSVMClassifier(kernel=kernel, **parameters).fit(X, y)
    np.testing.assert_allclose(function.predict_proba(X_test), expected, atol=1e-6)
    matrix = lssvm.LSSVMClassifier(kernel="precomputed", **parameters).fit(kernel(X, X), y)
    again = pickle.loads(pickle.dumps(matrix))
    np.testing.assert_allclose(again.predict_proba(kernel(X_test, X)), expected, atol=1e-6)


def test_probabilities_order_the_classes_as_scores_do(digits):
    X, y, X_test, _ = digits
    model = lssvm.LSSVMClassifier(C=100).fit(X, y)
    p = model.predict_proba(X_test)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X_test))


def test_the_window_counts_pixels_from_one_or_zero():
    ones = np.ones((1, 16))
    for first in (1, 0):
        squares = (np.arange(4) + first - 2.0) ** 2
        expected = np.exp(-0.1 * (squares[:, None] + squares))
        window = lssvm.GaussianWindow(c=0.1, first=first).fit_transform(ones)
        np.testing.assert_allclose(window.reshape(4, 4), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="first"):
        lssvm.GaussianWindow(first=2).fit(ones)


def test_fourier_features_of_each_channel():
    X = np.random.default_rng(0).normal(size=(5, 12))
    features = lssvm.FourierFeatures(kind="1d-channel", image_shape=(3, 2, 2)).fit_transform(X)
    assert features.shape == (5, 18)
