"""The progress bar of LLM, where tqdm is installed."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from foretoken._tracker import RequestTracker

_tqdm: Callable[..., Any] | None
try:
    _tqdm = importlib.import_module("tqdm.auto").tqdm
except ImportError:
    _tqdm = None


class Progress:
    """A bar of finished requests, with the token rates beside; or nothing."""

    def __init__(self, use_tqdm: bool | Callable[..., Any], total: int) -> None:
        make = use_tqdm if callable(use_tqdm) else _tqdm if use_tqdm else None
        self._bar: Any = None
        if make is not None:
            self._bar = make(total=total, desc="Processed prompts", dynamic_ncols=True)
        self._begin = time.monotonic()
        self._input = self._output = 0

    def note(self, tracker: RequestTracker) -> None:
        """One request is finished."""
        if self._bar is None:
            return
        num_input, num_output = tracker.counts()
        self._input += num_input
        self._output += num_output
        seconds = max(time.monotonic() - self._begin, 1e-9)
        self._bar.set_postfix_str(
            f"input: {self._input / seconds:.2f} toks/s, "
            f"output: {self._output / seconds:.2f} toks/s",
            refresh=False,
        )
        self._bar.update(1)

    def step(self) -> None:
        """One of the steps that the bar counts is done."""
        if self._bar is not None:
            self._bar.update(1)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
