"""LLM inference with speculative decoding; `from foretoken import ...` replaces vLLM's."""

from typing import TYPE_CHECKING

from foretoken._core import version as __version__
from foretoken._other_names import install as _install_other_names
from foretoken._tracker import RequestError
from foretoken.async_llm import AsyncLLM, AsyncLLMEngine
from foretoken.beam_search import BeamSearchOutput, BeamSearchSequence
from foretoken.engine_args import AsyncEngineArgs, EngineArgs
from foretoken.inputs import PromptType, TextPrompt, TokensPrompt
from foretoken.llm import LLM
from foretoken.llm_engine import LLMEngine
from foretoken.lora_request import LoRARequest
from foretoken.outputs import (
    CompletionOutput,
    EmbeddingOutput,
    EmbeddingRequestOutput,
    Logprob,
    PoolingOutput,
    PoolingRequestOutput,
    RequestOutput,
    ScoringOutput,
    ScoringRequestOutput,
)
from foretoken.pooling_params import PoolingParams
from foretoken.sampling_params import (
    BeamSearchParams,
    GuidedDecodingParams,
    RequestOutputKind,
    SamplingParams,
    SpeculativeParams,
    StructuredOutputsParams,
)

__all__ = [
    "LLM",
    "AsyncEngineArgs",
    "AsyncLLM",
    "AsyncLLMEngine",
    "BeamSearchOutput",
    "BeamSearchParams",
    "BeamSearchSequence",
    "CompletionOutput",
    "EmbeddingOutput",
    "EmbeddingRequestOutput",
    "EngineArgs",
    "GuidedDecodingParams",
    "LLMEngine",
    "LoRARequest",
    "Logprob",
    "PoolingOutput",
    "PoolingParams",
    "PoolingRequestOutput",
    "PromptType",
    "RequestError",
    "RequestOutput",
    "RequestOutputKind",
    "SamplingParams",
    "ScoringOutput",
    "ScoringRequestOutput",
    "SpeculativeParams",
    "StructuredOutputsParams",
    "TextPrompt",
    "TokensPrompt",
    "__version__",
]

_install_other_names()
if not TYPE_CHECKING:
    from foretoken._other_names import name_of_package as __getattr__  # noqa: F401
