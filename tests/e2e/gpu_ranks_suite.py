#!/usr/bin/env python3
"""Ranks on GPUs that are processes of several hosts: gpu_ranks_suite.py PROGRAM [--only PART ...]

Tensor parallel ranks and stages exchange through NCCL as ranks on several hosts do (NCCL_HOSTID makes
each process a host of its own), and through each other's memory as processes of one host do. Both give
the same text, with every drafter, greedy and sampled, under grammars, with graphs and without. Then a
rank is killed under load. One GPU is enough: the processes take turns on it, which makes a step slow.
Skips (77) without a GPU, the CUDA plug-in or NCCL.
"""

import argparse
import concurrent.futures
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from ranks_common import METHODS, MODELS, PROMPTS, drafters, expect, num_gpus

SKIPPED = 77
MODEL = str(MODELS / "foretoken-7m")
PATIENCE = 300  # seconds for one start with all its requests
LIMIT = 120  # from the end of a rank to the end of the others, however busy the machine is
STARTED = "KV blocks of"  # of the line that rank 0 logs when its engine has started
GRAMMARS = ["( [a-z]{1,6}){2,3}\\.", "[A-Z]{3,8}"]
COMMON = ["--device", "cuda", "--dtype", "float32", "--max-model-len", "256", "--max-num-seqs", "8"]
COMMON += ["--max-num-batched-tokens", "64", "--num-gpu-blocks-override", "256"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def requests():
    """Each prompt greedy and sampled, without drafts and with each drafter."""
    for method in ["none", *METHODS]:
        speculative = {"enabled": False} if method == "none" else {"method": method}
        for i, prompt in enumerate(PROMPTS):
            for temperature in (0, 0.8):
                wanted = {"prompt": prompt, "temperature": temperature, "seed": 100 + i}
                yield {"request_id": f"{method} {i} {temperature}", "speculative": speculative, **wanted}


class Group:
    """The processes of one engine, a rank each."""

    def __init__(self, program, command, size, nccl, extra, common=COMMON):
        self.processes = []
        port = free_port()
        gpus = max(num_gpus(), 1)
        for rank in range(size):
            environment = dict(os.environ, CUDA_VISIBLE_DEVICES=str(rank % gpus))
            flags = ["--nnodes", str(size), "--node-rank", str(rank)]
            flags += ["--master-addr", "127.0.0.1", "--master-port", str(port)]
            if nccl:
                environment.update(NCCL_HOSTID=f"host {rank}", NCCL_SOCKET_IFNAME="lo")
                flags.append("--disable-custom-all-reduce")
            self.processes.append(
                subprocess.Popen(
                    [program, *command, *common, *flags, *extra],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )

    def outputs(self, patience):
        """(exit code, stdout, stderr) of each rank; all are killed when they take too long."""
        with concurrent.futures.ThreadPoolExecutor(len(self.processes)) as readers:
            # All at once: a rank whose outputs nobody reads would wait, and the others for it.
            reads = [readers.submit(process.communicate, timeout=patience) for process in self.processes]
            late = concurrent.futures.wait(reads, patience + 1)[1]
            late |= {read for read in reads if read.done() and read.exception() is not None}
            if late:
                self.kill()
        results = []
        for process, read in zip(self.processes, reads):
            out, err = process.communicate() if read.exception() is not None else read.result()
            results.append((process.returncode, out, err + (f"\n(killed after {patience} s)" if read in late else "")))
        return results

    def wait_for_start(self, patience):
        """Reads rank 0's log up to the line that says what engine has started; returns it."""
        log = ""
        watchdog = threading.Timer(patience, self.kill)
        watchdog.start()
        for line in self.processes[0].stderr:
            log += line
            if STARTED in line:
                break
        watchdog.cancel()
        return log

    def kill(self):
        for process in self.processes:
            process.kill()


class Suite:
    def __init__(self, program):
        self.program = os.path.abspath(program)
        self.folder = tempfile.TemporaryDirectory()
        self.requests = os.path.join(self.folder.name, "requests.jsonl")
        self.ids = [request["request_id"] for request in requests()]
        with open(self.requests, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(request) + "\n" for request in requests())

    def command(self, tp, num_tokens):
        flags = ["--json", "--max-tokens", str(num_tokens), "--jsonl", self.requests]
        return ["generate", MODEL, *flags, *drafters(tp)]

    def texts(self, lines, what):
        found = {output["request_id"]: output["token_ids"] for output in map(json.loads, lines.splitlines())}
        expect(sorted(found) == sorted(self.ids), f"{what}: {len(found)} outputs\n{lines}")
        return found

    def of_one(self):
        command = [self.program, *self.command(1, 24), *COMMON]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        expect(done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}")
        return self.texts(done.stdout, "one rank")

    def of_group(self, flags, size, nccl, extra=()):
        tp = int(flags[flags.index("-tp") + 1]) if "-tp" in flags else 1
        begin = time.monotonic()
        results = Group(self.program, self.command(tp, 24), size, nccl, [*flags, *extra]).outputs(PATIENCE)
        what = f"{' '.join([*flags, *extra])}, {'NCCL' if nccl else 'peer memory'}"
        logs = "\n".join(f"rank {rank}: {code}\n{err}" for rank, (code, _, err) in enumerate(results))
        expect(all(code == 0 for code, _, _ in results), f"{what}:\n{logs}")
        route = "exchange through NCCL" if nccl else "exchange through each other's memory"
        expect(route in results[0][2], f"{what}: does not say that ranks {route}:\n{logs}")
        print(f"  {what}: {time.monotonic() - begin:.1f} s", flush=True)
        return self.texts(results[0][1], what)

    @staticmethod
    def same(texts, reference, what, allowed=0):
        differing = [key for key in reference if texts[key] != reference[key]]
        print(f"  {what}: {len(differing)} of {len(reference)} texts differ", flush=True)
        expect(len(differing) <= allowed, f"{what}: {[(k, texts[k], reference[k]) for k in differing]}")

    def tensor(self):
        """Sums in the order of ranks by both routes: the same bits."""
        through_memory = self.of_group(["-tp", "2"], 2, nccl=False)
        self.same(through_memory, self.of_one(), "peer memory beside one rank", allowed=2)
        for extra in ([], ["--enforce-eager"]):
            through_nccl = self.of_group(["-tp", "2"], 2, nccl=True, extra=extra)
            self.same(through_nccl, through_memory, "NCCL beside peer memory")

    def stages(self):
        one = self.of_one()
        for flags, size in ((["-pp", "2"], 2), (["-tp", "2", "-pp", "2"], 4)):
            through_nccl = self.of_group(flags, size, nccl=True)
            self.same(through_nccl, one, "NCCL beside one rank", allowed=2 if "-tp" in flags else 0)

    def served(self, process_of, port):
        """Texts under a grammar, by drafter, from a server that process_of() gives."""
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"{url}/health", timeout=5).close()
                break
            except OSError:
                expect(process_of().poll() is None and time.monotonic() < deadline, "the server did not start")
                time.sleep(0.5)
        texts = {}
        for method in ["none", *METHODS]:
            for i, regex in enumerate(GRAMMARS):
                body = {"model": "foretoken-7m", "prompt": PROMPTS[0], "temperature": 0, "max_tokens": 24}
                body["structured_outputs"] = {"regex": regex}
                body["speculative"] = {"enabled": False} if method == "none" else {"method": method}
                request = urllib.request.Request(
                    f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
                )
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    texts[f"{method} {i}"] = json.load(answer)["choices"][0]["text"]
        return texts

    def masks(self):
        texts = []
        for size in (1, 2):
            port = free_port()
            serve = ["serve", MODEL, "--served-model-name", "foretoken-7m"]
            serve += ["--port", str(port), *drafters(size)]
            group = Group(self.program, serve, size, size > 1, ["-tp", str(size)])
            try:
                texts.append(self.served(lambda: group.processes[0], port))
            except (AssertionError, OSError) as error:
                group.kill()
                raise AssertionError(f"{error}\n{group.outputs(LIMIT)}") from error
            for process in group.processes:
                process.terminate()
            group.outputs(LIMIT)
        for key, text in texts[1].items():
            expect(re.fullmatch(GRAMMARS[int(key[-1])], text), f"{key}: {text!r} does not match")
        self.same(texts[1], texts[0], "NCCL beside one rank, under grammars")

    def killed(self):
        """Rank 1 is killed once the engine has started, with work at hand that takes minutes."""
        many = os.path.join(self.folder.name, "many.jsonl")
        with open(many, "w", encoding="utf-8") as file:
            for i in range(20000):
                file.write(json.dumps({"request_id": str(i), "prompt": PROMPTS[i % len(PROMPTS)]}) + "\n")
        command = ["generate", MODEL, "--json", "--ignore-eos", "--max-tokens", "200", "--jsonl", many]
        for nccl in (False, True):
            group = Group(self.program, [*command, *drafters(2)], 2, nccl, ["-tp", "2"])
            log = group.wait_for_start(PATIENCE)
            alive = group.processes[0].poll() is None
            group.processes[1].kill()
            begin = time.monotonic()
            code, _, err = group.outputs(LIMIT)[0]
            expect(alive and code == 1 and "rank 1" in err, f"rank 0 ended with {code}, {alive=}:\n{log}{err}")
            print(f"  rank 1 killed: rank 0 ends after {time.monotonic() - begin:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--only", nargs="*", default=["tensor", "stages", "masks", "killed"])
    arguments = parser.parse_args()
    probe = [arguments.program, "generate", MODEL, "--device", "cuda", "--max-tokens", "1"]
    probe += ["--prompt", "a"]
    if num_gpus() == 0 or subprocess.run(probe, capture_output=True).returncode != 0:
        print("SKIPPED: no GPU, or the CUDA plug-in cannot be opened")
        sys.exit(SKIPPED)
    suite = Suite(arguments.program)
    for part in arguments.only:
        print(part, flush=True)
        getattr(suite, part)()
    print("all parts hold")


if __name__ == "__main__":
    main()
