"""The Rust core."""

from typing import Any, final

import numpy as np
from typing_extensions import Self

__version__: str

@final
class Model:
    @classmethod
    def load(cls, path: str) -> Self: ...
    @classmethod
    def from_bytes(cls, bytes: bytes) -> Self: ...
    def to_bytes(self) -> bytes: ...
    def save(self, path: str) -> None: ...
    def decision_function(self, x: np.ndarray, threads: int) -> np.ndarray: ...
    def write_report(
        self,
        x: np.ndarray,
        target: Any,
        path: str,
        name: str,
        threads: int,
        report: Report | None = None,
        image: list[int] | None = None,
    ) -> None: ...
    def probabilities(self, scores: np.ndarray) -> np.ndarray: ...
    @property
    def calibrated(self) -> bool: ...
    def thresholds(self, coverage: float) -> list[float]: ...
    @property
    def weights(self) -> np.ndarray: ...
    @property
    def bias(self) -> np.ndarray: ...
    @property
    def support(self) -> np.ndarray: ...
    @property
    def precision(self) -> str: ...
    @property
    def description(self) -> str: ...

@final
class Pipeline:
    @classmethod
    def fit(cls, steps: str, x: np.ndarray, image: list[int] | None = None) -> Self: ...
    @classmethod
    def from_json(cls, json: str) -> Self: ...
    def json(self) -> str: ...
    def transform(self, x: np.ndarray, precision: str) -> np.ndarray: ...
    @property
    def n_features_out(self) -> int: ...

@final
class Report:
    def json(self) -> str: ...
    @property
    def leave_one_out(self) -> np.ndarray | None: ...
    @property
    def conformal(self) -> str | None: ...
    @property
    def support(self) -> list[int]: ...

def fit(
    x: np.ndarray,
    target: Any,
    config: str,
    *,
    rows: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    feature_names: list[str] | None = None,
    validation: Any = None,
    notes: dict[str, str] | None = None,
    keep: tuple[str, float] | None = None,
    start: Model | None = None,
    progress: Any = None,
) -> tuple[Model, Report]: ...
def checkpoint_settings(folder: str) -> str | None: ...
def fit_kernel_matrix(
    omega: np.ndarray,
    target: Any,
    config: str,
    *,
    weights: np.ndarray | None = None,
    progress: Any = None,
) -> tuple[np.ndarray, np.ndarray, Report]: ...
def tune(
    x: np.ndarray,
    target: Any,
    base: str,
    *,
    space: str | None = None,
    weights: np.ndarray | None = None,
    seconds: float | None = None,
    rows: int | None = None,
    one_standard_error: bool = False,
    exhaustive: bool = False,
    progress: Any = None,
) -> str: ...
def c_path(
    x: np.ndarray,
    target: Any,
    config: str,
    values: list[float],
    *,
    weights: np.ndarray | None = None,
) -> str: ...
def chosen_method(config: str, rows: int, features: int, outputs: int) -> str: ...
def load_dataset(
    path: str,
    *,
    task: str,
    precision: str,
    format: str | None = None,
    label: list[str | int] | None = None,
    weights: str | int | None = None,
    max_rows: int | None = None,
) -> list[dict[str, Any]]: ...
def softmax(scores: np.ndarray) -> np.ndarray: ...
def thresholds(conformal: str, coverage: float) -> list[float]: ...
