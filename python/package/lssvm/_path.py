"""Errors for many values of C, from one factorisation."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import Bunch
from sklearn.utils.validation import _check_sample_weight, check_X_y

from . import _lssvm
from ._base import _dense
from ._search import _OF_THE_LAST_FIT, encoded, own_estimator

# From the smallest to the largest C, if none are given, as the program has them.
_FROM, _TO, _VALUES = 1e-3, 1e4, 50


def c_path(
    estimator: Any, X: Any, y: Any, *, C: Any = None, sample_weight: Any = None
) -> Bunch:
    """Leave-one-out errors for many values of ``C``, from one factorisation.

    Parameters
    ----------
    estimator : LSSVMClassifier or LSSVMRegressor
        Kernel, preprocessing and all other settings; its ``C`` and ``method`` mean nothing
        here. It is not changed.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows; those that are sparse become dense.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Classes or values.
    C : array-like of shape (n_values,), default=None
        The values; 50 from 0.001 to 10,000 by default.
    sample_weight : array-like of shape (n_samples,), default=None
        What each row counts.

    Returns
    -------
    path : :class:`~sklearn.utils.Bunch`
        ``C``, in increasing order; ``error``, the share of wrong rows or the RMSE of each,
        and its ``standard_error``; ``residual``, the relative one of each solution, and
        ``diagonal_error``, by which share the diagonal that the errors follow from is off,
        0 where ``exact``; ``best_C`` with the least error, and ``simplest_C``, the smallest
        one whose error is within one standard error of it.

    Examples
    --------
    >>> from lssvm import LSSVMClassifier, c_path
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = c_path(LSSVMClassifier(), X, y)
    >>> path.error.shape, path.simplest_C <= path.best_C
    ((50,), True)
    """
    estimator = own_estimator(estimator)
    classifier = is_classifier(estimator)
    rows, target = check_X_y(
        X,
        y,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        multi_output=not classifier,
        y_numeric=not classifier,
    )
    told = encoded(estimator, target)
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, rows, dtype=np.float64)
    config = estimator._config(rows.dtype)
    for name in ("c", *_OF_THE_LAST_FIT):
        config.pop(name, None)
    values = np.geomspace(_FROM, _TO, _VALUES) if C is None else np.asarray(C, dtype=np.float64)
    found = json.loads(
        _lssvm.c_path(
            _dense(rows), told, json.dumps(config), values.ravel().tolist(), weights=weights
        )
    )
    points = found["points"]
    unit = 100 if classifier else 1

    def column(name: str) -> np.ndarray:
        return np.array([point[name] for point in points], dtype=np.float64)

    return Bunch(
        C=column("c"),
        error=column("error") / unit,
        standard_error=column("standard_error") / unit,
        residual=column("residual"),
        diagonal_error=column("diagonal_error"),
        exact=bool(found["exact"]),
        best_C=float(found["best"]),
        simplest_C=float(found["simplest"]),
    )
