"""Choosing a model by leave-one-out errors, as an estimator."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from . import _lssvm
from ._base import _dense, _plain
from ._classifier import LSSVMClassifier
from ._progress import Progress
from ._regressor import LSSVMRegressor

_SEARCHED = ("preprocess", "kernel", "gamma", "degree", "c")

# Settings of the fit on all rows, which mean nothing to a leave-one-out error.
_OF_THE_LAST_FIT = (
    "method",
    "centers",
    "tolerance",
    "averages",
    "loo",
    "iterations",
    "time",
    "augment",
)

# Parameters that only some kernels have.
_OF_KERNEL = {
    "gamma": ("poly", "rbf", "laplacian", "sigmoid"),
    "degree": ("poly",),
    "coef0": ("poly", "sigmoid"),
}


def _chosen_has(method: str) -> Any:
    return lambda self: hasattr(self.estimator or LSSVMClassifier(), method)


def own_estimator(estimator: Any) -> Any:
    """A copy of the estimator, if it is one whose leave-one-out errors are for nothing."""
    if estimator is None:
        return LSSVMClassifier()
    if not isinstance(estimator, (LSSVMClassifier, LSSVMRegressor)):
        raise ValueError(
            f"estimator = {estimator!r}: must be an LSSVMClassifier or LSSVMRegressor, "
            "whose leave-one-out errors come without refits; for others there is "
            "sklearn.model_selection.GridSearchCV"
        )
    if estimator._given_kernel():
        raise ValueError(
            "kernel: the search tries kernels that the core computes, and a precomputed one, "
            "or a function, is none of them; leave the estimator's kernel at its default"
        )
    return clone(estimator)


def encoded(estimator: Any, target: Any) -> Any:
    """The target as the core wants it; a classifier is told its classes."""
    if not is_classifier(estimator):
        return np.asarray(target, dtype=np.float64).reshape(len(target), -1)
    check_classification_targets(target)
    estimator.classes_, codes = np.unique(target, return_inverse=True)
    if len(estimator.classes_) < 2:
        raise ValueError(f"there is only 1 class in the data, {estimator.classes_[0]}")
    return [str(name) for name in estimator.classes_], codes.astype(np.uint32)


class _Tried:
    """Keeps what was tried, for a search that is interrupted; passes it on to the bar."""

    def __init__(self, progress: Progress | None) -> None:
        self.trials: list[dict[str, Any]] = []
        self.best: dict[str, Any] | None = None
        self._progress = progress

    def __call__(self, kind: str, *told: Any) -> None:
        if kind == "tried":
            trial, best = map(json.loads, told[-2:])
            self.trials.append(trial)
            self.best = best
        if self._progress:
            self._progress(kind, *told)

    def close(self) -> None:
        if self._progress:
            self._progress.close()


class LSSVMSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Search for preprocessing, kernel, its parameters and C by leave-one-out errors.

    Nothing is refitted for a leave-one-out error, and no rows are kept apart. All
    candidates are tried on 1,000 rows at random, the better third of them on three times
    as many, and so on (successive halving). The best is fitted on all rows.

    Ctrl-C ends a search with ``KeyboardInterrupt``; ``best_params_``, ``best_score_`` and
    ``cv_results_`` are then those of what was tried by then.

    Parameters
    ----------
    estimator : LSSVMClassifier or LSSVMRegressor, default=None
        What is fitted in the end, and the settings that are not searched
        (``class_weight``, ``memory``, ``n_jobs``, ``coef0`` of "sigmoid", ...); a
        classifier by default.
    space : dict of lists, default=None
        ``preprocess``, ``kernels``, ``gamma`` (multiples of "scale"), ``degree`` and
        ``c``; what is not in it is what is worth trying.
    time : float, default=None
        Most seconds of the search.
    max_rows : int, default=None
        Most rows of the last round; 15,000, or as many as fit in memory, by default.
    one_standard_error : bool, default=False
        Of settings that differ in C alone, take the smallest C whose error is within one
        standard error of the best.
    exhaustive : bool, default=False
        Try every setting on the rows of the last round, instead of the better third of
        each round on more rows.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    best_estimator_ : LSSVMClassifier or LSSVMRegressor
        Fitted on all rows with the best settings; a classifier with ``leave_one_out``
        where its method is "exact", as it is up to 15,000 rows unless told otherwise.
    best_params_ : dict
        These settings.
    best_score_ : float
        Minus the leave-one-out error: share of wrong rows, or RMSE.
    cv_results_ : dict of ndarray
        ``rows``, ``error``, ``standard_error`` and ``seconds`` of every trial, and
        ``params``.
    n_features_in_ : int
        Number of features.
    classes_ : ndarray
        The classes, for a classifier.

    Examples
    --------
    >>> from lssvm import LSSVMSearchCV
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> search = LSSVMSearchCV().fit(X, y)
    >>> search.best_score_ > -0.05
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        space: Any = None,
        time: float | None = None,
        max_rows: int | None = None,
        one_standard_error: bool = False,
        exhaustive: bool = False,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.time = time
        self.max_rows = max_rows
        self.one_standard_error = one_standard_error
        self.exhaustive = exhaustive
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LSSVMSearchCV:
        """Search, and fit the best on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Classes or values.
        sample_weight : array-like of shape (n_samples,), default=None
            What each row counts.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        estimator = own_estimator(self.estimator)
        classifier = is_classifier(estimator)
        rows, target = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            multi_output=not classifier,
            y_numeric=not classifier,
        )
        if rows.shape[0] < 2:
            raise ValueError("leaving one out needs at least 2 samples, and n_samples = 1")
        told = encoded(estimator, target)
        if classifier:
            self.classes_ = estimator.classes_
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, rows, dtype=np.float64)
        tried = _Tried(Progress() if self.verbose else None)
        try:
            found = self._search(estimator, rows, told, weights, tried)
        except KeyboardInterrupt:
            if tried.best is not None:
                self._keep(tried.best, tried.trials, classifier)
            raise
        finally:
            tried.close()
        self._keep(found["best"], found["trials"], classifier)
        if found["cut_short"]:
            warnings.warn("the search was ended early: this is the best so far", stacklevel=2)
        estimator.set_params(**self.best_params_)
        if classifier and self._can_leave_one_out(estimator, rows):
            estimator.set_params(leave_one_out=True)
            try:
                self.best_estimator_ = clone(estimator).fit(X, y, sample_weight=sample_weight)
                return self
            except MemoryError:
                # Said before any work: the scores take room that the fit alone does not.
                estimator.set_params(leave_one_out=False)
        self.best_estimator_ = clone(estimator).fit(X, y, sample_weight=sample_weight)
        return self

    def _can_leave_one_out(self, estimator: Any, rows: Any) -> bool:
        """Whether the method of the last fit gives what calibrates probabilities."""
        if estimator.early_stopping or estimator.augment is not None:
            # The rows that it keeps apart calibrate them; an image that is seen in several
            # ways is not left out by leaving one of them out.
            return False
        config = json.dumps(estimator._config(rows.dtype) | {"loo": False})
        method = _lssvm.chosen_method(config, rows.shape[0], rows.shape[1], len(self.classes_))
        return bool(method == "exact")

    def _keep(self, best: dict[str, Any], trials: list[dict[str, Any]], classifier: bool) -> None:
        """What is known before anything is fitted on all rows."""
        # That of an earlier fit would not belong to these settings.
        self.__dict__.pop("best_estimator_", None)
        unit = 100 if classifier else 1
        self.best_params_ = _parameters(best["config"])
        self.best_score_ = -_finite(best["error"]) / unit
        self.cv_results_ = {
            "rows": np.array([trial["rows"] for trial in trials]),
            "error": np.array([_finite(trial["error"]) for trial in trials]) / unit,
            "standard_error": np.array([trial["standard_error"] for trial in trials]) / unit,
            "seconds": np.array([trial["seconds"] for trial in trials]),
            "params": [_parameters(trial["config"]) for trial in trials],
        }

    def _search(
        self, estimator: Any, rows: Any, target: Any, weights: Any, progress: Any
    ) -> dict[str, Any]:
        config = estimator._config(rows.dtype)
        for name in (*_SEARCHED, *_OF_THE_LAST_FIT):
            config.pop(name, None)
        found = _lssvm.tune(
            _dense(rows),
            target,
            json.dumps(config),
            space=None if self.space is None else json.dumps(self.space, default=_plain),
            weights=weights,
            seconds=self.time,
            rows=self.max_rows,
            one_standard_error=bool(self.one_standard_error),
            exhaustive=bool(self.exhaustive),
            progress=progress,
        )
        return dict(json.loads(found))

    def predict(self, X: Any) -> np.ndarray:
        """Predict by the best estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray
            Classes or values.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @available_if(_chosen_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores by the best estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray
            As :meth:`LSSVMClassifier.decision_function`.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    @available_if(_chosen_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities by the best estimator.

        Calibrated on leave-one-out scores of the training rows, or on the rows that
        ``early_stopping`` kept apart; with other methods than "exact" the softmax of the
        scores, as :meth:`LSSVMClassifier.predict_proba` has it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            They sum to 1.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    @available_if(_chosen_has("predict_set"))
    def predict_set(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Sets of classes by the best estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            The share of rows whose true class shall be in their set.

        Returns
        -------
        sets : ndarray of bool, of shape (n_samples, n_classes)
            As :meth:`LSSVMClassifier.predict_set`.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_set(X, coverage)

    @available_if(_chosen_has("predict_interval"))
    def predict_interval(
        self, X: Any, coverage: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals of values by the best estimator.

        Needs an ``estimator`` with ``leave_one_out=True``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            The share of rows whose true value shall be in its interval.

        Returns
        -------
        lower, upper : ndarray
            As :meth:`LSSVMRegressor.predict_interval`.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_interval(X, coverage)

    def score(self, X: Any, y: Any) -> float:
        """Accuracy, or R², of the best estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like
            What should be predicted.

        Returns
        -------
        score : float
            As that of the estimator.
        """
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        chosen = (self.estimator or LSSVMClassifier()).__sklearn_tags__()
        tags.estimator_type = chosen.estimator_type
        tags.classifier_tags = chosen.classifier_tags
        tags.regressor_tags = chosen.regressor_tags
        tags.target_tags = chosen.target_tags
        tags.input_tags = chosen.input_tags
        return tags


def _finite(error: float | None) -> float:
    return float("inf") if error is None else error


def _parameters(config: dict[str, Any]) -> dict[str, Any]:
    """Settings of the core as parameters of an estimator."""
    kernel = config["kernel"]
    given = {}
    for name in (*_SEARCHED, "coef0"):
        if config.get(name) is not None and kernel in _OF_KERNEL.get(name, (kernel,)):
            given["C" if name == "c" else name] = config[name]
    if given.get("preprocess") == "none":
        given["preprocess"] = None
    return given
