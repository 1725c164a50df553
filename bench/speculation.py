#!/usr/bin/env python3
"""Measures speculation; see speculation.sh. Standard library only."""

import argparse
import gzip
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "models" / "foretoken-7m"
CONFIGS = ROOT / "bench" / "configs"
HEADS = ROOT / "tests" / "golden" / "heads"  # of the bundled target too, with little training
METHODS = ("ngram", "draft_model", "eagle", "eagle3", "mtp")
RATES = [0.8, 0.6, 0.4]
NGRAM_SIZE = 8
MOST_REPEATED = 0.2


def has_modules(target):
    """Whether MTP modules lie in the target's own files."""
    if not target.is_dir():
        return False
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    return bool(config.get("num_nextn_predict_layers"))


def drafter(target, method, k, **more):
    """The config of a drafter of a bundled target, or of a list as ngram+eagle3; None where a model is missing."""
    if "+" in method:
        members = [drafter(target, member, k, **more) for member in method.split("+")]
        return {"method": members} if all(members) else None
    config = {"method": method, "num_speculative_tokens": k, **more}
    if method == "ngram":
        return {**config, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
    if method == "suffix":
        # Past answers are left out: each round asks the same again.
        return {**config, "num_speculative_tokens": 2 * k, "suffix_decoding_max_cached_requests": 0}
    if method == "mtp" and has_modules(target):
        return config
    suffix = "draft" if method == "draft_model" else method
    name = f"{target.name}-{suffix}"
    folder = next((path for path in (target.with_name(name), HEADS / name) if path.exists()), None)
    if folder is None:
        return None
    most = drafts_of(folder)
    return {**config, "num_speculative_tokens": min(k, most), "model": str(folder)}


def drafts_of(folder):
    """The most drafts that a head's files have a place for."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    spark = "DSparkDraftModel" in (config.get("architectures") or [])
    found = {"block_size": 0 if spark else -1, "medusa_num_heads": 0, "n_predict": 0}
    return min((config[name] + more for name, more in found.items() if name in config), default=64)


def drafters(args, **more):
    for method in args.methods:
        config = drafter(args.target, method, args.num_drafts, **more)
        if config is None:
            print(f"{method}: no bundled model, left out", file=sys.stderr)
        else:
            yield method, config


def run(args, *command):
    words = [args.bin, *map(str, command), "--log-level", "error"]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{result.stderr}")
    return result.stdout


def run_json(args, *command):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        run(args, *command, "--output-json", file.name)
        return json.loads(pathlib.Path(file.name).read_text(encoding="utf-8"))


class Report:
    """Lines of OUT/name.jsonl as they come, and OUT/name.md at the end."""

    def __init__(self, args, name, columns):
        self.folder = pathlib.Path(args.out)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.columns = columns
        self.rows = []
        (self.folder / f"{name}.jsonl").write_text("", encoding="utf-8")
        print(" | ".join(columns), flush=True)

    def add(self, record, *cells):
        with open(self.folder / f"{self.name}.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        self.rows.append([str(cell) for cell in cells])
        print(" | ".join(self.rows[-1]), flush=True)

    def close(self, *notes):
        lines = ["| " + " | ".join(row) + " |"
                 for row in [self.columns, ["---"] * len(self.columns), *self.rows]]
        text = "\n".join([*lines, "", *notes]) + "\n"
        (self.folder / f"{self.name}.md").write_text(text, encoding="utf-8")


def interval(ratio):
    return f"{ratio['median']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})"


def find_ratio(result, of, over):
    for ratio in result["ratios"]:
        if ratio["of"] == of and ratio["over"].startswith(over):
            return ratio
    raise KeyError(f"{of} over {over}")


def verdict(ratio, bound):
    """A bound is broken when the whole interval lies beyond it."""
    return "broken" if ratio["high"] < bound else "holds"


def rounds(args):
    return "--num-pairs", args.pairs, "--min-round-ms", args.min_round_ms


def step_times(args, method, batch):
    """One table for all runs of a drafter and batch: they decide alike, and only the first measures."""
    folder = pathlib.Path(args.step_times)
    folder.mkdir(parents=True, exist_ok=True)
    return "--step-time-table", folder / f"{method}-k{args.num_drafts}-batch{batch}.json"


def warn_of_differing(result, what):
    for variant in result["variants"]:
        if variant["differing_outputs"]:
            print(f"{what}: {variant['differing_outputs']} outputs of {variant['name']} differ from "
                  f"those of {result['variants'][0]['name']}", file=sys.stderr)


def policy(args):
    report = Report(args, "policy", ["drafter", "batch", "adaptive over off", ">= 0.98",
                                     "best fixed K", "adaptive over it", ">= 0.95"])
    fixed = [f"fixed:{k}" for k in args.fixed]
    for method, config in drafters(args):
        for batch in args.batches:
            result = run_json(
                args, "bench", "pairs", "--model", args.target, "--batch-size", batch,
                "--prompts-per-turn", args.turn_prompts * batch, *rounds(args),
                "--output-len", args.output_len, "--num-gpu-blocks-override", 64 * batch + 64,
                "--max-model-len", 1024, "-sc", json.dumps(config), *args.layout.split(),
                *step_times(args, method + args.layout.replace(" ", ""), batch),
                "--variants", ",".join(["off", "adaptive", *fixed]))
            warn_of_differing(result, f"{method}, batch {batch}")
            off = find_ratio(result, "adaptive", "off")
            best = find_ratio(result, "adaptive", "fixed")
            report.add({"method": method, **result}, method, batch, interval(off),
                       verdict(off, 0.98), best["over"], interval(best), verdict(best, 0.95))
    report.close(f"Speed ratios: median of {args.pairs} rounds of at least {args.min_round_ms} ms a "
                 "variant, in turns, and its 95 % interval; greedy, bundled prompts.")


def shape(args):
    report = Report(args, "shape", ["K", "batch", "off, tokens/s", "adaptive, tokens/s",
                                    "adaptive over off", "mean length", "bound", ""])
    for k in (1, 3):
        config = {"method": "draft_model", "model": str(CONFIGS / "llama-68m-128k"),
                  "num_speculative_tokens": k, "rejection_sample_method": "synthetic",
                  "synthetic_acceptance_rates": RATES[:k]}
        for batch in args.batches:
            result = run_json(
                args, "bench", "pairs", "--model", CONFIGS / "llama-1b", "--load-format", "dummy",
                "--skip-tokenizer-init", "--batch-size", batch, *rounds(args),
                "--dataset-name", "random", "--input-len", 32, "--output-len", args.output_len,
                "--num-gpu-blocks-override", 64 * batch + 64, "--max-model-len", 1024,
                "-sc", json.dumps(config))
            ratio = find_ratio(result, "adaptive", "off")
            bound = 1.8 if batch == 1 and k == 3 else 0.98
            off, adaptive = result["variants"]
            report.add({"k": k, **result}, k, batch, f"{off['tokens_per_second']:.1f}",
                       f"{adaptive['tokens_per_second']:.1f}", interval(ratio),
                       f"{adaptive['drafts']['mean_acceptance_length']:.2f}", bound,
                       verdict(ratio, bound))
    report.close("Random weights, synthetic acceptance 0.8 / 0.6 / 0.4 by position.")


def open_text(path):
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8")


def read_lines(path):
    with open_text(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def workload(folder, name):
    """The file of that name with or without .gz, or nothing."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            return read_lines(path)
    return []


SPEC_BENCH_TASKS = ("translation", "summarization", "qa", "math_reasoning", "rag")


def plain_text(text):
    return {"prompt": text}


def question(text):
    return {"messages": [{"role": "user", "content": text}]}


def mixed(lists):
    """One of each in turns."""
    return [item for items in itertools.zip_longest(*lists) for item in items if item is not None]


def categories(args):
    """Requests by category: the held-out stories here, and public sets from a folder."""
    found = {}
    own = read_lines(ROOT / "bench" / "prompts" / "prompts.jsonl")
    of_category = {}
    for line in own:
        of_category.setdefault(line["category"], []).append(line["prompt"])
    for line in read_lines(ROOT / "bench" / "prompts" / "held-out.jsonl"):
        request = {key: line[key] for key in ("prompt", "messages") if key in line}
        found.setdefault(line["category"], []).append(request)
    if not args.workloads:
        found["gsm8k"] = list(map(question, of_category["gsm8k"]))
        found["mt-bench"] = list(map(question, of_category["mt-bench"]))
        found["humaneval"] = list(map(plain_text, of_category["humaneval"]))
        return found
    folder = pathlib.Path(args.workloads)
    for line in workload(folder, "spec-bench/question.jsonl"):
        task = line["category"] if line["category"] in SPEC_BENCH_TASKS else "mt-bench"
        found.setdefault(f"spec-bench {task}", []).append(question(line["turns"][0]))
    if "spec-bench" in (args.categories or ()):
        found["spec-bench"] = mixed([found[name] for name in found if name.startswith("spec-bench ")])
    found["gsm8k"] = [question(line["question"]) for line in workload(folder, "gsm8k/test.jsonl")]
    found["humaneval"] = [plain_text(line["prompt"]) for line in workload(folder, "humaneval/HumanEval.jsonl")]
    return found


def repeated_share(ids):
    """How many of the pieces of eight tokens were there before."""
    pieces = [tuple(ids[i:i + NGRAM_SIZE]) for i in range(len(ids) - NGRAM_SIZE + 1)]
    return 1 - len(set(pieces)) / len(pieces) if pieces else 0.0


def generate(args, requests, temperature):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(request) + "\n" for request in requests)
        file.flush()
        text = run(args, "generate", "--model", args.target, "--jsonl", file.name, "--json",
                   "--max-tokens", args.output_len, "--temperature", temperature,
                   "--sampling-seed", 1, "--truncate-prompt-tokens", 512, *args.layout.split())
    return [json.loads(line) for line in text.splitlines()]


def measure_drafter(args, requests, temperature, method, config):
    """Speeds without drafts, with the policy's number and with all, whose lengths tell more."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(request) + "\n" for request in requests)
        file.flush()
        result = run_json(
            args, "bench", "pairs", "--model", args.target, "--dataset-name", "custom",
            "--dataset-path", file.name, "--input-len", 512, "--output-len", args.output_len,
            "--num-prompts", len(requests), "--prompts-per-turn", len(requests), *rounds(args),
            "--temperature", temperature, "--sampling-seed", 1, "--batch-size", 1, "--num-gpu-blocks-override", 160,
            "-sc", json.dumps(config), *args.layout.split(), *step_times(args, method, 1),
            "--variants", "off,adaptive,fixed")
    warn_of_differing(result, method)
    return result


def acceptance(args):
    report = Report(args, "acceptance", ["drafter", "T", "category", "outputs", "left out",
                                         "mean length", "by position", "adaptive over off",
                                         "fixed over off"])
    for temperature in args.temperatures:
        for category, requests in categories(args).items():
            if args.categories and category not in args.categories:
                continue
            measure_category(args, report, temperature, category, requests[:args.num_prompts])
    report.close(
        f"K = {args.num_drafts}, fixed, for the lengths; batch 1 for the speed-ups (median of "
        f"{args.pairs} rounds with its 95 % interval). Outputs: those that are measured; left out: "
        f"those of which more than {MOST_REPEATED:.0%} of the {NGRAM_SIZE}-grams were there before, as "
        "small models' greedy texts repeat themselves, and those that ended with an error.")


def measure_category(args, report, temperature, category, requests):
    plain = generate(args, requests, temperature)
    good = [i for i, output in enumerate(plain)
            if output["error"] is None and repeated_share(output["token_ids"]) <= MOST_REPEATED]
    left_out = len(plain) - len(good)
    for method, config in drafters(args):
        if not good:
            report.add({"method": method, "temperature": temperature, "category": category,
                        "outputs": 0, "left_out": left_out},
                       method, temperature, category, 0, left_out, "no output counts", "-", "-", "-")
            continue
        result = measure_drafter(args, [requests[i] for i in good], temperature, method, config)
        ratio, fixed_ratio = (find_ratio(result, of, "off") for of in ("adaptive", "fixed"))
        found = result["variants"][-1]["drafts"]
        report.add({"method": method, "temperature": temperature, "category": category,
                    "outputs": len(good), "left_out": left_out, **found, "speed_up": ratio,
                    "fixed_speed_up": fixed_ratio, "variants": result["variants"]},
                   method, temperature, category, len(good), left_out,
                   f"{found['mean_acceptance_length']:.2f}",
                   " ".join(f"{rate:.2f}" for rate in found["acceptance_by_position"]),
                   interval(ratio), interval(fixed_ratio))


GPU_RUNS = {
    "none": (None, "l8"),
    "EAGLE K=3": ({"method": "eagle", "model": str(CONFIGS / "llama-3-8b-eagle")}, "l8_eagle3x"),
    "68M draft model K=3": ({"method": "draft_model", "model": str(CONFIGS / "llama-68m-128k")},
                            "l8_draft68"),
}


def seconds_of(args, batch, output_len, speculation):
    result = run_json(args, "bench", "latency", "--device", "cuda", "--model",
                      CONFIGS / "llama-3-8b", "--load-format", "dummy", "--skip-tokenizer-init",
                      "--max-model-len", 2048, "--max-num-seqs", 256, "--temperature", 0,
                      "--batch-size", batch, "--input-len", 128, "--output-len", output_len,
                      "--num-iters-warmup", 1, "--num-iters", 2, *speculation)
    return min(result["latencies"]), result["drafts"]["mean_acceptance_length"]


def gpu(args):
    peer = {line["name"]: line for line in read_lines(pathlib.Path(args.peer))} if args.peer else {}
    report = Report(args, "gpu", ["run", "policy", "batch", "ms per token", "mean length",
                                  "tokens/s", "peer, ms per token"])
    for name, (config, peer_name) in GPU_RUNS.items():
        for length_policy in ("fixed", "adaptive") if config else ("-",):
            speculation = []
            if config:
                speculation = ["-sc", json.dumps({
                    **config, "num_speculative_tokens": 3, "length_policy": length_policy,
                    "rejection_sample_method": "synthetic", "synthetic_acceptance_rates": RATES})]
            for batch in args.gpu_batches:
                short, _ = seconds_of(args, batch, 16, speculation)
                long, length = seconds_of(args, batch, 272, speculation)
                ms = (long - short) / 256 * 1e3
                known = peer.get(peer_name, {}).get(f"bs{batch}_ms_per_tok", "-")
                report.add({"run": name, "policy": length_policy, "batch": batch,
                            "ms_per_token": ms, "seconds_16": short, "seconds_272": long,
                            "mean_length": length, "peer_ms_per_token": known},
                           name, length_policy, batch, f"{ms:.3f}", f"{length:.2f}",
                           f"{batch / ms * 1e3:.0f}", known)
    report.close("(time for 272 tokens - time for 16) / 256 after a prompt of 128 random tokens, "
                 "best of 2, greedy, random weights, synthetic acceptance 0.8 / 0.6 / 0.4.")


def numbers(text):
    return [int(part) for part in text.split(",")]


def main():
    parts = {"policy": policy, "shape": shape, "acceptance": acceptance, "gpu": gpu}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=parts)
    parser.add_argument("--bin", required=True, help="the foretoken command")
    parser.add_argument("--out", required=True, help="folder for the results")
    parser.add_argument("--target", type=pathlib.Path, default=TARGET,
                        help="policy and acceptance: the model's folder, whose drafters lie beside "
                        "it or in its files, or a GGUF file")
    parser.add_argument("--methods", type=lambda text: text.split(","), default=list(METHODS),
                        help="drafters, and lists of them as suffix+eagle3")
    parser.add_argument("--batches", type=numbers, default=[1, 4, 16])
    parser.add_argument("--gpu-batches", type=numbers, default=[1, 16, 64, 256])
    parser.add_argument("--fixed", type=numbers, default=[1, 3],
                        help="fixed K that policy compares with")
    parser.add_argument("--num-drafts", type=int, default=4, help="K of each drafter")
    parser.add_argument("--layout", default="", help="policy and acceptance: ranks and other flags of the "
                        "engine, such as '-tp 2 --cpu-threads 1' or '--device cuda'")
    parser.add_argument("--pairs", type=int, default=15, help="interleaved rounds")
    parser.add_argument("--min-round-ms", type=int, default=500, help="of each variant in a round")
    parser.add_argument("--turn-prompts", type=int, default=2, help="policy: of a turn, x batch")
    parser.add_argument("--step-times", help="folder of step-time tables to read, and to keep those "
                        "that are measured; without it they last for this run")
    parser.add_argument("--output-len", type=int, default=96)
    parser.add_argument("--num-prompts", type=int, default=24, help="of a category, those that are left out as "
                        "they repeat themselves among them")
    parser.add_argument("--categories", type=lambda text: text.split(","),
                        help="acceptance: only these, such as gsm8k,humaneval")
    parser.add_argument("--temperatures", type=lambda text: [float(t) for t in text.split(",")],
                        default=[0.0, 0.8])
    parser.add_argument("--workloads", help="folder with spec-bench/question.jsonl, "
                        "gsm8k/test.jsonl, humaneval/HumanEval.jsonl, plain or .gz")
    parser.add_argument("--peer", help="JSON lines of another engine: name, bs1_ms_per_tok, ...")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        args.step_times = args.step_times or folder
        parts[args.part](args)


if __name__ == "__main__":
    main()
