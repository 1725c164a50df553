"""Values as callers have them, brought into the forms that the engine reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def whole_text(text: str) -> str:
    """Halves of surrogate pairs, which no UTF-8 has, become U+FFFD; two that fit a character."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def listed(value: Any) -> Any:
    """Arrays and columns (numpy, torch, pandas) as lists; everything else as it is."""
    to_list = getattr(value, "tolist", None)
    return to_list() if callable(to_list) else value


def plain(value: Any) -> Any:
    """For json.dumps: numbers and arrays (numpy, torch) and sets become Python's, pydantic's classes
    their schema, and its objects (messages of OpenAI's package) their fields.

    Anything else is an error that names it.
    """
    schema = getattr(value, "model_json_schema", None)
    fields = getattr(value, "model_dump", None)
    if callable(fields) and not isinstance(value, type):
        return fields(exclude_none=True)
    if callable(schema):
        return schema()
    to_list = getattr(value, "tolist", None)
    if callable(to_list):
        return to_list()
    if isinstance(value, (set, frozenset, tuple)) or isinstance(value, Sequence):
        return list(value)
    raise ValueError(f"requests cannot hold {value!r}")


def to_json(value: Any) -> str:
    return whole_text(json.dumps(value, ensure_ascii=False, default=plain))
