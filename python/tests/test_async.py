"""AsyncLLM: streams, cancellation, several loops and engines."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import NGRAM, PROMPTS, SMALL, Hold

from foretoken import (
    LLM,
    AsyncEngineArgs,
    AsyncLLM,
    RequestError,
    RequestOutput,
    RequestOutputKind,
    SamplingParams,
)

LONG = SamplingParams(temperature=0, max_tokens=400, ignore_eos=True)


@pytest.fixture(scope="module")
def engine() -> Iterator[AsyncLLM]:
    made = AsyncLLM.from_engine_args(AsyncEngineArgs(speculative_config=NGRAM, **SMALL))
    yield made
    made.shutdown()


def params_of(kind: RequestOutputKind, **fields: Any) -> SamplingParams:
    return SamplingParams(temperature=0, output_kind=kind, ignore_eos=True, **fields)


def held(hold: Hold) -> SamplingParams:
    """Long, and held once there is some text, which has come out by then."""
    return SamplingParams(temperature=0, max_tokens=400, ignore_eos=True, logits_processors=[hold])


async def collect(engine: AsyncLLM, prompt: str, params: SamplingParams) -> list[RequestOutput]:
    return [output async for output in engine.generate(prompt, params)]



async def until_idle(engine: AsyncLLM) -> None:
    core = engine._client.core
    end = time.monotonic() + 120
    while time.monotonic() < end:
        stats = core.stats()
        if stats.num_free_blocks == stats.num_total_blocks:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"{stats.num_total_blocks - stats.num_free_blocks} blocks were not given back")


def test_kinds_agree(engine: AsyncLLM, llm: LLM) -> None:
    async def main() -> None:
        kinds = RequestOutputKind
        num_outputs = dict.fromkeys(PROMPTS, 0)

        async def watched(prompt: str) -> list[RequestOutput]:
            """Its engine does not run ahead of the first outputs."""

            def keep_pace(output_ids: list[int], logits: object) -> None:
                end = time.monotonic() + 120
                while num_outputs[prompt] < min(2, len(output_ids) // 12):
                    assert time.monotonic() < end
                    time.sleep(0.001)

            outputs = []
            params = params_of(kinds.CUMULATIVE, max_tokens=40, logits_processors=[keep_pace])
            async for output in engine.generate(prompt, params):
                outputs.append(output)
                num_outputs[prompt] += 1
            return outputs

        runs = [
            watched(prompt)
            if kind == kinds.CUMULATIVE
            else collect(engine, prompt, params_of(kind, max_tokens=40))
            for prompt in PROMPTS
            for kind in (kinds.CUMULATIVE, kinds.DELTA, kinds.FINAL_ONLY)
        ]
        streams = await asyncio.gather(*runs)
        plain = params_of(kinds.FINAL_ONLY, max_tokens=40)
        wanted = llm.generate(PROMPTS, plain, use_tqdm=False)
        for i, output in enumerate(wanted):
            choice = output.outputs[0]
            cumulative, delta, final = streams[3 * i : 3 * i + 3]
            assert len(final) == 1 and len(cumulative) > 2
            for last in (cumulative[-1], final[-1]):
                assert last.finished and last.outputs[0].token_ids == choice.token_ids
                assert last.outputs[0].text == choice.text
            assert "".join(o.outputs[0].text for o in delta) == choice.text
            assert sum((o.outputs[0].token_ids for o in delta), []) == choice.token_ids
            lengths = [len(o.outputs[0].token_ids) for o in cumulative]
            assert lengths == sorted(lengths)
            assert [o.finished for o in cumulative[:-1]] == [False] * (len(cumulative) - 1)

    asyncio.run(main())


def test_choices_stream_apart(engine: AsyncLLM) -> None:
    async def main() -> None:
        params = SamplingParams(
            n=3, seed=2, max_tokens=20, logprobs=1, output_kind=RequestOutputKind.DELTA
        )
        outputs = await collect(engine, PROMPTS[0], params)
        assert {c.index for o in outputs for c in o.outputs} == {0, 1, 2}
        for index in range(3):
            parts = [c for o in outputs for c in o.outputs if c.index == index]
            assert all(len(c.token_ids) == len(c.logprobs or []) for c in parts)
            assert [c.finish_reason for c in parts[:-1]] == [None] * (len(parts) - 1)
            assert parts[-1].finish_reason in ("stop", "length")

    asyncio.run(main())


def test_slow_consumers_get_larger_outputs(engine: AsyncLLM) -> None:
    async def main() -> None:
        core = engine._client.core
        count, tokens = 0, 0
        params = params_of(RequestOutputKind.DELTA, max_tokens=60)
        async for output in engine.generate(PROMPTS[0], params):
            count += 1
            tokens += len(output.outputs[0].token_ids)
            # The loop takes nothing in before the engine is done.
            end = time.monotonic() + 120
            while core.stats().num_free_blocks < core.stats().num_total_blocks:
                assert time.monotonic() < end
                time.sleep(0.01)
        assert tokens == 60 and count < 30

    asyncio.run(main())


def test_leaving_ends_the_request(engine: AsyncLLM) -> None:
    async def leave() -> None:
        async for _ in engine.generate(PROMPTS[0], LONG, request_id="left"):
            break

    async def cancel() -> None:
        hold = Hold()
        task = asyncio.create_task(collect(engine, PROMPTS[1], held(hold)))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        hold.released.set()

    async def close() -> None:
        stream = engine.generate(PROMPTS[2], LONG)
        await anext(stream)
        await stream.aclose()
        await until_idle(engine)

    async def main() -> None:
        for way in (leave, cancel, close):
            await way()
            await until_idle(engine)

    asyncio.run(main())


def test_abort_by_id(engine: AsyncLLM) -> None:
    async def main() -> None:
        outputs: list[RequestOutput] = []
        hold = Hold(after=20)
        async for output in engine.generate(PROMPTS[0], held(hold), request_id="mine"):
            assert output.request_id == "mine"
            if not outputs:
                await engine.abort("mine")
                hold.released.set()
            outputs.append(output)
        assert outputs[-1].outputs[0].finish_reason == "abort"
        assert len(outputs[-1].outputs[0].token_ids) < 400
        await engine.abort(["mine", "unknown"])

    asyncio.run(main())


def test_two_requests_of_one_id(engine: AsyncLLM) -> None:
    async def main() -> None:
        hold = Hold(after=20)
        first = engine.generate(PROMPTS[0], held(hold), request_id="twice")
        await anext(first)
        with pytest.raises(ValueError, match="'twice' is in use"):
            await anext(engine.generate(PROMPTS[0], LONG, request_id="twice"))
        await first.aclose()
        hold.released.set()

    asyncio.run(main())


def test_long_prompts_are_refused_alone(engine: AsyncLLM) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="maximum context length is 512"):
            await collect(engine, "word " * 5000, LONG)
        assert (await collect(engine, "word", LONG))[-1].finished

    asyncio.run(main())


def test_failures_are_raised(engine: AsyncLLM) -> None:
    def broken(output_ids: list[int], logits: object) -> None:
        raise ZeroDivisionError("on purpose")

    async def main() -> None:
        good = asyncio.create_task(collect(engine, PROMPTS[1], LONG))
        with pytest.raises(RequestError, match="ZeroDivisionError: on purpose"):
            await collect(engine, PROMPTS[0], SamplingParams(logits_processors=[broken]))
        assert len((await good)[-1].outputs[0].token_ids) == 400

    asyncio.run(main())


def test_embeddings(engine: AsyncLLM) -> None:
    async def main() -> None:
        outputs = [output async for output in engine.encode(PROMPTS[0])]
        assert len(outputs) == 1 and len(outputs[0].outputs.data) == 256

    asyncio.run(main())


def test_loops_in_threads_and_a_second_engine(engine: AsyncLLM) -> None:
    other = AsyncLLM(**SMALL)
    found: list[str] = []

    async def main() -> None:
        params = params_of(RequestOutputKind.CUMULATIVE, max_tokens=30)
        runs = [collect(one, PROMPTS[0], params) for one in (engine, other) * 3]
        for outputs in await asyncio.gather(*runs):
            found.append(outputs[-1].outputs[0].text)

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.shutdown()
    assert len(found) == 18 and len(set(found)) == 1


def test_shutdown_ends_streams() -> None:
    made = AsyncLLM(**SMALL)

    async def main() -> None:
        assert made.is_running

        def slow(output_ids: list[int], logits: object) -> None:
            if len(output_ids) < 20:
                return
            while made.is_running:
                time.sleep(0.001)
            time.sleep(0.02)

        params = SamplingParams(max_tokens=400, ignore_eos=True, logits_processors=[slow])
        stream = made.generate(PROMPTS[0], params)
        await anext(stream)
        made.shutdown()
        outputs = [output async for output in stream]
        assert outputs[-1].outputs[0].finish_reason == "abort"
        with pytest.raises(RuntimeError, match="was shut down"):
            await anext(made.generate(PROMPTS[0], LONG))
        with pytest.raises(RuntimeError, match="was shut down"):
            await made.check_health()

    asyncio.run(main())
    assert made.is_stopped
