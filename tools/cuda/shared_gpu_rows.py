#!/usr/bin/env python3
"""Rows 14 to 18 of the support matrix with all their ranks on one GPU.

    tools/cuda/shared_gpu_rows.py --bin build/cuda-release --out OUT
    tools/cuda/shared_gpu_rows.py --bin build/cpu-release --out OUT --device cpu --num-prompts 24     a trial

Eight ranks are eight processes that take turns on the GPU, so that no time says anything; layouts, exchanges and
memory are those of eight GPUs. The model has R1's widths with three layers and some of its experts, in FP8 blocks, and a
module that agrees with it on a share of ids. For each row: each prompt with MTP and without, side by side: the texts
are equal, drafted and accepted with one and two steps in flight, and the GPU's memory does not grow. Then a rank is killed, and one is
stopped: the first rank ends and names it. Row 14's FlashMLA is built where its source is given: --flashmla runs it, else row 14
is left out, as row 16 has what serves in its place. What was found stands in OUT/rows.md. Standard library only."""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from gpu_ranks_suite import Group  # noqa: E402

ROWS = {14: ("TP", "flashmla"), 15: ("TP", "portable_mla"), 16: ("TP", "flash_mla"), 17: ("TP DCP", "flash_mla"),
        18: ("DP EP", "flash_mla")}
R1 = "--hidden 7168 --heads 128 --head-dim 128 --vocab 129280 --intermediate 18432 --q-rank 1536 --kv-rank 512"
R1 += " --rope-dim 64 --experts-per-token 8 --expert-size 2048 --layers 3"
TINY = "--hidden 64 --heads 8 --kv-rank 512 --rope-dim 64 --experts-per-token 2 --expert-size 256 --layers 2"
FAULT_SECONDS = 10
FREE_SECONDS = 60
FREE_MIB = 2048  # what a GPU has in use that nobody computes on, at most
NUM_TOKENS = 16
DRAFTED = re.compile(r"\((\d+) of (\d+) drafted tokens\)")


class Rows:
    def __init__(self, args):
        self.args = args
        self.out = pathlib.Path(args.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.program = str(pathlib.Path(args.bin).resolve() / "foretoken")
        self.is_gpu = args.device == "cuda"
        self.model = self.out / "model"
        self.prompts = self.out / "prompts.jsonl"
        self.faults = []

    def tell(self, line):
        print(line, flush=True)
        with (self.out / "rows.md").open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def write_model(self):
        if self.model.exists():
            return
        shape = (R1 if self.is_gpu else TINY).split()
        shape += ["--experts", str(self.args.experts), "--architecture", "DeepseekV3ForCausalLM"]
        shape += ["--dtype", "bfloat16" if self.is_gpu else "float32", "--prompts", str(self.args.num_prompts)]
        shape += ["--mtp-modules", "1", "--mtp-agreement", "0.7", "--output-tokens", str(NUM_TOKENS)]
        begin = time.monotonic()
        subprocess.run([f"{self.program}-dial", str(self.model), *shape], check=True)
        prompts = (self.model / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
        with self.prompts.open("w", encoding="utf-8") as file:
            for i, line in enumerate(prompts):
                ids = json.loads(line)["prompt_token_ids"][-64:]
                request = {"prompt_token_ids": ids, "max_tokens": NUM_TOKENS, "ignore_eos": True, "temperature": 0}
                for name, speculative in (("drafts", {"method": "mtp"}), ("none", {"enabled": False})):
                    own = {"request_id": f"{name} {i}", "speculative": speculative}
                    file.write(json.dumps({**request, **own}) + "\n")
        print(f"the model took {time.monotonic() - begin:.0f} s", flush=True)

    def layout(self, name):
        ranks = str(self.args.ranks)
        return {"TP": ["-tp", ranks], "TP DCP": ["-tp", ranks, "-dcp", ranks], "DP EP": ["-dp", ranks, "-ep"]}[name]

    def group(self, layout, family, in_flight, requests):
        common = ["--device", self.args.device, "--max-model-len", "256", "--max-num-seqs", "256"]
        common += ["--max-num-batched-tokens", "1024", "--steps-in-flight", str(in_flight)]
        if self.is_gpu:
            # What one rank takes of the GPU may not go by what is free, which others take, too.
            common += ["--quantization", "fp8", "--num-gpu-blocks-override", "5000", "--attention-backend", family]
            if family == "flashmla":
                common += ["--block-size", "64", "--batch-invariant", "off"]
        else:
            common += ["--cpu-threads", "1", "--dtype", "float32"]
        fields = {"method": "mtp", "num_speculative_tokens": 1, "length_policy": "fixed"}
        command = ["generate", str(self.model), "--json", "--jsonl", str(requests), "--skip-tokenizer-init"]
        command += ["-sc", json.dumps(fields)]
        return Group(self.program, command, self.args.ranks, False, self.layout(layout), common)

    def run(self, what, layout, family, in_flight):
        """Ids by request, (accepted, drafted) and the growth of the GPU's memory in the second half, in MiB."""
        if self.is_gpu:
            wait_until_free()
        memory, begin = Memory(self.is_gpu), time.monotonic()
        results = self.group(layout, family, in_flight, self.prompts).outputs(self.args.time_limit)
        grown = memory.growth()
        for rank, (code, _, err) in enumerate(results):
            (self.out / f"{what}.{rank}.log".replace(" ", "-")).write_text(err, encoding="utf-8")
        bad = [(rank, err.strip()[-300:]) for rank, (code, _, err) in enumerate(results) if code != 0]
        if bad:
            # Of every rank, as the one that failed first need not be the first of them.
            raise RuntimeError(f"{what}: " + "; ".join(f"rank {rank}: {said}" for rank, said in bad))
        texts = {}
        for line in results[0][1].splitlines():
            output = json.loads(line)
            texts[output["request_id"]] = output["token_ids"]
        counts = DRAFTED.search(results[0][2])
        print(f"{what}: {len(texts)} prompts in {time.monotonic() - begin:.0f} s", flush=True)
        return texts, counts and tuple(map(int, counts.groups())), grown

    def row(self, number):
        layout, family = ROWS[number]
        two, counts, grown = self.run(f"row {number} two", layout, family, 2)
        one, counts_of_one, _ = self.run(f"row {number} one", layout, family, 1)
        plain = {i: two[f"none {i}"] for i in range(self.args.num_prompts)}
        differing = [sum(plain[i] != texts[f"drafts {i}"] for i in plain) for texts in (two, one)]
        good = differing == [0, 0] and counts is not None and counts == counts_of_one and (grown or 0) <= 64
        self.tell(f"| {number} | {layout} {self.args.ranks} | {family} | {len(plain)} | {differing[0]}, {differing[1]} |"
                  f" {counts}, {counts_of_one} | {grown} MiB | {'holds' if good else 'does not hold'} |")
        if not good:
            self.faults.append(f"row {number}")
        return plain

    def fault(self, layout, what):
        """Rank 3 is killed or stopped once the first rank has begun to put out."""
        many = self.out / "many.jsonl"
        lines = self.prompts.read_text(encoding="utf-8").splitlines()
        with many.open("w", encoding="utf-8") as file:
            for i in range(10000 // len(lines) + 1):
                file.writelines(re.sub(r'"request_id": "', f'"request_id": "{i} ', line) + "\n" for line in lines)
        if self.is_gpu:
            wait_until_free()
        group = self.group(layout, "flash_mla", 2, many)
        log = group.wait_for_start(self.args.time_limit)
        time.sleep(3)
        group.processes[3].send_signal(what)
        begin = time.monotonic()
        try:
            # Standard output is read, so that no rank waits for whoever reads it.
            _, err = group.processes[0].communicate(timeout=60)
        except subprocess.TimeoutExpired:
            err = "(it did not end)"
        seconds = time.monotonic() - begin
        group.kill()
        told = [line for line in (log + err).splitlines() if "rank 3" in line]
        good = seconds <= FAULT_SECONDS and group.processes[0].returncode == 1 and told
        self.tell(f"- {layout} {self.args.ranks}, {signal.Signals(what).name} of rank 3: rank 0 ended after"
                  f" {seconds:.1f} s: {told[0][-200:] if told else err[-300:]}")
        if not good:
            self.faults.append(f"{layout} {signal.Signals(what).name}")


def used_mib():
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    said = subprocess.run(query, capture_output=True, text=True).stdout.split()
    return int(said[0]) if said else 0


def wait_until_free():
    """What processes held that were killed may be in use for seconds after they have ended."""
    deadline = time.monotonic() + FREE_SECONDS
    while used_mib() > FREE_MIB:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{used_mib()} MiB of the GPU are in use before the ranks start")
        time.sleep(0.5)


class Memory:
    """What the GPU has in use, twice a second, until growth() is asked for."""

    def __init__(self, is_gpu):
        self.samples, self.over = [], threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True) if is_gpu else None
        if self.thread is not None:
            self.thread.start()

    def watch(self):
        while not self.over.wait(0.5):
            self.samples.append(used_mib())

    def growth(self):
        self.over.set()
        if self.thread is None:
            return None
        self.thread.join()
        most = max(self.samples, default=0)
        # From the middle of the time in which every rank was there to its end.
        full = [used for used in self.samples if used > 0.9 * most]
        return full[-1] - full[len(full) // 2] if full else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of foretoken, foretoken-dial and the CUDA plug-in")
    parser.add_argument("--out", required=True, help="folder of the model and of what was found")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--experts", type=int, default=32, help="of a layer (default: 32, of R1's 256)")
    parser.add_argument("--num-prompts", type=int, default=1000)
    parser.add_argument("--rows", default="15,16,17,18")
    parser.add_argument("--flashmla", action="store_true", help="run row 14, too")
    parser.add_argument("--no-faults", action="store_true", help="neither kill nor stop a rank")
    parser.add_argument("--time-limit", type=float, default=120, help="seconds of one run")
    rows = Rows(parser.parse_args())
    rows.write_model()
    rows.tell("\n| row | layout | attention | prompts | texts that differ with MTP, two and one step in flight |"
              " accepted of drafted | memory's growth | |\n|---|---|---|---|---|---|---|---|")
    plain = {}
    for number in [*([14] if rows.args.flashmla else []), *map(int, rows.args.rows.split(","))]:
        try:
            plain[number] = rows.row(number)
        except (RuntimeError, OSError) as error:
            rows.tell(f"| {number} | {error} |")
            rows.faults.append(f"row {number}")
    for number, texts in plain.items():
        of = min(plain)
        rows.tell(f"- row {number}: {sum(texts[key] != plain[of][key] for key in texts)} texts differ from row {of}'s")
    if not rows.args.no_faults:
        for layout in ("TP", "DP EP"):
            for what in (signal.SIGKILL, signal.SIGSTOP):
                try:
                    rows.fault(layout, what)
                except (RuntimeError, OSError) as error:
                    rows.tell(f"- {layout}, {what.name}: {error}")
                    rows.faults.append(f"{layout} {what.name}")
    if rows.faults:
        rows.tell(f"\nDoes not hold: {', '.join(rows.faults)}")
    return 1 if rows.faults else 0


if __name__ == "__main__":
    sys.exit(main())
