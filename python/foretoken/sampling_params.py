"""How tokens are chosen: names and defaults of vLLM's SamplingParams."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from numbers import Real
from typing import Any

from foretoken import _core
from foretoken._sampling_fields import SamplingFields
from foretoken._values import listed, to_json, whole_text

# `processor(output_ids, logits)` or `processor(prompt_ids, output_ids, logits)`: changes the logits
# (numpy.ndarray of float32, a memoryview without numpy) in place, or returns new ones. It must be a
# pure function of its arguments.
LogitsProcessor = Callable[..., Any]


class RequestOutputKind(Enum):
    """What each output of a stream holds."""

    CUMULATIVE = 0  # everything so far
    DELTA = 1  # what is new
    FINAL_ONLY = 2  # one output, at the end


@dataclass
class StructuredOutputsParams:
    """The form that the output must have; exactly one of the first six says it."""

    json: str | dict[str, Any] | None = None  # a schema, or a class of pydantic's models
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    structural_tag: str | dict[str, Any] | None = None
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: str | None = None
    strict_schemas: bool | None = None  # true: refuse a schema that cannot be enforced entirely
    disable_fallback: bool = field(default=False, repr=False)  # has no effect: one backend
    backend: str | None = field(default=None, repr=False)  # likewise

    def __post_init__(self) -> None:
        forms = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
        given = [name for name in forms if getattr(self, name) is not None]
        if len(given) != 1:
            found = f"not {' and '.join(given)} together" if given else "none is given"
            raise ValueError(f"structured outputs need one of {', '.join(forms)}; {found}")

    @classmethod
    def from_optional(cls, **given: Any) -> StructuredOutputsParams:
        """As the constructor, but None stands for each field's default."""
        return cls(**{name: value for name, value in given.items() if value is not None})

    def _fields(self) -> dict[str, Any]:
        passed_over = ("disable_fallback", "backend")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in passed_over}


GuidedDecodingParams = StructuredOutputsParams


@dataclass
class SpeculativeParams:
    """Speculation of one request; unset fields take the engine's settings."""

    enabled: bool | None = None
    num_speculative_tokens: int | None = None
    method: str | None = None  # one of the engine's drafters


# Fields that this engine does not act on, and the values that ask for nothing.
_NOT_BUILT: dict[str, tuple[Any, ...]] = {
    "flat_logprobs": (False,),
    "logprob_token_ids": (None,),
    "prompt_logprob_token_ids": (None,),
    "prompt_logprob_start": (None,),
    "repetition_detection": (None,),
    "thinking_token_budget": (None, -1),
    "trace_decode_token_ids": (None,),
    "routed_experts_prompt_start": (0,),
    "best_of": (None,),
    "stream_interval": (None, 1),
}


@dataclass
class SamplingParams(SamplingFields):
    """How the tokens of a request are chosen and when they end: the fields of SamplingFields first.

    Values that no model allows raise ValueError here, the others when the request is made.
    """

    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE
    skip_clone: bool = False  # has no effect: parameters are never changed here
    structured_outputs: StructuredOutputsParams | None = None
    logits_processors: list[LogitsProcessor] | None = None
    truncate_prompt_tokens: int | None = None
    skip_reading_prefix_cache: bool | None = None
    extra_args: dict[str, Any] | None = None
    speculative: SpeculativeParams | None = None
    guided_decoding: StructuredOutputsParams | None = field(default=None, repr=False)
    flat_logprobs: bool = field(default=False, repr=False)
    logprob_token_ids: list[int] | None = field(default=None, repr=False)
    prompt_logprob_token_ids: list[int] | None = field(default=None, repr=False)
    prompt_logprob_start: int | None = field(default=None, repr=False)
    repetition_detection: Any = field(default=None, repr=False)
    thinking_token_budget: int | None = field(default=None, repr=False)
    trace_decode_token_ids: list[int] | None = field(default=None, repr=False)
    routed_experts_prompt_start: int = field(default=0, repr=False)
    best_of: int | None = field(default=None, repr=False)
    use_beam_search: bool = field(default=False, repr=False)
    stream_interval: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.guided_decoding is not None:
            if self.structured_outputs is not None:
                raise ValueError(
                    "guided_decoding is the old name of structured_outputs; give one of them"
                )
            self.structured_outputs, self.guided_decoding = self.guided_decoding, None
        if isinstance(self.structured_outputs, Mapping):
            self.structured_outputs = StructuredOutputsParams(**self.structured_outputs)
        for name in ("stop", "stop_token_ids", "allowed_token_ids", "bad_words"):
            setattr(self, name, listed(getattr(self, name)))
        if isinstance(self.stop, str):
            self.stop = [self.stop]
        if isinstance(self.stop, (list, tuple, set, frozenset)):
            self.stop = [whole_text(one) if isinstance(one, str) else one for one in self.stop]
        self.verify()

    def verify(self) -> None:
        """Raises ValueError (NotImplementedError for what is not built) at the first fault."""
        if self.use_beam_search:
            raise NotImplementedError("use_beam_search is not built here; call LLM.beam_search")
        for name, harmless in _NOT_BUILT.items():
            if getattr(self, name) not in harmless:
                raise NotImplementedError(f"{name} is not built here; leave it out")
        for processor in self.logits_processors or ():
            if not callable(processor):
                raise ValueError(f"logits_processors must be callables, not {processor!r}")
        _core.check_request(to_json(self._fields()))

    @classmethod
    def from_optional(cls, **given: Any) -> SamplingParams:
        """As the constructor, but None stands for each field's default."""
        kept = {name: value for name, value in given.items() if value is not None}
        if given.get("max_tokens", 0) is None:
            kept["max_tokens"] = None
        return cls(**kept)

    def clone(self) -> SamplingParams:
        """A copy that shares nothing but logits processors."""
        twin = copy.copy(self)
        for one in fields(SamplingFields):
            setattr(twin, one.name, copy.copy(getattr(self, one.name)))
        twin.structured_outputs = copy.deepcopy(self.structured_outputs)
        return twin

    def _fields(self) -> dict[str, Any]:
        """The fields that the engine reads, ready for JSON."""
        sent = {f.name: getattr(self, f.name) for f in fields(SamplingFields)}
        sent["truncate_prompt_tokens"] = self.truncate_prompt_tokens
        for name, value in sent.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name} is {value}; it must be a finite number")
        if self.logit_bias is not None:
            sent["logit_bias"] = {str(t): _finite(t, bias) for t, bias in self.logit_bias.items()}
        if isinstance(self.stop, str):
            sent["stop"] = [self.stop]
        if self.structured_outputs is not None:
            sent["structured_outputs"] = self.structured_outputs._fields()
        if self.speculative is not None:
            chosen = self.speculative
            sent["speculative"] = {
                f.name: getattr(chosen, f.name)
                for f in fields(chosen)
                if getattr(chosen, f.name) is not None
            }
        return {name: value for name, value in sent.items() if value is not None}


@dataclass
class BeamSearchParams:
    """What LLM.beam_search looks for; a beam has 2 * beam_width candidates for its next token."""

    beam_width: int
    max_tokens: int
    ignore_eos: bool = False
    temperature: float = 0.0  # above 0 a drawn token is a candidate, too
    length_penalty: float = 1.0  # scores are divided by the length to this power
    include_stop_str_in_output: bool = False  # keep the end token

    def __post_init__(self) -> None:
        for name in ("beam_width", "max_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")


def _finite(token: int, bias: Any) -> Any:
    """A bias of a token; infinite ones are the greatest that there are."""
    if not isinstance(bias, Real):
        return bias
    if math.isnan(bias):
        raise ValueError(f"logit_bias of token {token} is {bias}; it must be a number")
    return max(-100.0, min(100.0, float(bias)))
