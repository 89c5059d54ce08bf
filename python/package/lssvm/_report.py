"""A page about a model."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted, validate_data


def report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    name: str = "X",
    image_shape: tuple[int, int, int] | None = None,
) -> None:
    """Write a page about a model and how well it does on data it has not seen.

    One HTML file that needs no network: the result with a confidence interval, the
    settings, how training went (if the model was fitted in this session), confusion
    matrix, wrong rows as images if they are images, calibration of the probabilities;
    for regression predicted against true values. Its numbers go beside it as JSON.

    Parameters
    ----------
    model : LSSVMClassifier or LSSVMRegressor
        A fitted model.
    X : array-like of shape (n_samples, n_features)
        Rows that were not trained on.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        What should be predicted.
    path : str or path-like
        Where the page goes.
    name : str, default="X"
        What the page calls the data.
    image_shape : (channels, height, width), default=None
        The shape of the image that a row is.

    Examples
    --------
    >>> import os, tempfile, lssvm
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = lssvm.LSSVMClassifier().fit(X[:1000], y[:1000])
    >>> path = os.path.join(tempfile.mkdtemp(), "digits.html")
    >>> lssvm.report(model, X[1000:], y[1000:], path, name="digits", image_shape=(1, 8, 8))
    >>> os.path.getsize(path) > 10_000
    True
    """
    check_is_fitted(model)
    core = model._core("report")
    X = validate_data(model, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
    if hasattr(X, "toarray"):
        X = X.toarray()
    if is_classifier(model):
        target: Any = model._codes(y)
    else:
        values = np.asarray(y, dtype=np.float64)
        target = values.reshape(len(values), -1)
    shape = None if image_shape is None else [int(size) for size in image_shape]
    core.write_report(
        X, target, os.fspath(path), name, model._threads(), model._run_report(), shape
    )
