"""Forms of a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Union

from foretoken._values import listed, whole_text


class _PromptFields(TypedDict, total=False):
    cache_salt: str


class TextPrompt(_PromptFields):
    prompt: str


class _PromptText(_PromptFields, total=False):
    prompt: str


class TokensPrompt(_PromptText):
    prompt_token_ids: list[int]


PromptType = Union[str, "list[int]", TextPrompt, TokensPrompt]

_NOT_BUILT = (
    "multi_modal_data",
    "multi_modal_uuids",
    "mm_processor_kwargs",
    "prompt_embeds",
    "encoder_prompt",
    "decoder_prompt",
)


@dataclass
class Prompt:
    """A prompt taken apart: text, or token ids with the text that they may stand for."""

    text: str | None
    token_ids: list[int] | None
    cache_salt: str = ""


def _ids_of(value: object) -> list[int]:
    value = listed(value)
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise TypeError(f"prompt_token_ids must be a list of token ids, not {value!r}")
    for token in value:
        if isinstance(token, bool) or not hasattr(token, "__index__"):
            raise TypeError(f"prompt_token_ids must hold integers, not {token!r}")
        if not -(2**31) <= int(token) < 2**31:
            raise ValueError(f"prompt token id {token} is not in the vocabulary")
    return [int(token) for token in value]


def _parse_mapping(prompt: Mapping[str, Any]) -> Prompt:
    for name in _NOT_BUILT:
        if prompt.get(name):
            raise NotImplementedError(f"{name} of a prompt is not built; prompts are text or ids")
    text, ids = prompt.get("prompt"), prompt.get("prompt_token_ids")
    if text is None and ids is None:
        raise ValueError("a prompt given as a dict needs 'prompt' or 'prompt_token_ids'")
    if text is not None and not isinstance(text, str):
        raise TypeError(f"'prompt' must be text, not {text!r}")
    salt = prompt.get("cache_salt") or ""
    text = None if text is None else whole_text(text)
    return Prompt(text, None if ids is None else _ids_of(ids), salt)


def parse_prompt(prompt: object) -> Prompt:
    """Raises TypeError or ValueError that names what is wrong."""
    if isinstance(prompt, Prompt):
        return prompt
    if isinstance(prompt, str):
        return Prompt(whole_text(prompt), None)
    if isinstance(prompt, Mapping):
        return _parse_mapping(prompt)
    return Prompt(None, _ids_of(prompt))


def parse_prompts(prompts: object) -> list[Prompt]:
    """One prompt, or a sequence of prompts; a list of integers is one prompt of token ids."""
    if isinstance(prompts, (str, Mapping, Prompt)):
        return [parse_prompt(prompts)]
    prompts = listed(prompts)
    if not isinstance(prompts, Sequence):
        raise TypeError(f"prompts must be text, token ids, a dict, or a list of these: {prompts!r}")
    if prompts and hasattr(prompts[0], "__index__") and not isinstance(listed(prompts[0]), list):
        return [parse_prompt(prompts)]
    return [parse_prompt(prompt) for prompt in prompts]


def truncation_of(
    tokenization_kwargs: Mapping[str, Any] | None, mm_processor_kwargs: Mapping[str, Any] | None
) -> int | None:
    """Most tokens of a prompt, by vLLM's arguments of tokenizers; what else they say is refused."""
    if mm_processor_kwargs:
        raise NotImplementedError("mm_processor_kwargs is not built; prompts are text or ids")
    given = dict(tokenization_kwargs or {})
    most: int | None = given.pop("truncate_prompt_tokens", None)
    for name in given:
        raise NotImplementedError(
            f"{name!r} of tokenization_kwargs is not built; give prompts as token ids"
        )
    return most
