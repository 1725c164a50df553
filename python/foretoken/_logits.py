"""Logits processors of Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

try:
    import numpy
except ImportError:  # processors then get a memoryview
    numpy = None  # type: ignore[assignment]


def _takes_prompt(processor: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(processor).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return len(required) == 3


def wrap_processor(processor: Callable[..., Any]) -> Callable[[list[int], list[int], Any], None]:
    """As the engine calls it: the logits are a bytearray of floats, changed in place."""
    takes_prompt = _takes_prompt(processor)

    def call(prompt_ids: list[int], output_ids: list[int], row: bytearray) -> None:
        if numpy is not None:
            logits: Any = numpy.frombuffer(row, dtype=numpy.float32)
        else:
            logits = memoryview(row).cast("f")
        arguments = (prompt_ids, output_ids) if takes_prompt else (output_ids,)
        result = processor(*arguments, logits)
        if result is None or result is logits:
            return
        if len(result) != len(logits):
            raise ValueError(f"it returned {len(result)} logits; there are {len(logits)}")
        if numpy is not None:
            logits[:] = numpy.asarray(result, dtype=numpy.float32)
        else:
            for i, value in enumerate(result):
                logits[i] = float(value)

    return call
