#!/usr/bin/env python3
"""ms per output token of vLLM, by the method of bench/gpu_table.py, and the counts of its drafts.

    bench/peers/vllm_decode.py FOLDER [--speculative-config JSON] [--batch-sizes 1 16 64 256]

FOLDER holds config.json, for random weights and prompts of 128 random tokens, or a whole checkpoint with
prompts.jsonl as `foretoken-dial --prompts 256` writes them: then it also counts the outputs that are right.
(time for 272 tokens - time for 16) / 256, the better of two, greedy, all sequences at once, no prefix cache.
One line of JSON. Needs vllm (measured with 0.26.0, VLLM_USE_FLASHINFER_SAMPLER=0).
"""

import argparse
import json
import pathlib
import random
import sys
import time

COUNTERS = ("vllm:spec_decode_num_draft_tokens", "vllm:spec_decode_num_accepted_tokens")
SHORT_LEN, OUTPUT_LEN = 16, 272


def read_prompts(folder, count):
    """(ids, expected output or None) of each prompt."""
    file = folder / "prompts.jsonl"
    if not file.exists():
        rng = random.Random(0)
        return [([rng.randrange(10, 30000) for _ in range(128)], None) for _ in range(count)]
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lines = [lines[i % len(lines)] for i in range(count)]
    return [(line["prompt_token_ids"], line["expected_token_ids"]) for line in lines]


def counts(llm):
    found = {metric.name: metric.value for metric in llm.get_metrics() if metric.name in COUNTERS}
    return [found.get(name, 0) for name in COUNTERS]


def measure(llm, prompts, speculates):
    from vllm import SamplingParams

    inputs = [{"prompt_token_ids": ids} for ids, _ in prompts]

    def run(length):
        params = SamplingParams(temperature=0.0, max_tokens=length, ignore_eos=True,
                                detokenize=False)
        begin = time.perf_counter()
        outputs = llm.generate(inputs, params, use_tqdm=False)
        return time.perf_counter() - begin, outputs

    run(8)
    short = min(run(SHORT_LEN)[0] for _ in range(2))
    before = counts(llm) if speculates else None
    long, outputs = min((run(OUTPUT_LEN) for _ in range(2)), key=lambda pair: pair[0])
    result = {"ms_per_token": (long - short) / (OUTPUT_LEN - SHORT_LEN) * 1e3}
    if speculates:
        drafted, accepted = ((b - a) / 2 for a, b in zip(before, counts(llm)))
        result |= {"drafted": drafted, "accepted": accepted}
    if prompts[0][1] is not None:
        result["right"] = sum(list(output.outputs[0].token_ids) == expected[:OUTPUT_LEN]
                              for output, (_, expected) in zip(outputs, prompts))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--speculative-config", type=json.loads)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 16, 64, 256])
    args = parser.parse_args()
    try:
        from vllm import LLM  # not above: --help must work without
    except ModuleNotFoundError as error:
        sys.exit(f"{parser.prog} needs {error.name}, which is not installed: `pip install vllm`")
    speculation = args.speculative_config
    has_weights = (args.folder / "prompts.jsonl").exists()
    llm = LLM(model=str(args.folder), load_format="auto" if has_weights else "dummy",
              skip_tokenizer_init=True, max_model_len=2048, max_num_seqs=256,
              gpu_memory_utilization=0.85, enable_prefix_caching=False,
              disable_log_stats=speculation is None, speculative_config=speculation)
    sizes = {size: measure(llm, read_prompts(args.folder, size), speculation is not None)
             for size in args.batch_sizes}
    print(json.dumps(sizes), flush=True)


if __name__ == "__main__":
    main()
