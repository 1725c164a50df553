"""The fields of sampling that the engine has: made from src/config/sampling_fields.cpp.

CONTRIBUTING.md says how; do not edit.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class SamplingFields:
    """Names and defaults, in vLLM's order."""

    # Choices for each prompt.
    n: int = 1
    # Taken from logits of tokens that the output has, once each.
    presence_penalty: float = 0.0
    # Taken from logits of tokens that the output has, for each use.
    frequency_penalty: float = 0.0
    # Divides positive logits of tokens of prompt and output; 1: off.
    repetition_penalty: float = 1.0
    # Divides the logits; 0: always the likeliest token.
    temperature: float = 1.0
    # Sample from the likeliest tokens of this total probability.
    top_p: float = 1.0
    # Sample from so many likeliest tokens; 0 or -1: all.
    top_k: int = 0
    # Least share of the likeliest token's probability.
    min_p: float = 0.0
    # Of the noise; none: drawn from the engine's seed.
    seed: int | None = None
    # Strings that end the text.
    stop: str | list[str] | None = None
    # Token ids that end the text.
    stop_token_ids: list[int] | None = None
    # Go on after the model's end token.
    ignore_eos: bool = False
    # Most output tokens.
    max_tokens: int | None = 16
    # No stop before so many output tokens.
    min_tokens: int = 0
    # Log-probabilities of each token and of so many likeliest ones; -1: all.
    logprobs: int | None = None
    # The same for the tokens of the prompt.
    prompt_logprobs: int | None = None
    # Make text of the tokens.
    detokenize: bool = True
    # Leave special tokens out of the text.
    skip_special_tokens: bool = True
    # Spaces around kept special tokens.
    spaces_between_special_tokens: bool = True
    # Keep the stop string in the text.
    include_stop_str_in_output: bool = False
    # Added to logits by token id: {"42": -100}.
    logit_bias: dict[int, float] | None = None
    # The only token ids that can be sampled.
    allowed_token_ids: list[int] | None = None
    # Texts that never appear.
    bad_words: list[str] | None = None
