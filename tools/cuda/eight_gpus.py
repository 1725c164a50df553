#!/usr/bin/env python3
"""Rows 14 to 18 of the support matrix, and what large models take, on all GPUs of a host in one call.

    tools/cuda/eight_gpus.py --bin build/cuda-release --out OUT
    tools/cuda/eight_gpus.py --bin build/cpu-release --out OUT --device cpu --num-prompts 40     a trial of eight ranks

exchange  microseconds a step of what ranks send each other, by rows: TP and DP with experts in common (EP)
rows      foretoken matrix, rows 14 to 18: R1's widths with three layers, FP8 blocks, MTP, 1,000 prompts
steps     ms per token of a sequence: R1's shape in FP8 with all layers that fit, TP and DP EP, without drafts and
          with MTP of one and three drafts, beside the floor; drafts are equal with one and two steps in flight
families  the same with the attention and layouts of rows 14, 15 and 17
prompts   1,000 prompts of that depth: the memory of each GPU does not grow
dense     Llama-3-70B's shape, TP, without drafts and with EAGLE
faults    tests/e2e/ranks_suite.py --only eight_ranks: texts, a rank that is killed, one that is stopped

Weights are random but for the rows' (and drafts accepted at given rates), so no checkpoint is needed. What was
found so far stands in OUT/eight.md and OUT/eight.jsonl, a log of each process beside. Exits with 1 where something
failed, and names what --seconds left out: --parts takes up there. Standard library only."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import eight_gpus_floor as limits

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONFIGS = ROOT / "bench" / "configs"
LEAST_SECONDS = 20  # that a process is started with
RATES = [0.8, 0.6, 0.4]
INPUT_LEN, SHORT_LEN = 128, 16
ROWS = range(14, 19)
# Of MTP on random weights; by name: drafts and steps in flight.
VARIANTS = {"none": (0, 2), "MTP1": (1, 2), "MTP1, one step in flight": (1, 1), "MTP3": (3, 2)}


class Place:
    """Where everything runs, and what was found."""

    def __init__(self, args):
        self.args = args
        self.out = pathlib.Path(args.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.program = str(pathlib.Path(args.bin).resolve() / "foretoken")
        self.end = time.monotonic() + args.seconds
        self.ranks = args.ranks
        self.is_gpu = args.device == "cuda"
        self.gpus = limits.gpus() if self.is_gpu else []
        self.faults = []
        self.left_out = []
        self.exchange = {}
        # Outputs, batches: small where ranks are threads of a few cores.
        self.output_len = 272 if self.is_gpu else 24
        self.batches = [1, 16, 64, 256] if self.is_gpu else [1, 4]
        self.latents = limits.write_latents(self.out / "shapes", self.gpus, self.ranks)

    def tell(self, what, **record):
        print(what, flush=True)
        with (self.out / "eight.md").open("a", encoding="utf-8") as file:
            file.write(what + "\n")
        if record:
            with (self.out / "eight.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    def fail(self, what):
        self.faults.append(what)
        self.tell(f"- **failed**: {what}")

    def noise_hid_times(self, sizes, file):
        """Whether every one of the `sizes` ran and some have no figure, which is no finding where ranks share a few
        cores with whatever else runs there; their reasons are told."""
        if self.is_gpu or not file.exists():
            return False
        found = json.loads(file.read_text(encoding="utf-8"))
        for size in found["unmeasured"]:
            print(f"- stands for: {size['reason']}", flush=True)
        return bool(found["unmeasured"]) and len(found["sizes"]) + len(found["unmeasured"]) == sizes

    def run_decode(self, name, words, file):
        """Like `run`, of `bench decode`, which writes `file`."""
        file.unlink(missing_ok=True)
        sizes = words[words.index("--batch-sizes") + 1].count(",") + 1
        return self.run(name, words, forgiven=lambda: self.noise_hid_times(sizes, file))

    def run(self, name, words, watch=None, forgiven=lambda: False, **environment):
        """Whether the process ended well, or with 1 and `forgiven`; its output is OUT/NAME.log."""
        left = self.end - time.monotonic()
        if left < LEAST_SECONDS:
            self.left_out.append(name)
            return False
        with (self.out / f"{name}.log").open("w", encoding="utf-8") as log:
            print(*words, file=log, flush=True)
            process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT,
                                       env=dict(os.environ, **environment))
            if watch is not None:
                threading.Thread(target=watch, args=(process,), daemon=True).start()
            try:
                code = process.wait(left)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                self.left_out.append(name)
                return False
        if code == 1 and forgiven():
            return True
        if code != 0:
            log = (self.out / f"{name}.log").read_text(encoding="utf-8", errors="replace").strip()
            self.fail(f"{name} ended with {code}: {log[log.rfind(chr(10)) + 1:][:300]}")
        return code == 0


def layout_flags(place, layout):
    ranks = str(place.ranks)
    return {"TP": ["-tp", ranks], "TP DCP": ["-tp", ranks, "-dcp", ranks],
            "DP EP": ["-dp", ranks, "-ep"]}[layout]


def model_flags(place, folder):
    flags = ["--model", str(folder), "--device", place.args.device, "--load-format", "dummy"]
    flags += ["--skip-tokenizer-init", "--log-level", "error"]
    return flags + ([] if place.is_gpu else ["--cpu-threads", "1", "--dtype", "float32"])


def decode_words(place, folder, layout, batches, file):
    return [place.program, "bench", "decode", *model_flags(place, folder), *layout_flags(place, layout),
            "--max-model-len", "1024", "--max-num-seqs", str(max(batches)), "--input-lens", str(INPUT_LEN),
            "--batch-sizes", ",".join(map(str, batches)), "--short-output-len",
            str(SHORT_LEN if place.is_gpu else 4),
            "--output-len", str(place.output_len), "--output-json", str(file), "--num-iters", "1"]


def drafts_flags(method, count, model=None):
    if count == 0:
        return ["--variants", "off"]
    fields = {"method": method, "num_speculative_tokens": count, "length_policy": "fixed",
              "rejection_sample_method": "synthetic", "synthetic_acceptance_rates": RATES[:count]}
    if model is not None:
        fields["model"] = str(model)
    return ["-sc", json.dumps(fields)]


def read_sizes(file):
    """The variant of each batch size that has figures; what was measured before an error counts."""
    if not file.exists():
        return {}
    sizes = json.loads(file.read_text(encoding="utf-8"))["sizes"]
    return {size["batch_size"]: size["variants"][0] for size in sizes}


def measure(place, name, folder, layout, batches, flags, label, module=None, columns=None):
    """A line of the table: ms per token of a sequence, and the share of the floor where GPUs have one."""
    file = place.out / f"{name}.json"
    place.run_decode(name, decode_words(place, folder, layout, batches, file) + flags, file)
    sizes = read_sizes(file)
    cells = []
    for batch in columns or batches:
        if batch not in sizes:
            cells.append("-")
            continue
        found = sizes[batch]
        floor = None
        if place.is_gpu:
            floor = limits.floor_ms(place, folder, layout, batch, found["drafts"], module,
                                    INPUT_LEN + (SHORT_LEN + place.output_len) / 2)
        share = f", {100 * floor / found['ms_per_token']:.0f} %" if floor else ""
        cells.append(f"{found['ms_per_token']:.2f}{share}")
    place.tell(f"| {label} | " + " | ".join(cells) + " |", name=name, label=label, sizes=sizes)
    return sizes


def table_head(place, title, batches):
    place.tell(f"\n{title}\n\n| run | " + " | ".join(map(str, batches)) + " |\n|" + "---|" * (len(batches) + 1))


def exchange(place):
    """Ops one by one, with times of their own: an op that exchanges waits for the last rank."""
    for layout in ("TP", "DP EP"):
        name = "exchange-" + layout.replace(" ", "-").lower()
        trace = place.out / f"{name}.trace"
        file = place.out / f"{name}.json"
        words = decode_words(place, place.latents, layout, place.batches, file)
        words[words.index("--output-len") + 1] = "24"
        words[words.index("--short-output-len") + 1] = "4"
        words += ["--variants", "off", "--enforce-eager", "--profile", str(trace)]
        words += quantised(place)
        if place.run_decode(name, words, file):
            place.exchange[layout] = limits.exchange_us(trace)
            for rows, ops in sorted(place.exchange[layout].items()):
                told = ", ".join(f"{op} {count:g} x {us:.1f}" for op, (count, us) in sorted(ops.items()))
                place.tell(f"- {layout}, a step of {rows} rows, us: {told}", layout=layout, rows=rows, ops=ops)


def quantised(place):
    return ["--quantization", "fp8"] if place.is_gpu else []


def rows(place):
    printed = subprocess.run([place.program, "matrix", "--print-cells", "--device", place.args.device,
                              "--max-ranks", str(place.ranks)], capture_output=True, text=True, check=True)
    cells = [cell for cell in json.loads(printed.stdout) if cell["row"] in ROWS]
    for cell in cells:
        cell["quantization"] = "fp8"
        file = place.out / f"row{cell['row']}.cells.json"
        file.write_text(json.dumps([cell]), encoding="utf-8")
        report = place.out / f"row{cell['row']}"
        pathlib.Path(f"{report}.jsonl").unlink(missing_ok=True)
        words = [place.program, "matrix", "--device", place.args.device, "--rows", str(file), "--max-ranks",
                 str(place.ranks), "--size", "r1" if place.is_gpu else "tiny", "--time-limit", "400",
                 "--num-prompts", str(place.args.num_prompts), "--output", str(report),
                 "--work-folder", place.args.work_folder or str(place.out / "models")]
        place.run(f"row{cell['row']}", words)
        if pathlib.Path(f"{report}.md").exists():
            lines = pathlib.Path(f"{report}.md").read_text(encoding="utf-8").splitlines()
            place.tell(next((line for line in lines if line.startswith(f"| {cell['row']} |")), ""))


def steps(place):
    table_head(place, f"{place.latents.name}: ms per token of a sequence", place.batches)
    for layout in ("TP", "DP EP"):
        found = {}
        for label, (drafts, in_flight) in VARIANTS.items():
            batches = place.batches if in_flight == 2 else place.batches[1:2]
            flags = [*quantised(place), *drafts_flags("mtp", drafts), "--steps-in-flight", str(in_flight)]
            name = f"steps-{layout}-{label}".replace(" ", "-").replace(",", "").lower()
            found[label] = measure(place, name, place.latents, layout, batches, flags, f"{layout}, {label}",
                                   module=drafts > 0, columns=place.batches)
        check_counts(place, layout, found)


def check_counts(place, layout, found):
    """Drafted and accepted with one and two steps in flight, in as many runs: each run has the same."""
    names = ("drafted_tokens", "accepted_tokens", "output_tokens")
    for batch, one in found["MTP1, one step in flight"].items():
        two = found["MTP1"].get(batch)
        if two is None:
            continue
        counts = [[run["drafts"][name] / len(run["long_seconds"]) for name in names] for run in (one, two)]
        if counts[0] != counts[1]:
            place.fail(f"{layout}, {batch} sequences: with one and two steps in flight {counts} were drafted, "
                       "accepted and put out")


def families(place):
    batches = place.batches[::2]
    table_head(place, "MTP1 as rows 14, 15 and 17 have it", batches)
    cases = [("flashmla", "TP"), ("portable_mla", "TP"), ("flash_mla", "TP DCP")]
    for family, layout in cases if place.is_gpu else [("portable_mla", "TP"), ("portable_mla", "TP DCP")]:
        flags = [*quantised(place), *drafts_flags("mtp", 1), "--attention-backend", family]
        if family == "flashmla":
            flags += ["--block-size", "64", "--batch-invariant", "off"]
        measure(place, f"families-{family}-{layout}".replace(" ", "-").lower(), place.latents, layout, batches,
                flags, f"{layout}, {family}", module=True)


def prompts(place):
    for layout in ("TP", "DP EP"):
        name = f"prompts-{layout}".replace(" ", "-").lower()
        samples = []
        words = [place.program, "bench", "throughput", *model_flags(place, place.latents),
                 *layout_flags(place, layout), *quantised(place), *drafts_flags("mtp", 1), "--dataset-name", "random",
                 "--input-len", str(INPUT_LEN), "--output-len", "64" if place.is_gpu else "16",
                 "--num-prompts", str(place.args.num_prompts),
                 "--max-model-len", "1024", "--max-num-seqs", "256" if place.is_gpu else "8", "--disable-detokenize",
                 "--no-enable-prefix-caching", "--output-json", str(place.out / f"{name}.json")]
        if not place.run(name, words, watch=lambda process, to=samples: limits.watch_memory(process, to)):
            continue
        grown = limits.growth(samples)
        place.tell(f"- {layout}: {place.args.num_prompts} prompts, MiB at most {limits.most(samples)}, grown in the "
                   f"last quarter by {grown}", layout=layout, grown_mib=grown, samples=len(samples))
        # On a CPU the samples are of seconds, and most of a start.
        if place.is_gpu and grown is not None and grown > 64:
            place.fail(f"{name}: memory grows, by {grown} MiB in the last quarter")


def dense(place):
    target, head = CONFIGS / "llama-3-70b", CONFIGS / "llama-3-70b-eagle"
    if not place.is_gpu:
        target, head = limits.write_tiny_llama(place.out / "shapes")
    table_head(place, f"{target.name}, TP{place.ranks}: ms per token of a sequence", place.batches)
    for label, count in (("none", 0), ("EAGLE, three drafts", 3)):
        measure(place, f"dense-{label[:5].lower()}", target, "TP", place.batches,
                drafts_flags("eagle", count, head), label, module=head if count else None)


def faults(place):
    words = [sys.executable, str(ROOT / "tests" / "e2e" / "ranks_suite.py"), place.program, "--only", "eight_ranks"]
    if place.run("faults", words, FORETOKEN_TEST_DEVICE=place.args.device):
        log = (place.out / "faults.log").read_text(encoding="utf-8")
        place.tell("\n".join("-" + line[1:] for line in log.splitlines() if line.startswith("  ")))


PARTS = {part.__name__: part for part in (exchange, rows, steps, families, prompts, dense, faults)}


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of foretoken, foretoken-dial and the CUDA plug-in")
    parser.add_argument("--out", required=True, help="folder of what was found")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--ranks", type=int, default=8, choices=[2, 4, 8], help="GPUs (default: 8)")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--num-prompts", type=int, default=1000, help="of a row (default: 1000)")
    parser.add_argument("--seconds", type=float, default=570, help="for everything (default: 570)")
    parser.add_argument("--work-folder", help="of the rows' checkpoints, 20 GB with GPUs (default: in --out)")
    return parser


def main():
    parser = make_parser()
    args = parser.parse_args()
    parts = args.parts.split(",")
    for name in parts:
        if name not in PARTS:
            parser.error(f"--parts: '{name}' is unknown; there are {', '.join(PARTS)}")
    for name in ("foretoken", "foretoken-dial"):
        if not os.access(pathlib.Path(args.bin) / name, os.X_OK):
            parser.error(f"--bin: {args.bin} holds no {name}; ./quickstart builds both")
    if args.device == "cuda" and len(limits.gpus()) < args.ranks:
        parser.error(f"--ranks {args.ranks}: this host has {len(limits.gpus())} GPUs; give fewer, or --device cpu")
    place = Place(args)
    for name in parts:
        begin = time.monotonic()
        place.tell(f"\n## {name}\n")
        PARTS[name](place)
        print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
    if place.left_out:
        place.tell(f"\nNot reached in {args.seconds:.0f} s: {', '.join(place.left_out)}")
    return 1 if place.faults or place.left_out else 0


if __name__ == "__main__":
    sys.exit(main())
