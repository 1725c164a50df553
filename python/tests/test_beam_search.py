"""LLM.beam_search: what its beams are worth, and which of them are the best."""

from __future__ import annotations

import itertools

import pytest
from conftest import PROMPTS

from foretoken import LLM, BeamSearchParams, BeamSearchSequence, SamplingParams

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
