"""Signals, forks, the end of the interpreter, logits processors."""

from __future__ import annotations

import gc
import importlib
import weakref
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import numpy
import pytest
from conftest import NGRAM, PROMPTS, SMALL

from foretoken import LLM, AsyncLLM, EngineArgs, LLMEngine, SamplingParams

Run = Callable[[str], "CompletedProcess[str]"]
MAKE = f"import foretoken as f\nllm = f.LLM(**{SMALL!r})\n"
LONG = "f.SamplingParams(max_tokens=480, ignore_eos=True)"


def expect(done: CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 0, done.stderr
    for word in words:
        assert word in done.stdout, (done.stdout, done.stderr)
    assert "Fatal Python error" not in done.stderr, done.stderr


def test_ctrl_c_ends_generate(run_python: Run) -> None:
    done = run_python(
        MAKE
        + """
import os, signal, threading, time
ended, calls = threading.Event(), []
def interrupt(output_ids, logits):
    calls.append(1)
    if len(calls) == 1:
        os.kill(os.getpid(), signal.SIGINT)
    # The engine goes on when the call has ended, or after a time that tells that it did not.
    if not ended.wait(300):
        calls.append("late")
params = f.SamplingParams(max_tokens=480, ignore_eos=True, logits_processors=[interrupt])
try:
    llm.generate(["a"] * 200, params, use_tqdm=False)
except KeyboardInterrupt:
    print("interrupted", "late" not in calls)
ended.set()
core = llm.llm_engine.client.core
while core.stats().num_free_blocks < core.stats().num_total_blocks: time.sleep(0.01)
print(len(llm.generate("a", use_tqdm=False)), "answer")
"""
    )
    expect(done, "interrupted True", "1 answer")


def test_the_interpreter_ends_with_requests_open(run_python: Run) -> None:
    done = run_python(
        MAKE
        + f"""
import threading, time
def sleep(output_ids, logits): time.sleep(0.001)
slow = f.SamplingParams(max_tokens=400, ignore_eos=True, logits_processors=[sleep])
engine = llm.llm_engine
for i in range(8):
    engine.add_request(str(i), "a", slow)
engine.step()
def work():
    try:
        llm.generate(["b"] * 50, slow, use_tqdm=False)
    except RuntimeError:
        pass
threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
print("ends")
"""
    )
    expect(done, "ends")


def test_nothing_is_said_when_the_interpreter_ends(run_python: Run) -> None:
    done = run_python(
        MAKE
        + """
def processor(output_ids, logits): logits[5] = -1.0
llm.generate("a", f.SamplingParams(logits_processors=[processor]), use_tqdm=False)
import weakref
watched = weakref.ref(processor)
del processor
llm.shutdown()
print("freed", watched() is None)
"""
    )
    expect(done, "freed True")
    assert done.stderr == ""


def test_the_interpreter_ends_while_a_stream_is_open(run_python: Run) -> None:
    done = run_python(
        f"""
import asyncio, foretoken as f
async def main():
    engine = f.AsyncLLM(**{SMALL!r})
    global stream
    stream = engine.generate("a", {LONG})
    await anext(stream)
    asyncio.create_task(anext(engine.generate("b", {LONG})))
    await asyncio.sleep(0.01)
    print("ends")
asyncio.run(main())
"""
    )
    expect(done, "ends")


def test_a_forked_child_is_told(run_python: Run) -> None:
    done = run_python(
        MAKE
        + """
import multiprocessing, os
child = os.fork()
if child == 0:
    try:
        llm.generate("a", use_tqdm=False)
    except RuntimeError as error:
        os._exit(7 if "after fork()" in str(error) else 1)
    os._exit(2)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
child = os.fork()
if child == 0:
    raise SystemExit(9)  # with atexit handlers and destructors
print("exit", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(len(llm.generate("a", use_tqdm=False)), "answer")
"""
    )
    expect(done, "child 7", "exit 9", "1 answer")


def test_dropping_an_engine_frees_it() -> None:
    made = LLM(**SMALL)
    watched = weakref.ref(made.llm_engine.client)
    made.llm_engine.add_request("open", PROMPTS[0], SamplingParams(max_tokens=400))
    del made
    gc.collect()
    assert watched() is None


def test_after_shutdown() -> None:
    made = LLM(**SMALL)
    made.shutdown()
    made.shutdown()
    with pytest.raises(RuntimeError, match="was shut down"):
        made.generate(PROMPTS[0])


def test_llm_engine_steps() -> None:
    engine = LLMEngine.from_engine_args(EngineArgs(speculative_config=NGRAM, **SMALL))
    for i, prompt in enumerate(PROMPTS):
        engine.add_request(str(i), prompt, SamplingParams(temperature=0, n=1, max_tokens=20))
    assert engine.get_num_unfinished_requests() == len(PROMPTS)
    finished: dict[str, Any] = {}
    engine.abort_request(["4"])
    while engine.has_unfinished_requests():
        for output in engine.step():
            if output.finished:
                finished[output.request_id] = output
    assert sorted(finished) == ["0", "1", "2", "3", "4"]
    assert finished["4"].outputs[0].finish_reason in ("abort", "length", "stop")
    assert engine.step() == []
    engine.shutdown()


@pytest.mark.parametrize("drafting", [False, True])
def test_logits_processors(llm: LLM, drafting_llm: LLM, drafting: bool) -> None:
    engine = drafting_llm if drafting else llm
    seen: list[tuple[int, int]] = []

    def forbid_even(prompt_ids: list[int], output_ids: list[int], logits: Any) -> None:
        seen.append((len(prompt_ids), len(output_ids)))
        logits[::2] = -float("inf")

    def only(output_ids: list[int], logits: Any) -> Any:
        wanted = numpy.full_like(logits, -numpy.inf)
        wanted[101 + 2 * (len(output_ids) % 3)] = 1.0
        return wanted

    params = SamplingParams(temperature=0, max_tokens=6, logits_processors=[forbid_even])
    output = engine.generate(PROMPTS[0], params, use_tqdm=False)[0]
    assert all(token % 2 == 1 for token in output.outputs[0].token_ids)
    assert {prompt for prompt, _ in seen} == {len(output.prompt_token_ids)}
    params = SamplingParams(temperature=1, max_tokens=6, logits_processors=[forbid_even, only])
    output = engine.generate(PROMPTS[0], params, use_tqdm=False)[0]
    assert output.outputs[0].token_ids == [101, 103, 105] * 2


def test_a_failing_processor_ends_its_request_alone(llm: LLM) -> None:
    def broken(output_ids: list[int], logits: Any) -> None:
        if len(output_ids) == 2:
            raise KeyError("third token")

    def short(output_ids: list[int], logits: Any) -> Any:
        return logits[:5]

    good = SamplingParams(temperature=0, max_tokens=8)
    params = [
        SamplingParams(temperature=0, max_tokens=8, logits_processors=[broken]),
        good,
        SamplingParams(temperature=0, max_tokens=8, logits_processors=[short]),
    ]
    first, second, third = llm.generate(PROMPTS[:3], params, use_tqdm=False)
    assert first.outputs[0].finish_reason == "error"
    assert "KeyError: 'third token'" in (first.outputs[0].error or "")
    assert "it returned 5 logits" in (third.outputs[0].error or "")
    alone = llm.generate(PROMPTS[1], good, use_tqdm=False)[0]
    assert second.outputs[0].token_ids == alone.outputs[0].token_ids


def test_processors_are_given_back(llm: LLM) -> None:
    class Processor:
        def __call__(self, output_ids: list[int], logits: Any) -> None:
            pass

    processor = Processor()
    watched = weakref.ref(processor)
    params = SamplingParams(max_tokens=2, logits_processors=[processor])
    llm.generate(PROMPTS[0], params, use_tqdm=False)
    del processor, params
    for _ in range(50):
        llm.generate(PROMPTS[0], SamplingParams(max_tokens=1), use_tqdm=False)
        gc.collect()
        if watched() is None:
            return
    pytest.fail("the engine kept a processor")


def test_vllm_paths() -> None:
    from foretoken.engine.arg_utils import AsyncEngineArgs  # noqa: F401
    from foretoken.engine.async_llm_engine import AsyncLLMEngine
    from foretoken.entrypoints.llm import LLM as SameLLM
    from foretoken.inputs import TokensPrompt  # noqa: F401
    from foretoken.lora.request import LoRARequest  # noqa: F401
    from foretoken.v1.engine.async_llm import AsyncLLM
    from foretoken.v1.metrics.reader import Counter  # noqa: F401

    assert AsyncLLMEngine is AsyncLLM and SameLLM is LLM


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("foretoken.distributed", "there are no workers in Python"),
        ("foretoken.distributed.parallel_state", "there are no workers in Python"),
        ("foretoken.model_executor.models", "are C++"),
        ("foretoken.config", "EngineArgs"),
    ],
)
def test_modules_of_vllm_answer(name: str, words: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=words):
        importlib.import_module(name)
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        importlib.import_module("foretoken.nothing_of_anybody")


def test_names_of_vllm_answer(llm: LLM) -> None:
    with pytest.raises(ImportError, match="inspect --families"):
        from foretoken import ModelRegistry  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(AttributeError, match="LLMEngine has no vllm_config: .*EngineArgs"):
        _ = llm.llm_engine.vllm_config  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no workers in Python"):
        _ = llm.collective_rpc  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = llm.nothing  # type: ignore[attr-defined]
    assert not hasattr(llm.llm_engine, "vllm_config")
    with pytest.raises(NotImplementedError, match="from_engine_args"):
        AsyncLLM.from_vllm_config(None)
    with pytest.raises(NotImplementedError, match="VllmConfig"):
        EngineArgs().create_engine_config()
