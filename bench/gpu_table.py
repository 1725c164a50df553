#!/usr/bin/env python3
"""ms per output token on a GPU by batch size, with and without speculation, beside another engine.

    bench/gpu_table.py --bin build/cuda-release/foretoken --out OUT

Writes OUT/gpu-table.jsonl, .md and .svg; each engine's lines as soon as it is through. Random weights of the
shapes in bench/configs, synthetic acceptance 0.8 / 0.6 / 0.4 or as a run says; (time for 272 tokens - time for
16) / 256 after prompts of 128 random tokens, best of --iters, greedy, all sequences at once. The floor of a
mixture counts the distinct experts that a step's rows touch, which choose independently. The engines of a run
stand in one process and take turns; with --apart, and where three would not fit, each has a process of its own, as engines
have in service: a device's kernels that want all of it are the first engine's of a process alone. Standard
library only.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import chart
import floor

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "bench" / "configs"
PEERS = ROOT / "bench" / "peers"
# By words of the device's name: TB/s that a copy reads, TFLOP/s of a large product, and another engine's figures.
DEVICES = {"H200": (4.2, 747, "vllm-0.26.0-h200.jsonl"),
           "H100": (3.0, 747, "vllm-0.26.0-h100.jsonl")}
RATES = [0.8, 0.6, 0.4]
INPUT_LEN = 128
OUTPUT_LEN = 272
SHORT_LEN = 16

# By name: target, drafter and its acceptance, engines in turns with the peer's name of each, batch sizes of its
# own. A drafter of no folder is the target's own module.
RUNS = {
    "eagle": {"target": "llama-3-8b", "drafter": ("eagle", "llama-3-8b-eagle"),
              "variants": {"off": "l8", "fixed": "l8_eagle3x", "adaptive": "l8_eagle3x"}},
    "draft": {"target": "llama-3-8b", "drafter": ("draft_model", "llama-68m-128k"),
              "variants": {"fixed": "l8_draft68", "adaptive": "l8_draft68"}},
    # What random weights repeat: real matches, so no other engine's figures fit.
    "ngram": {"target": "llama-3-8b", "drafter": ("ngram", None),
              "variants": {"off": "l8", "fixed": "", "adaptive": ""}},
    "68m": {"target": "llama-68m", "drafter": None, "variants": {"off": "l68"},
            "batches": [1, 5, 10, 64, 256]},
    "none": {"target": "llama-3-8b", "drafter": None, "variants": {"off": "l8"}},
    "mixture": {"target": "deepseek-16b", "drafter": ("mtp", None), "rates": [0.8],
                "variants": {"off": "dsreal", "fixed": "dsreal_mtp1", "adaptive": "dsreal_mtp1"},
                "batches": [1, 4, 16, 64, 256], "apart": True},
    "mixture-3": {"target": "deepseek-16b", "drafter": ("mtp", None),
                  "variants": {"fixed": "", "adaptive": ""}, "batches": [1, 4, 16, 64, 256],
                  "apart": True},
    "qwen": {"target": "qwen3-30b-a3b", "drafter": None, "variants": {"off": ""},
             "batches": [1, 4, 16, 64, 256]},
    "qwen-fp8": {"target": "qwen3-30b-a3b", "drafter": None, "variants": {"off": ""},
                 "batches": [1, 4, 16, 64, 256], "form": "fp8"},
    "qwen-blocks": {"target": "qwen3-30b-a3b-fp8", "drafter": None, "variants": {"off": ""},
                    "batches": [1, 4, 16, 64, 256], "form": "blocks"},
    "qwen-blocks-draft": {"target": "qwen3-30b-a3b-fp8",
                          "drafter": ("draft_model", "llama-68m-152k"),
                          "variants": {"off": "", "fixed": "", "adaptive": ""},
                          "batches": [1, 4, 16, 64, 256], "apart": True, "form": "blocks"},
    "mixture-fp8": {"target": "deepseek-16b", "drafter": ("mtp", None), "rates": [0.8],
                    "variants": {"off": "", "adaptive": ""}, "batches": [1, 4, 16, 64, 256],
                    "apart": True, "form": "fp8"},
    "gpt-oss": {"target": "gpt-oss-20b", "drafter": None, "variants": {"off": ""},
                "batches": [1, 4, 16, 64, 256], "form": "mxfp4_moe"},
    "gpt-oss-draft": {"target": "gpt-oss-20b", "drafter": ("draft_model", "llama-68m-201k"),
                      "variants": {"off": "", "fixed": "", "adaptive": ""},
                      "batches": [1, 4, 16, 64, 256], "apart": True, "form": "mxfp4_moe"},
    "none-fp8": {"target": "llama-3-8b", "drafter": None, "variants": {"off": ""}, "form": "fp8",
                 "batches": [1, 4, 16, 64]},
    "none-q4_0": {"target": "llama-3-8b", "drafter": None, "variants": {"off": ""}, "form": "q4_0",
                  "batches": [1, 4, 16, 64]},
    "none-q4_k": {"target": "llama-3-8b", "drafter": None, "variants": {"off": ""}, "form": "q4_k",
                  "batches": [1, 4, 16, 64]},
    "none-q6_k": {"target": "llama-3-8b", "drafter": None, "variants": {"off": ""}, "form": "q6_k",
                  "batches": [1, 4, 16, 64]},
}
# How weights are quantised: words of bench decode, bytes of elements. A scale a row or block of FP8 counts nothing; Q8_0
# and Q4_0 have two bytes more for 32 elements, MXFP4 one; K-quants are blocks of 256. The head of the last three is
# Q6_K.
FORMS = {
    None: (["--load-format", "dummy"], floor.WeightBytes()),
    "fp8": (["--load-format", "dummy", "--quantization", "fp8"], floor.WeightBytes(1, 1, 2)),
    "blocks": (["--load-format", "dummy"], floor.WeightBytes(1, 1, 2)),
    "mxfp4_moe": (["--load-format", "dummy-mxfp4_moe"],
                  floor.WeightBytes(34 / 32, 17 / 32, 34 / 32)),
    "q4_0": (["--load-format", "dummy-q4_0"], floor.WeightBytes(18 / 32, 18 / 32, 210 / 256)),
    "q4_k": (["--load-format", "dummy-q4_k"], floor.WeightBytes(144 / 256, 144 / 256, 210 / 256)),
    "q6_k": (["--load-format", "dummy-q6_k"], floor.WeightBytes(210 / 256, 210 / 256, 210 / 256)),
}
FORM_LABELS = {None: "", "fp8": " in FP8", "blocks": " in FP8 blocks", "mxfp4_moe": " in Q8_0, experts in MXFP4",
               "q4_0": " in Q4_0", "q4_k": " in Q4_K", "q6_k": " in Q6_K"}
DEFAULT_RUNS = "eagle,draft,68m"  # `none` is the `off` of `eagle`
DEFAULT_BATCHES = [1, 16, 64, 256]
VARIANTS = ["off", "fixed", "adaptive"]
LABELS = {"eagle": "EAGLE K=3", "draft": "68M draft model K=3", "ngram": "n-gram K=3",
          "mixture": "MTP K=1", "mixture-3": "MTP K=3",
          "qwen-blocks-draft": "68M draft model K=3", "gpt-oss-draft": "68M draft model K=3"}
TARGET_LABELS = {"llama-3-8b": "Llama-3-8B shape", "llama-68m": "llama-68m shape",
                 "deepseek-16b": "DeepSeek-V3-like 16B", "qwen3-30b-a3b": "Qwen3-30B-A3B shape",
                 "qwen3-30b-a3b-fp8": "Qwen3-30B-A3B shape",
                 "gpt-oss-20b": "gpt-oss-20b shape"}


def label_of(name, variant):
    run = RUNS[name]
    target = TARGET_LABELS[run["target"]] + FORM_LABELS[run.get("form")]
    drafts = LABELS.get(name) or LABELS.get(name.split("-")[0])
    return f"{target}, none" if variant == "off" else f"{target}, {drafts}, {variant}"


def device_of(name):
    return next((known for word, known in DEVICES.items() if word in name), DEVICES["H200"])


def peer_figures(args, device):
    """By name; of --peer, or of the device."""
    if args.device != "cuda" or args.peer == "":
        return {}
    path = args.peer or PEERS / device_of(device)[2]
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    return {line["name"]: line for line in map(json.loads, filter(None, lines))}


def speculation(run):
    if run["drafter"] is None:
        return []
    method, model = run["drafter"]
    rates = run.get("rates", RATES)
    if method == "ngram":
        return ["-sc", json.dumps({"method": method, "num_speculative_tokens": len(rates),
                                   "prompt_lookup_min": 2, "prompt_lookup_max": 4})]
    fields = {"method": method, "num_speculative_tokens": len(rates),
              "rejection_sample_method": "synthetic", "synthetic_acceptance_rates": rates}
    if model is not None:
        fields["model"] = str(CONFIGS / model)
    return ["-sc", json.dumps(fields)]


def limits_of(args, device):
    """TB/s and TFLOP/s: as the flags say, else what is known of the device."""
    known = device_of(device)
    return args.read_tb_s or known[0], args.tflops or known[1]


def decode(args, name, variants, batches):
    """The JSON of `foretoken bench decode`; what was measured before an error counts."""
    run = RUNS[name]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "decode.json"
        words = [args.bin, "bench", "decode", "--device", args.device, "--model",
                 str(CONFIGS / run["target"]), *FORMS[run.get("form")][0], "--skip-tokenizer-init",
                 "--max-model-len", "2048", "--max-num-seqs", str(max(256, *batches)),
                 "--batch-sizes", ",".join(map(str, batches)), "--input-lens", str(INPUT_LEN),
                 "--output-len", str(OUTPUT_LEN), "--short-output-len", str(SHORT_LEN),
                 "--num-iters", str(args.iters), "--variants", ",".join(variants),
                 "--log-level", "error", "--output-json", str(file), *speculation(run),
                 *args.more]
        try:
            result = subprocess.run(words, check=False, timeout=args.timeout,
                                    stdout=subprocess.DEVNULL)
            if result.returncode != 0:
                print(f"{name}: failed with code {result.returncode}", file=sys.stderr)
        except subprocess.TimeoutExpired:
            print(f"{name}: longer than {args.timeout} s", file=sys.stderr)
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def floor_ms(limits, name, variant, batch, drafts):
    """The least ms per token: of the steps as they were, with the drafts that they made."""
    run = RUNS[name]
    weight_bytes = FORMS[run.get("form")][1]
    target = floor.Shape(CONFIGS / run["target"], weight_bytes=weight_bytes)
    steps = max(drafts["steps"], 1)
    drafted = drafts["drafted_tokens"] / steps
    context = INPUT_LEN + (SHORT_LEN + OUTPUT_LEN) / 2
    cost = target.forward(batch, 1 + drafted, context)
    if variant != "off" and run["drafter"][0] != "ngram":
        method, model = run["drafter"]
        drafter = floor.Shape(CONFIGS / (model or run["target"]), module=method == "mtp",
                              weight_bytes=weight_bytes if model is None else floor.WeightBytes())
        cost += drafter.forward(batch, 1, context) * drafted
    tokens = drafts["output_tokens"] / steps
    return cost.seconds(*limits) * 1e3 / tokens


def records_of(args, name, result, seconds):
    peer = peer_figures(args, result["device"])
    for size in result["sizes"]:
        batch = size["batch_size"]
        for variant in size["variants"]:
            what = variant["name"]
            known = peer.get(RUNS[name]["variants"][what], {}).get(f"bs{batch}_ms_per_tok")
            ms = variant["ms_per_token"]
            least = None  # the rates are a GPU's
            if args.device == "cuda":
                limits = limits_of(args, result["device"])
                least = floor_ms(limits, name, what, batch, variant["drafts"])
            ratio = next((r for r in size["ratios"] if r["of"] == what), None)
            yield {"run": name, "label": label_of(name, what), "variant": what, "batch": batch,
                   "ms_per_token": ms, "floor_ms": least,
                   "percent_of_floor": 100 * least / ms if least else None,
                   "ms_for_16": 1e3 * min(variant["short_seconds"]), "over_off": ratio,
                   "peer_ms_per_token": known, "load_seconds": result["load_seconds"][what],
                   "process_seconds": seconds, "device": result["device"],
                   "short_seconds": variant["short_seconds"],
                   "long_seconds": variant["long_seconds"], "drafts": variant["drafts"]}


def cell(record):
    text = f"**{record['ms_per_token']:.3f}**"
    if record["percent_of_floor"] is not None:
        text += f", {record['percent_of_floor']:.0f} %"
    known = record["peer_ms_per_token"]
    return text + (f" ({known:.3f})" if known is not None else "")


def table(records, peer_name):
    batches = sorted({record["batch"] for record in records})
    rows = {}
    for record in records:
        rows.setdefault(record["label"], {})[record["batch"]] = cell(record)
    lines = ["| run | " + " | ".join(f"bs {batch}" for batch in batches) + " | load s |",
             "|" + "---|" * (len(batches) + 2)]
    loads = {record["label"]: record["load_seconds"] for record in records}
    for label, cells in rows.items():
        lines.append("| " + " | ".join([label, *(cells.get(batch, "-") for batch in batches),
                                        f"{loads[label]:.1f}"]) + " |")
    device = records[0]["device"] if records else ""
    has_floor = any(record["percent_of_floor"] is not None for record in records)
    percent = ", percent of the floor" if has_floor else ""
    explained = (" Floor: bytes / read bandwidth or FLOPs / rate, the larger, of the steps and "
                 "draft passes that were made." if has_floor else "")
    peer = f" ({peer_name})" if any(r["peer_ms_per_token"] is not None for r in records) else ""
    lines += ["", f"{device}: ms per output token and sequence{percent}{peer}. "
              "Random weights of the models' shapes; synthetic acceptance 0.8 / 0.6 / 0.4 at "
              "the first drafts; "
              "(time for 272 tokens - time for 16) / 256 after prompts of 128 random tokens, "
              f"greedy, best of the rounds.{explained}"]
    return "\n".join(lines) + "\n"


def series(records, peer_name):
    """Lines of the chart: ours without and with adaptive drafts, and the peer's beside each."""
    lines = {}
    for record in records:
        if RUNS[record["run"]]["target"] != "llama-3-8b" or record["variant"] == "fixed":
            continue
        what = record["label"].split(", ")[1]
        points = {f"Foretoken, {what}": record["ms_per_token"],
                  f"{peer_name}, {what}": record["peer_ms_per_token"]}
        for name, ms in points.items():
            entry = {"group": what, "dashed": name.startswith(peer_name), "points": []}
            if ms is not None:
                lines.setdefault(name, entry)["points"].append((record["batch"], ms))
    return lines


def write(args, records):
    folder = pathlib.Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "gpu-table.jsonl").write_text(text, encoding="utf-8")
    (folder / "gpu-table.md").write_text(table(records, args.peer_name), encoding="utf-8")
    lines = series(records, args.peer_name)
    if lines:
        title = "Llama-3-8B shape, ms per output token of a sequence"
        (folder / "gpu-table.svg").write_text(chart.svg(title, "sequences", lines),
                                              encoding="utf-8")


def names_of(known):
    def names(text):
        chosen = text.split(",")
        wrong = [name for name in chosen if name not in known]
        if wrong:
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(map(repr, wrong))}; there are {', '.join(known)}")
        return chosen
    return names


def batch_sizes(text):
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of batch sizes such as 1,16,64")
    return sizes


def positive(number):
    def parse(text):
        try:
            value = number(text)
        except ValueError:
            value = 0
        if not value > 0:
            kind = "whole number" if number is int else "number"
            raise argparse.ArgumentTypeError(f"{text!r} is not a {kind} above 0")
        return value
    return parse


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="the foretoken command, as `./quickstart --cuda` builds it "
                        "(required, unless --only-draw)")
    parser.add_argument("--out", required=True, help="folder for the results (required)")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"],
                        help="the percent of the floor only with cuda (default: %(default)s)")
    parser.add_argument("--runs", type=names_of(RUNS), default=DEFAULT_RUNS,
                        help=f"of {', '.join(RUNS)} (default: %(default)s)")
    parser.add_argument("--variants", type=names_of(VARIANTS),
                        help=f"only these of {', '.join(VARIANTS)} (default: all that a run has)")
    parser.add_argument("--batches", type=batch_sizes,
                        help="sequences at once (default: 1,16,64,256; of 68m 1,5,10,64,256; of mixtures 1,4,16,64,256)")
    parser.add_argument("--iters", type=positive(int), default=2,
                        help="rounds of each size (default: %(default)s)")
    parser.add_argument("--apart", action="store_true", help="a process for each variant")
    parser.add_argument("--timeout", type=positive(float), default=240,
                        help="seconds of a process (default: %(default)s)")
    parser.add_argument("--peer", help="the other engine's figures, or empty (default: the "
                        "device's in bench/peers)")
    parser.add_argument("--peer-name", default="vLLM 0.26.0",
                        help="what the table calls it (default: %(default)s)")
    known = ", ".join(f"{name} {rates[0]} and {rates[1]}" for name, rates in DEVICES.items())
    parser.add_argument("--read-tb-s", type=positive(float),
                        help=f"read bandwidth, TB/s (default: of the device; {known})")
    parser.add_argument("--tflops", type=positive(float),
                        help="rate of matrix products (default: likewise)")
    parser.add_argument("--only-draw", action="store_true",
                        help="make table and chart of the gpu-table.jsonl in --out again")
    parser.add_argument("more", nargs="*", help="after --: more options of bench decode")
    return parser


def draw_again(parser, args):
    file = pathlib.Path(args.out) / "gpu-table.jsonl"
    try:
        records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        parser.error(f"--only-draw: {file}: {error.strerror}; a run without --only-draw writes it")
    except ValueError as error:
        parser.error(f"--only-draw: {file} is not JSON lines: {error}")
    write(args, records)


def main():
    parser = make_parser()
    args = parser.parse_args()
    if args.only_draw:
        draw_again(parser, args)
        return
    if not args.bin:
        parser.error("--bin is missing: the foretoken command, as `./quickstart --cuda` builds it")
    if not shutil.which(args.bin):
        what = "is not executable" if pathlib.Path(args.bin).exists() else "does not exist"
        parser.error(f"--bin: {args.bin} {what}; `./quickstart --cuda` builds "
                     "build/cuda-release/foretoken")
    try:
        peer_figures(args, "")
        pathlib.Path(args.out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    except ValueError as error:
        parser.error(f"--peer: {args.peer} is not JSON lines: {error}")
    chosen = {name: [v for v in RUNS[name]["variants"] if not args.variants or v in args.variants]
              for name in args.runs}
    processes = [(name, group) for name, variants in chosen.items() if variants
                 for group in ([[v] for v in variants] if args.apart or RUNS[name].get("apart")
                               else [variants])]
    if not processes:
        parser.error("--variants: " + "; ".join(
            f"{name} has only {', '.join(RUNS[name]['variants'])}" for name in args.runs))
    records = []
    for name, variants in processes:
        start = time.monotonic()
        result = decode(args, name, variants,
                        args.batches or RUNS[name].get("batches", DEFAULT_BATCHES))
        if result is None:
            continue
        seconds = time.monotonic() - start
        for record in records_of(args, name, result, seconds):
            records.append(record)
            print(f"{record['label']}, batch {record['batch']}: {cell(record)}", flush=True)
        print(f"{name}: {seconds:.0f} s in all", flush=True)
        write(args, records)
    if not records:
        sys.exit("nothing was measured")
    print(table(records, args.peer_name))


if __name__ == "__main__":
    main()
