"""LLM.beam_search: what its beams are worth, and which of them are the best."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import PROMPTS

from foretoken import LLM, BeamSearchParams, BeamSearchSequence, SamplingParams
from foretoken.beam_search import beam_search
from foretoken.inputs import Prompt
from foretoken.outputs import Logprob

PROMPT = "Once upon a time"


def worth(llm: LLM, tokens: list[int], num_prompt: int) -> float:
    """The sum of log-probabilities of what follows the prompt, from one pass over all of it."""
    (output,) = llm.generate(
        [tokens], SamplingParams(max_tokens=1, prompt_logprobs=0), use_tqdm=False
    )
    rows = output.prompt_logprobs or []
    pairs = list(zip(tokens, rows))[num_prompt:]
    return sum(row[token].logprob for token, row in pairs if row is not None)


def test_one_beam_is_the_likeliest_token_each_time(llm: LLM) -> None:
    params = BeamSearchParams(beam_width=1, max_tokens=8, ignore_eos=True)
    greedy = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True)
    found = llm.beam_search(PROMPTS[:3], params)
    wanted = llm.generate(PROMPTS[:3], greedy, use_tqdm=False)
    for beams, output in zip(found, wanted):
        (beam,) = beams.sequences
        assert beam.tokens == output.prompt_token_ids + output.outputs[0].token_ids
        assert beam.finish_reason == "length"


def test_beams_have_their_log_probabilities(llm: LLM) -> None:
    params = BeamSearchParams(beam_width=4, max_tokens=6, ignore_eos=True)
    (found,) = llm.beam_search(PROMPT, params)
    num_prompt = len(llm.get_tokenizer().encode(PROMPT))
    assert len({tuple(beam.tokens) for beam in found.sequences}) == 4
    for beam in found.sequences:
        assert len(beam.tokens) == num_prompt + 6 and len(beam.logprobs) == 6
        assert beam.cum_logprob == pytest.approx(worth(llm, beam.tokens, num_prompt), abs=0.05)
        assert (beam.text or "").startswith(PROMPT)
    scores = [beam.cum_logprob for beam in found.sequences]
    assert scores == sorted(scores, reverse=True)


def test_a_wide_beam_finds_the_best_pair(llm: LLM) -> None:
    """Two tokens: all pairs whose first is among the candidates are compared."""
    params = BeamSearchParams(beam_width=10, max_tokens=2, ignore_eos=True)
    (found,) = llm.beam_search(PROMPT, params)
    best = found.sequences[0]
    step = SamplingParams(temperature=0, max_tokens=1, logprobs=10, ignore_eos=True)
    (first,) = llm.generate(PROMPT, step, use_tqdm=False)
    heads = (first.outputs[0].logprobs or [{}])[0]
    prompts = [first.prompt_token_ids + [token] for token in heads]
    seconds = llm.generate(prompts, step, use_tqdm=False)
    sums = {
        (head, tail): heads[head].logprob + entry.logprob
        for head, output in zip(heads, seconds)
        for tail, entry in (output.outputs[0].logprobs or [{}])[0].items()
    }
    assert tuple(best.tokens[-2:]) == max(sums, key=lambda pair: sums[pair])


def test_ends_of_texts(llm: LLM) -> None:
    eos = llm.get_tokenizer().eos_token_id
    assert eos is not None
    prompt = "The end." + 3 * "\n"
    for keep in (False, True):
        params = BeamSearchParams(5, 12, include_stop_str_in_output=keep, length_penalty=0)
        (found,) = llm.beam_search(prompt, params)
        ended = [beam for beam in found.sequences if beam.finish_reason == "stop"]
        for beam in ended:
            assert beam.stop_reason == eos and (beam.tokens[-1] == eos) == keep
    for tokens, reason, stop in (([1, 2, 9], "stop", 9), ([1, 2], "stop", 9), ([1, 2], None, None)):
        beam = BeamSearchSequence(
            tokens, cum_logprob=-4, finish_reason=reason, stop_reason=stop
        )
        assert beam.score(1) == -2


class Replay:
    """An LLM whose every step has the same log-probabilities."""

    def __init__(self, row: dict[int, float], max_model_len: int, eos: int) -> None:
        self.row = {token: Logprob(logprob, None, "") for token, logprob in row.items()}
        self.model_config = SimpleNamespace(max_model_len=max_model_len)
        self.eos_token_id = eos
        self.salts: set[str] = set()

    def get_tokenizer(self) -> Replay:
        return self

    def decode(self, tokens: list[int], skip_special_tokens: bool) -> str:
        return " ".join(str(token) for token in tokens)

    def generate(self, prompts: list[dict[str, Any]], *_: object, **__: object) -> list[Any]:
        longest = max(len(one["prompt_token_ids"]) for one in prompts)
        assert longest < self.model_config.max_model_len
        self.salts |= {one["cache_salt"] for one in prompts}
        choice = SimpleNamespace(error=None, logprobs=[self.row])
        return [SimpleNamespace(outputs=[choice]) for _ in prompts]


def replayed(llm: Replay, prompt: Prompt, params: BeamSearchParams) -> list[BeamSearchSequence]:
    return beam_search(llm, [prompt], params, [None], False)[0].sequences  # type: ignore[arg-type]


def test_an_end_token_that_is_not_shown_counts_once() -> None:
    """Also where the prompt ends with one, or is nothing else."""
    for prompt in ([9], [1, 9]):
        for keep in (False, True):
            params = BeamSearchParams(2, 1, include_stop_str_in_output=keep)
            # Divided by the length without the end: (-2 / n) against (-2.2 / (n + 1)).
            best, other = replayed(Replay({9: -2.0, 3: -2.2}, 64, 9), Prompt(None, prompt), params)
            assert best.tokens == prompt + [3] and best.finish_reason == "length"
            assert other.tokens == prompt + [9] * keep and other.stop_reason == 9
    # The end without a length of its own: -2 / 2 is better than -3.1 / 3, which -2 / 1 is not.
    params = BeamSearchParams(2, 1)
    found = replayed(Replay({9: -2.0, 3: -3.1}, 64, 9), Prompt(None, [1, 9]), params)
    assert [beam.finish_reason for beam in found] == ["stop", "length"]


def test_beams_end_with_the_context_and_keep_their_salt() -> None:
    llm = Replay({3: -1.0, 4: -2.0}, 4, 9)
    found = replayed(llm, Prompt(None, [1, 2], "mine"), BeamSearchParams(2, 8))
    assert [beam.tokens for beam in found] == [[1, 2, 3, 3], [1, 2, 3, 4]]
    assert {beam.finish_reason for beam in found} == {"length"} and llm.salts == {"mine"}


def test_prompts_are_searched_by_themselves(llm: LLM) -> None:
    params = BeamSearchParams(beam_width=3, max_tokens=4)
    together = llm.beam_search(PROMPTS[:3], params)
    limited = llm.beam_search(PROMPTS[:3], params, concurrency_limit=1)
    alone = list(itertools.chain(*(llm.beam_search(prompt, params) for prompt in PROMPTS[:3])))
    tokens = [[beam.tokens for beam in found.sequences] for found in together]
    assert tokens == [[beam.tokens for beam in found.sequences] for found in limited]
    assert tokens == [[beam.tokens for beam in found.sequences] for found in alone]


def test_faults(llm: LLM) -> None:
    with pytest.raises(ValueError, match="beam_width is 0"):
        BeamSearchParams(beam_width=0, max_tokens=3)
    with pytest.raises(ValueError, match="max_logprobs"):
        llm.beam_search(PROMPT, BeamSearchParams(beam_width=11, max_tokens=3))
    with pytest.raises(NotImplementedError, match="LLM.beam_search"):
        SamplingParams(use_beam_search=True)
