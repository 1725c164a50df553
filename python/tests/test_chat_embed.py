"""Conversations, the tokenizer, embeddings."""

from __future__ import annotations

import math

import pytest
from conftest import PROMPTS

from foretoken import LLM, PoolingParams, SamplingParams

GREEDY = SamplingParams(temperature=0, max_tokens=8)
TALK = [{"role": "user", "content": "What is 3 + 4?"}]
TEMPLATE = (
    "{% for m in messages %}{{ m.content }};{% endfor %}"
    "{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}{{ tone }}"
)


def test_chat_is_the_rendered_prompt(llm: LLM) -> None:
    tokenizer = llm.get_tokenizer()
    text = tokenizer.apply_chat_template(TALK, tokenize=False, add_generation_prompt=True)
    assert text == "<|user|>What is 3 + 4?<|end|><|assistant|>"
    ids = tokenizer.apply_chat_template(TALK, add_generation_prompt=True)
    answer = llm.chat(TALK, GREEDY, use_tqdm=False)[0]
    assert answer.prompt == text and answer.prompt_token_ids == ids
    again = llm.generate({"prompt_token_ids": ids}, GREEDY, use_tqdm=False)[0]
    assert answer.outputs[0].token_ids == again.outputs[0].token_ids
    both = llm.chat([TALK, TALK], GREEDY, use_tqdm=False)
    assert [o.outputs[0].token_ids for o in both] == [answer.outputs[0].token_ids] * 2


def test_chat_arguments_reach_the_template(llm: LLM) -> None:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    answer = llm.chat(
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        GREEDY,
        use_tqdm=False,
        chat_template=TEMPLATE,
        tools=tools,
        chat_template_kwargs={"tone": "!"},
    )[0]
    assert answer.prompt == "Hi;[weather]!"
    go_on = [*TALK, {"role": "assistant", "content": "The answer"}]
    answer = llm.chat(
        go_on, GREEDY, use_tqdm=False, add_generation_prompt=False, continue_final_message=True
    )[0]
    assert (answer.prompt or "").endswith("<|assistant|>The answer")


def test_chat_faults(llm: LLM) -> None:
    with pytest.raises(ValueError, match="add_generation_prompt"):
        llm.chat(TALK, GREEDY, continue_final_message=True)
    with pytest.raises(ValueError, match="at least one message"):
        llm.chat([], GREEDY)
    with pytest.raises(ValueError, match="image_url"):
        llm.chat([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])
    with pytest.raises(ValueError, match="role"):
        llm.chat([{"content": "Hi"}], GREEDY)


def test_tokenizer(llm: LLM) -> None:
    tokenizer = llm.get_tokenizer()
    for text in [*PROMPTS, "Zoë – 東京 🙂", ""]:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.eos_token == "<|endoftext|>"
    assert tokenizer.encode("<|endoftext|>") == [tokenizer.eos_token_id]
    assert tokenizer.decode([0], skip_special_tokens=True) == ""
    assert tokenizer.decode(0) == "<|endoftext|>"
    assert len(tokenizer) == tokenizer.vocab_size == 3072
    assert tokenizer("a b")["input_ids"] == tokenizer.encode("a b")
    assert len(tokenizer(PROMPTS)["input_ids"]) == len(PROMPTS)


def test_embeddings(llm: LLM) -> None:
    outputs = llm.embed(PROMPTS, use_tqdm=False)
    for output in outputs:
        assert output.outputs.hidden_size == 256
        assert math.hypot(*output.outputs.embedding) == pytest.approx(1, abs=1e-5)
    mean = llm.embed(PROMPTS[0], pooling_params=PoolingParams("MEAN"), use_tqdm=False)[0]
    assert mean.outputs.embedding != outputs[0].outputs.embedding
    raw = llm.encode(PROMPTS[0], PoolingParams(normalize=False), use_tqdm=False)[0].outputs.data
    length = math.hypot(*raw)
    assert [x / length for x in raw] == pytest.approx(outputs[0].outputs.embedding, abs=1e-6)
    with pytest.raises(ValueError, match="'max' is not available"):
        llm.embed(PROMPTS[0], pooling_params=PoolingParams("MAX"), use_tqdm=False)


def test_scores(llm: LLM) -> None:
    same, other = llm.score(PROMPTS[0], [PROMPTS[0], PROMPTS[3]], use_tqdm=False)
    assert same.outputs.score == pytest.approx(1, abs=1e-5) and other.outputs.score < 0.999
    with pytest.raises(ValueError, match="score pairs 2 with 1"):
        llm.score(["a", "b"], ["c"])
