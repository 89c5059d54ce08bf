"""What scikit-learn asks of every estimator, with the exceptions of calibration alone."""

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import lssvm

SPACE = {
    "preprocess": ["none"],
    "kernels": ["rbf"],
    "gamma": [1.0],
    "degree": [],
    "c": [1.0, 10.0],
}

ESTIMATORS = [
    lssvm.LSSVMClassifier(),
    lssvm.LSSVMRegressor(),
    lssvm.LSSVMClassifier(method="pcg", precision="f64", tol=1e-12),
    lssvm.LSSVMRegressor(method="gauss-seidel", precision="f64", tol=1e-12, max_iter=1000),
    lssvm.LSSVMClassifier(method="centers", precision="f64", tol=1e-8),
    lssvm.LSSVMRegressor(method="centers", precision="f64", tol=1e-8),
    lssvm.LSSVMClassifier(method="pcg", precision="f64", tol=1e-12, warm_start=True),
    lssvm.LSSVMSearchCV(space=SPACE),
    lssvm.LSSVMSearchCV(lssvm.LSSVMClassifier(method="pcg", precision="f64", tol=1e-12), space=SPACE),
    lssvm.LSSVMSearchCV(lssvm.LSSVMRegressor(), space=SPACE),
    lssvm.UnitNorm(),
    lssvm.GaussianWindow(),
    lssvm.FourierFeatures(),
]


# Probabilities that are calibrated have an offset for each class, which may put another
# class first where two scores are nearly equal; and a row that is there twice is not left
# out by leaving one of the two out, so that a weight of 2 is not two rows. The search with
# "pcg", which is not calibrated, passes these too.
CALIBRATED = dict.fromkeys(
    [
        "check_classifiers_train",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ],
    "probabilities are calibrated by leaving one out",
)


def justified(estimator):
    default_search = isinstance(estimator, lssvm.LSSVMSearchCV) and estimator.estimator is None
    return CALIBRATED if default_search else {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=justified)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_grid_search_in_a_pipeline(digits):
    X, y, X_test, y_test = digits
    pipeline = make_pipeline(StandardScaler(), lssvm.LSSVMClassifier(random_state=0))
    grid = {"lssvmclassifier__C": [0.1, 10], "lssvmclassifier__gamma": ["scale", 1.0]}
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=2).fit(X, y)
    assert search.best_params_["lssvmclassifier__gamma"] == "scale"
    assert search.score(X_test, y_test) > 0.9


def test_a_clone_is_not_fitted_and_has_the_same_parameters():
    model = lssvm.LSSVMClassifier(C=3, method="mp", block_size=4, memory="1G", class_weight="balanced")
    copy = clone(model.fit([[0.0], [1.0], [2.0]], ["a", "b", "b"]))
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "classes_")


def test_cross_validation_of_strings(digits):
    X, y, _, _ = digits
    names = np.array([f"digit {label}" for label in y])
    assert cross_val_score(lssvm.LSSVMClassifier(C=100), X, names, cv=3).mean() > 0.95


def test_joblib_round_trip(tmp_path, digits):
    X, y, X_test, _ = digits
    model = lssvm.LSSVMClassifier(C=100).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(
        model.decision_function(X_test), again.decision_function(X_test)
    )


def test_set_output(digits):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(digits[0][:5], columns=[f"p{i}" for i in range(64)])
    out = lssvm.UnitNorm().set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == list(frame.columns)
    fourier = lssvm.FourierFeatures().set_output(transform="pandas").fit_transform(frame)
    assert fourier.shape == (5, 96) and fourier.columns[-1] == "frequency31"
