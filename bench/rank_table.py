#!/usr/bin/env python3
"""ms per output token of models spread over several GPUs of one host, with percent of the floor.

    bench/rank_table.py --bin build/cuda-release/foretoken --runs 8b-tp4,8b-tp4-eagle [--deadline 280] [-- MORE]

One process of `foretoken bench decode` after the other, random weights of the shapes in bench/configs, synthetic
acceptance; a line as soon as a batch size is through, a table after each process and at the end. --deadline: seconds
after which no process is started and the one that runs is ended, with what it has measured. -- MORE: options of
bench decode for every run. The floor is in bench/rank_floor.py. Standard library only.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import floor
import rank_floor

CONFIGS = pathlib.Path(__file__).resolve().parent / "configs"
RATES = [0.8, 0.6, 0.4]
INPUT_LEN = 128
# By the start of a run's name: target, head, bytes of weights, options, batch sizes.
TARGETS = {
    "8b": ("llama-3-8b", "llama-3-8b-eagle", floor.WeightBytes(), [], [1, 16, 64, 256]),
    "70b": ("llama-3-70b", "llama-3-70b-eagle", floor.WeightBytes(), [], [1, 16, 64]),
    "16b": ("deepseek-16b", None, floor.WeightBytes(), [], [1, 4, 16, 64, 256]),
    "r1": ("deepseek-r1-22l", None, floor.WeightBytes(1, 1, 2), ["--quantization", "fp8"], [1, 16, 64, 256]),
}
LAYOUTS = {"tp": "-tp", "pp": "-pp", "dp": "-dp", "dcp": "-dcp"}
HOW_MUCH = {"h100": (3.0, 747), "h200": (4.2, 747)}


class Run:
    """Of a name such as 8b-tp4-eagle, r1-dp2-tp2-ep-mtp3, 8b-tp4-nccl."""

    def __init__(self, name):
        words = name.split("-")
        if words[0] not in TARGETS:
            raise argparse.ArgumentTypeError(f"{name!r} begins with none of {', '.join(TARGETS)}")
        self.name = name
        target, self.head, self.bytes, options, self.batches = TARGETS[words[0]]
        self.folder = CONFIGS / target
        self.options = list(options)
        self.sizes = {"tp": 1, "pp": 1, "dp": 1, "dcp": 1}
        self.deals_experts = False
        self.method, self.rates = None, []
        for word in words[1:]:
            self.read(word)
        experts = self.deals_experts or self.sizes["dp"] > 1
        self.layout = rank_floor.Layout(self.sizes["tp"], self.sizes["pp"], self.sizes["dp"], experts)

    def read(self, word):
        kind = word.rstrip("0123456789")
        if kind in LAYOUTS and word != kind:
            self.sizes[kind] = int(word[len(kind):])
            self.options += [LAYOUTS[kind], word[len(kind):]]
        elif word == "ep":
            self.deals_experts = True
            self.options.append("-ep")
        elif word == "nccl":
            self.options.append("--disable-custom-all-reduce")
        elif word in ("eagle", "mtp1", "mtp3"):
            self.method = word.rstrip("13")
            self.rates = [0.8] if word == "mtp1" else RATES
        else:
            raise argparse.ArgumentTypeError(f"{self.name!r}: {word!r} is unknown")

    def speculation(self):
        if self.method is None:
            return []
        fields = {"method": self.method, "num_speculative_tokens": len(self.rates),
                  "rejection_sample_method": "synthetic", "synthetic_acceptance_rates": self.rates}
        if self.method == "eagle":
            fields["model"] = str(CONFIGS / self.head)
        return ["-sc", json.dumps(fields), "--variants", "adaptive"]

    def command(self, args, folder, file):
        batches = args.batches or self.batches
        return [args.bin, "bench", "decode", "--device", "cuda", "--model", str(folder), "--load-format", "dummy",
                "--skip-tokenizer-init", "--max-model-len", "2048", "--max-num-seqs", str(max(batches)),
                "--batch-sizes", ",".join(map(str, batches)), "--input-lens", str(INPUT_LEN),
                "--output-len", str(args.output_len), "--num-iters", str(args.iters), "--log-level", "error",
                "--output-json", str(file), *self.options, *self.speculation(), *args.more]

    def floor_ms(self, args, folder, batch, drafts):
        """The least ms per token of a sequence: of the steps as they were, with the drafts that they made."""
        steps = max(drafts["steps"], 1)
        drafted = drafts["drafted_tokens"] / steps
        context = INPUT_LEN + args.output_len / 2
        card = rank_floor.Card(args.read_tb_s, args.tflops)
        seconds = rank_floor.forward(folder, self.bytes, self.layout, card, batch, 1 + drafted, context)
        if self.method is not None:
            head = folder if self.head is None else CONFIGS / self.head
            seconds += drafted * rank_floor.forward(head, self.bytes, self.layout, card, batch, 1, context,
                                                    module=self.head is None)
        return seconds * 1e3 * steps / drafts["output_tokens"]


def target_folder(args, run, temporary):
    """Of the config, with as many layers as asked for."""
    if args.layers is None:
        return run.folder
    config = json.loads((run.folder / "config.json").read_text(encoding="utf-8"))
    config["num_hidden_layers"] = args.layers
    folder = pathlib.Path(temporary) / run.folder.name
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def measure(args, run, deadline):
    """{batch: (ms, percent of the floor)} and the seconds of its start."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = target_folder(args, run, temporary)
        file = pathlib.Path(temporary) / "decode.json"
        process = subprocess.Popen(run.command(args, folder, file), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        watchdog = threading.Timer(max(deadline - time.monotonic(), 0), process.kill)
        watchdog.start()
        for line in process.stdout:
            print(f"  {line.rstrip()}", flush=True)
        if process.wait() != 0:
            print(f"  {run.name}: ended with {process.returncode}", flush=True)
        watchdog.cancel()
        if not file.exists():
            return {}, None
        result = json.loads(file.read_text(encoding="utf-8"))
        cells = {}
        for size in result["sizes"]:
            variant = size["variants"][0]
            least = run.floor_ms(args, folder, size["batch_size"], variant["drafts"])
            cells[size["batch_size"]] = (variant["ms_per_token"], 100 * least / variant["ms_per_token"])
        return cells, next(iter(result["load_seconds"].values()))


def table(rows):
    batches = sorted({batch for cells, _ in rows.values() for batch in cells})
    lines = ["| run | " + " | ".join(map(str, batches)) + " | start, s |", "|" + "---|" * (len(batches) + 2)]
    for name, (cells, start) in rows.items():
        texts = [f"{cells[batch][0]:.3f}, {cells[batch][1]:.0f} %" if batch in cells else "-" for batch in batches]
        lines.append(f"| {name} | " + " | ".join(texts) + f" | {'-' if start is None else f'{start:.1f}'} |")
    return "\n".join(lines)


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the foretoken command")
    parser.add_argument("--runs", required=True, type=lambda text: [Run(name) for name in text.split(",")],
                        help="such as 8b-tp4, 70b-tp4-eagle, r1-dp4-ep-mtp1, 8b-pp4, 8b-tp4-nccl")
    parser.add_argument("--card", choices=HOW_MUCH, default="h100", help="whose rates the floor has (default: %(default)s)")
    parser.add_argument("--read-tb-s", type=float, help="read bandwidth, TB/s (default: of the card)")
    parser.add_argument("--tflops", type=float, help="rate of matrix products (default: likewise)")
    parser.add_argument("--batches", type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("--layers", type=int, help="of the target (default: as its config has)")
    parser.add_argument("--output-len", type=int, default=272)
    parser.add_argument("--iters", type=int, default=1)
    parser.add_argument("--deadline", type=float, default=1e9, help="seconds (default: none)")
    parser.add_argument("more", nargs="*", help="after --: more options of bench decode")
    return parser


def main():
    args = make_parser().parse_args()
    known = HOW_MUCH[args.card]
    args.read_tb_s, args.tflops = args.read_tb_s or known[0], args.tflops or known[1]
    begin = time.monotonic()
    rows = {}
    for run in args.runs:
        if time.monotonic() - begin > args.deadline:
            print(f"{run.name}: no time is left", flush=True)
            continue
        print(f"{run.name}:", flush=True)
        start = time.monotonic()
        rows[run.name] = measure(args, run, begin + args.deadline)
        print(f"  {time.monotonic() - start:.1f} s in all\n{table(rows)}", flush=True)
    return 0 if any(cells for cells, _ in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
