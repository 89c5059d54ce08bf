"""Estimators from model files, whoever wrote them."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from . import _lssvm
from ._base import _CLASSES_NOTE, _DIMENSIONS_NOTE, _PARAMETERS_NOTE, _history
from ._classifier import LSSVMClassifier
from ._dataset import class_array
from ._regressor import LSSVMRegressor


def load(path: str | os.PathLike[str]) -> LSSVMClassifier | LSSVMRegressor:
    """Load a model that was saved by :meth:`LSSVMClassifier.save` or the program ``lssvm``.

    Predictions are those of the program, to the last bit on the same machine.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    model : LSSVMClassifier or LSSVMRegressor
        A fitted estimator.

    Examples
    --------
    >>> import os, tempfile, lssvm
    >>> path = os.path.join(tempfile.mkdtemp(), "m.lssvm")
    >>> lssvm.LSSVMRegressor(C=10).fit([[0.0], [1.0]], [0.0, 1.0]).save(path)
    >>> lssvm.load(path)
    LSSVMRegressor(C=10)
    """
    core = _lssvm.Model.load(os.fspath(path))
    told = json.loads(core.description)
    outputs, config, notes = told["outputs"], told["config"], told.get("notes", {})
    kind = LSSVMClassifier if outputs["kind"] == "classes" else LSSVMRegressor
    parameters = json.loads(notes.get(_PARAMETERS_NOTE, "null"))
    if parameters is None:
        parameters = _parameters(config, kind)
    if parameters.get("image_shape") is not None:
        parameters["image_shape"] = tuple(parameters["image_shape"])
    model = kind(**parameters)
    model._model = core
    model._X_fit = None
    model.n_features_in_ = told["input"]["n_features"]
    names = told["input"]["feature_names"]
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    if isinstance(model, LSSVMClassifier):
        model.classes_ = class_array(outputs["names"], notes.get(_CLASSES_NOTE))
        if isinstance(model.class_weight, dict):
            # A file names classes by text; the labels may be numbers.
            labels = dict(zip(outputs["names"], model.classes_.tolist(), strict=True))
            named = model.class_weight.items()
            model.class_weight = {labels.get(name, name): weight for name, weight in named}
    else:
        # A single output may still have been a column; the program knows no difference.
        one = len(outputs["names"]) == 1
        model._one_column = one and notes.get(_DIMENSIONS_NOTE, "1") == "1"
    weights = core.weights
    model.support_ = np.arange(len(weights))
    model._take_over(weights, core.bias)
    summary = told["summary"]
    model.n_iter_ = max(int(summary["iterations"]), 1)
    model.residual_ = summary["relative_residual"]
    model.history_ = _history([])
    return model


def _parameters(config: dict[str, Any], kind: type) -> dict[str, Any]:
    """Settings of the program as parameters of an estimator."""
    image = config.get("image-shape")
    if image is not None:
        image = (image["channels"], image["height"], image["width"])
    parameters = {
        "C": config["c"],
        "kernel": config["kernel"],
        "degree": config["degree"],
        "gamma": config["gamma"],
        "coef0": config["coef0"],
        "method": config["method"],
        "block_size": config["block-size"],
        "n_centers": config.get("centers"),
        "select": config.get("select"),
        "tol": config["tolerance"],
        "max_iter": config["iterations"],
        "time_limit": config.get("time"),
        "preprocess": None if config["preprocess"] == "none" else config["preprocess"],
        "image_shape": image,
        "augment": config.get("augment"),
        "n_averages": config["averages"],
        "memory": config.get("memory"),
        "precision": config["precision"],
        "random_state": config["seed"],
    }
    if kind is LSSVMClassifier:
        parameters["class_weight"] = config.get("class-weight")
    return parameters
