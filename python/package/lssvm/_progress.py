"""A bar that shows how far a fit is: tqdm's if it is installed, else a plain line."""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

# Seconds before anything is shown: short fits stay silent.
_PATIENCE = 0.5


class Progress:
    """Called by the core with (kind, ...); see ``run.rs``."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._bar: Any = None
        self._total = 1
        self._iteration = 0
        self._text = ""
        self._plain_width = 0

    def __call__(self, kind: str, *told: Any) -> None:
        if kind == "begin":
            self._text, self._total = told
            self._text = self._text.split(" (")[0]
            return
        if kind == "tried":
            rows, error, done, self._total = told[:4]
            if self._bar:
                self._bar.total = self._total
            self._text = f"{rows} rows"
            self._show(float(done), f"best error {error:.4g}")
            return
        if kind == "iteration":
            self._iteration, residual, error = told
            notes = []
            if error is not None:
                notes.append(f"validation error {error:.4g}")
            if residual is not None:
                notes.append(f"residual {residual:.1e}")
            self._show(float(self._iteration), ", ".join(notes))
        elif kind == "step":
            self._show(self._iteration + told[0], "")

    def _show(self, done: float, notes: str) -> None:
        if time.monotonic() - self._start < _PATIENCE:
            return
        if self._bar is None:
            try:
                # Where a notebook has no widgets tqdm warns of it, and draws with text.
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    from tqdm.auto import tqdm
            except ImportError:
                self._bar = False
            else:
                form = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}{postfix}]"
                self._bar = tqdm(total=self._total, desc=self._text, bar_format=form)
        if self._bar:
            self._bar.n = min(done, self._total)
            if notes:
                self._bar.set_postfix_str(notes, refresh=False)
            self._bar.refresh()
            return
        seconds = time.monotonic() - self._start
        line = f"{self._text}: {100 * done / self._total:3.0f} %, {seconds:.0f} s {notes}"
        print("\r" + line.ljust(self._plain_width), end="", file=sys.stderr, flush=True)
        self._plain_width = len(line)

    def close(self) -> None:
        """Leaves the bar as it is; what comes next begins a line."""
        if self._bar:
            self._bar.close()
        elif self._plain_width:
            print(file=sys.stderr)
