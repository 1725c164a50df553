"""Beam search over LLM.generate: the likeliest continuations, a token at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from foretoken._progress import Progress
from foretoken.inputs import Prompt
from foretoken.lora_request import LoRARequest
from foretoken.outputs import Logprob, RequestOutput
from foretoken.sampling_params import BeamSearchParams, SamplingParams

if TYPE_CHECKING:
    from foretoken.llm import LLM


@dataclass
class BeamSearchSequence:
    """A beam: the tokens of prompt and continuation, and what they are worth."""

    tokens: list[int]  # an end token only with include_stop_str_in_output
    logprobs: list[dict[int, Logprob]] = field(default_factory=list)
    lora_request: LoRARequest | None = None
    cum_logprob: float = 0.0
    text: str | None = None  # of all tokens, without special ones
    finish_reason: str | None = None  # stop or length
    stop_reason: int | str | None = None

    def score(self, length_penalty: float) -> float:
        """The sum of log-probabilities over the length, an end token left out, to that power."""
        has_end = self.finish_reason == "stop" and self.tokens[-1] == self.stop_reason
        length = float(max(len(self.tokens) - has_end, 1))
        return self.cum_logprob / math.pow(length, length_penalty)


@dataclass
class BeamSearchOutput:
    """The best beams of a prompt, the best one first."""

    sequences: list[BeamSearchSequence]


class _Search:
    """The beams of one prompt; end tokens stay in them until the result."""

    def __init__(
        self,
        prompt: list[int],
        lora: LoRARequest | None,
        eos: int | None,
        max_length: int,
        cache_salt: str = "",
    ) -> None:
        self.beams = [BeamSearchSequence(prompt, lora_request=lora)]
        self._completed: list[BeamSearchSequence] = []
        self._eos = eos
        self._max_length = max_length  # of prompt and continuation
        self._cache_salt = cache_salt

    def prompts(self) -> list[dict[str, Any]]:
        """Of the next step, in the order of the beams."""
        return [
            {"prompt_token_ids": beam.tokens, "cache_salt": self._cache_salt}
            for beam in self.beams
        ]

    def advance(self, outputs: Sequence[RequestOutput], params: BeamSearchParams) -> None:
        """Each beam with each of its candidates; the best go on."""
        candidates: list[BeamSearchSequence] = []
        for beam, output in zip(self.beams, outputs):
            choice = output.outputs[0]
            if choice.error is not None:
                raise RuntimeError(choice.error)
            for row in choice.logprobs or []:
                candidates += [self._extended(beam, row, token, params) for token in row]
        ended = [one for one in candidates if one.finish_reason is not None]
        self._completed += ended
        going = [one for one in candidates if one.finish_reason is None]
        self.beams = self._best(going, params)

    def _extended(
        self,
        beam: BeamSearchSequence,
        row: dict[int, Logprob],
        token: int,
        params: BeamSearchParams,
    ) -> BeamSearchSequence:
        ends = token == self._eos and not params.ignore_eos
        is_full = len(beam.tokens) + 1 >= self._max_length
        return BeamSearchSequence(
            beam.tokens + [token],
            [*beam.logprobs, row],
            beam.lora_request,
            beam.cum_logprob + row[token].logprob,
            finish_reason="stop" if ends else "length" if is_full else None,
            stop_reason=token if ends else None,
        )

    @staticmethod
    def _best(
        beams: list[BeamSearchSequence], params: BeamSearchParams
    ) -> list[BeamSearchSequence]:
        beams.sort(key=lambda beam: beam.score(params.length_penalty), reverse=True)
        return beams[: params.beam_width]

    def result(self, params: BeamSearchParams) -> list[BeamSearchSequence]:
        for beam in self.beams:
            beam.finish_reason = "length"
        best = self._best(self._completed + self.beams, params)
        for beam in best:
            if beam.finish_reason == "stop" and not params.include_stop_str_in_output:
                beam.tokens = beam.tokens[:-1]
        return best


def beam_search(
    llm: LLM,
    prompts: Sequence[Prompt],
    params: BeamSearchParams,
    adapters: Sequence[LoRARequest | None],
    use_tqdm: Any,
) -> list[BeamSearchOutput]:
    """All prompts together, a token of each of their beams a step."""
    tokenizer = llm.get_tokenizer()
    eos = tokenizer.eos_token_id
    searches = []
    for prompt, adapter in zip(prompts, adapters):
        ids = prompt.token_ids
        if ids is None:
            ids = tokenizer.encode(prompt.text or "")
        max_length = llm.model_config.max_model_len
        searches.append(_Search(ids, adapter, eos, max_length, prompt.cache_salt))
    step = SamplingParams(
        max_tokens=1,
        temperature=params.temperature,
        logprobs=2 * params.beam_width,
        ignore_eos=True,
        detokenize=False,
    )
    with Progress(use_tqdm, params.max_tokens) as progress:
        for _ in range(params.max_tokens):
            beams = [beam for search in searches for beam in search.beams]
            if not beams:
                break
            outputs = llm.generate(
                [one for search in searches for one in search.prompts()],
                step,
                use_tqdm=False,
                lora_request=[beam.lora_request for beam in beams],
            )
            rest = iter(outputs)
            for search in searches:
                search.advance([next(rest) for _ in search.beams], params)
            progress.step()
    found = [search.result(params) for search in searches]
    for beam in (beam for beams in found for beam in beams):
        beam.text = tokenizer.decode(beam.tokens, skip_special_tokens=True)
    return [BeamSearchOutput(beams) for beams in found]
