"""Files as arrays."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from . import _lssvm


def load_dataset(
    path: str | os.PathLike[str],
    *,
    task: str = "auto",
    label: str | int | list[str | int] | None = None,
    weights: str | int | None = None,
    format: str | None = None,
    max_rows: int | None = None,
    dtype: Any = np.float32,
) -> Bunch:
    """Read a data file or folder.

    Reads IDX (MNIST), CIFAR-10's binary version, LIBSVM text, CSV and its relatives,
    NPY and NPZ, all also gzipped; the format is recognised from the content. A folder
    holds MNIST's or CIFAR-10's files, or ``train.*`` and ``test.*``.

    Parameters
    ----------
    path : str or path-like
        The file or folder.
    task : {"auto", "classification", "regression"}, default="auto"
        What the labels mean. Text, and whole numbers with at most 100 distinct values,
        are classes unless told otherwise.
    label : str, int or list of them, default=None
        Label column of a table, by name or number (1 is the first, -1 the last).
        Several are the targets of a multi-output regression.
    weights : str or int, default=None
        Column of a table with the weights of the rows.
    format : {"idx", "cifar10", "libsvm", "csv", "npy", "npz", "parquet", "arrow", "lssvm"}, default=None
        The format, if it is not recognised.
    max_rows : int, default=None
        Read the first so many rows only, of each part.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Number type of the features.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``data`` and ``target`` (None if there are no labels), ``feature_names``,
        ``target_names`` (names of classes, or of label columns), ``image_shape``
        (channels, height, width) or None, ``sample_weight`` or None; and ``test``,
        another Bunch, if there is a test part.

    Examples
    --------
    >>> import os, tempfile, lssvm
    >>> path = os.path.join(tempfile.mkdtemp(), "flowers.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("length,width,species\\n5.1,3.5,setosa\\n6.2,2.9,virginica\\n")
    >>> flowers = lssvm.load_dataset(path)
    >>> flowers.data.shape, flowers.target.tolist()
    ((2, 2), ['setosa', 'virginica'])
    """
    if not os.path.exists(path):
        raise FileNotFoundError(f"{os.fspath(path)}: no such file or folder; check the path")
    labels = None
    if label is not None:
        labels = label if isinstance(label, list) else [label]
    parts = _lssvm.load_dataset(
        os.fspath(path),
        task=task,
        precision=precision_of(np.dtype(dtype)),
        format=format,
        label=labels,
        weights=weights,
        max_rows=max_rows,
    )
    bunches = [_bunch(part) for part in parts]
    train = bunches[0]
    train.test = bunches[1] if len(bunches) > 1 else None
    return train


def precision_of(dtype: np.dtype[Any]) -> str:
    """The core's name of a number type.

    >>> precision_of(np.dtype("float32"))
    'f32'
    """
    names = {"float32": "f32", "float64": "f64"}
    if dtype.name not in names:
        raise ValueError(f"dtype = {dtype}: must be float32 or float64")
    return names[dtype.name]


def class_array(names: list[str], kind: str | None = None) -> np.ndarray:
    """Names of classes as what they stand for: whole numbers, numbers or text.

    >>> class_array(["-1", "1"])
    array([-1,  1])
    >>> class_array(["1", "2"], kind="str")
    array(['1', '2'], dtype='<U1')
    """
    if kind == "bool" or (kind is None and set(names) == {"False", "True"}):
        return np.array([name == "True" for name in names])
    for number in (int, float):
        if kind not in (None, number.__name__):
            continue
        try:
            return np.array([number(name) for name in names])
        except ValueError:
            pass
    return np.array(names)


def _bunch(part: dict[str, Any]) -> Bunch:
    target, target_names = None, part["target_columns"] or None
    if "codes" in part:
        classes = class_array(part["class_names"])
        target, target_names = classes[part["codes"]], part["class_names"]
    elif "values" in part:
        values = part["values"]
        target = values[:, 0] if values.shape[1] == 1 else values
    return Bunch(
        data=part["data"],
        target=target,
        target_names=target_names,
        feature_names=part["feature_names"],
        image_shape=part["image_shape"],
        sample_weight=part["weights"],
    )
