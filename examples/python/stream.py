"""Several streams at once under asyncio."""

import asyncio

from foretoken import AsyncLLM, RequestOutputKind, SamplingParams


async def stream(engine: AsyncLLM, name: str, prompt: str) -> None:
    params = SamplingParams(max_tokens=30, seed=3, output_kind=RequestOutputKind.DELTA)
    async for output in engine.generate(prompt, params, request_id=name):
        print(f"{name}: {output.outputs[0].text!r}")


async def main() -> None:
    engine = AsyncLLM(speculative_config={"method": "ngram", "num_speculative_tokens": 4})
    await asyncio.gather(
        stream(engine, "first", "Once upon a time"), stream(engine, "second", "The little dog")
    )
    engine.shutdown()


asyncio.run(main())
