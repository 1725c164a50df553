#!/usr/bin/env python3
"""The program on several ranks: ranks_suite.py PROGRAM [--rounds N] [--starts N] [--only PART ...]

Tensor parallel ranks and stages as threads and as processes, data parallel engines, two hosts (network
namespaces) started by hand and by mpirun: each is started once with four drafters that requests
choose from, and gives the text of one rank without drafts, greedy and sampled; ranks that share the
positions of a sequence, too. Then a server under random starts and aborts, with idle times; then
ranks that are killed and stopped under load.

FORETOKEN_TEST_DEVICE=cuda takes a GPU for each rank, and passes over layouts for which there are too
few. There a sum over ranks may round otherwise than on one, so that 2 texts may differ.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import network_spaces
from ranks_common import (
    ALLOWED,
    COMMON,
    FAULT_LIMIT,
    LANES,
    LATENT_METHODS,
    LIMIT,
    METHODS,
    ON_GPUS,
    PATIENCE,
    PROCESSES,
    PROMPTS,
    SKIPPED,
    Server,
    drafters,
    expect,
    gpus_of_host,
    has_nccl,
    latent_flags,
    num_gpus,
    num_ranks,
    tp_of,
    two_hosts_flags,
)


class Suite:
    def __init__(self, arguments):
        self.program = os.path.abspath(arguments.program)
        self.rounds = arguments.rounds
        self.starts = arguments.starts
        self.skipped = 0
        self.gpus = num_gpus() if ON_GPUS else 0
        self.folder = tempfile.TemporaryDirectory()
        self.requests = self.write_requests(METHODS)

    def write_requests(self, methods):
        path = os.path.join(self.folder.name, f"{'-'.join(methods)}.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for request in self.all_requests(methods):
                file.write(json.dumps(request) + "\n")
        return path

    @staticmethod
    def all_requests(methods):
        """Each prompt greedy and sampled, without drafts and with each drafter."""
        for method in ["none", *methods]:
            speculative = {"enabled": False} if method == "none" else {"method": method}
            for i, prompt in enumerate(PROMPTS):
                for temperature in (0, 0.8):
                    yield {
                        "request_id": f"{method} {i} {temperature}",
                        "prompt": prompt,
                        "temperature": temperature,
                        "seed": 100 + i,
                        "speculative": speculative,
                    }

    def lacks_gpus(self, flags):
        """Whether the layout is passed over, which is told."""
        if not ON_GPUS or num_ranks(flags) <= self.gpus:
            return False
        self.skip(" ".join(flags), f"{self.gpus} GPUs")
        return True

    def compare(self, flags, text, reference):
        differing = [key for key in reference if text[key] != reference[key]]
        told = {key: (text[key], reference[key]) for key in differing}
        expect(len(differing) <= ALLOWED, f"{flags}: {told} differ")
        what = f"{len(differing)} texts differ" if differing else "the text of one rank"
        print(f"  {' '.join(flags)}: {what}", flush=True)

    def skip(self, what, why):
        self.skipped += 1
        print(f"SKIPPED {what}: {why}", flush=True)

    def generate_command(self, *flags, program=None):
        command = [program or self.program, "generate", *COMMON, "--dtype", "float32", "--json"]
        command += ["--max-tokens", "24", "--jsonl", self.requests, *drafters(tp_of(flags))]
        return command + list(flags)

    @staticmethod
    def outputs_of(command, environment=None):
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
        expect(done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def text_of(self, command, drafted=True, methods=METHODS, environment=None):
        """What it generates, by request; drafted: each drafter must have had drafts accepted."""
        texts = {}
        accepted = dict.fromkeys(["none", *methods], 0)
        for output in self.outputs_of(command, environment):
            method, prompt = output["request_id"].split(" ", 1)
            texts[method, prompt] = (output["text"], output["token_ids"], output["finish_reason"])
            accepted[method] += output["usage"]["accepted_tokens"]
        expect(len(texts) == len(list(self.all_requests(methods))), f"{command}: {len(texts)} outputs")
        if drafted:
            expect(all((accepted[m] > 0) == (m != "none") for m in accepted), f"{command}: {accepted}")
        return texts

    def reference(self):
        """One rank's text, which must be that without drafts."""
        texts = self.text_of(self.generate_command())
        for (method, prompt), text in texts.items():
            expect(text == texts["none", prompt], f"{method}, {prompt}: {text}")
        return texts

    def layouts(self):
        reference = self.reference()
        for flags in (
            ["-tp", "2"],
            ["-tp", "2", "--distributed-executor-backend", "mp"],
            ["-tp", "8", "--distributed-executor-backend", "mp"],
            ["-tp", "8", "-dcp", "2", "--distributed-executor-backend", "mp"],
            ["-pp", "2", "--distributed-executor-backend", "mp"],
            ["-pp", "4", "--distributed-executor-backend", "mp"],
            ["-tp", "2", "-pp", "2"],
            ["-tp", "2", "-pp", "2", "--distributed-executor-backend", "mp"],
            ["-dp", "2"],
            ["-dp", "2", "-tp", "2"],
            ["-dp", "2", "-tp", "2", "--distributed-executor-backend", "mp"],
        ):
            if not self.lacks_gpus(flags):
                self.compare(flags, self.text_of(self.generate_command(*flags)), reference)
        if ON_GPUS:
            return None
        if shutil.which("mpirun") is None:
            return self.skip("mpirun", "it is not installed (openmpi-bin)")
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np"]
        both = ["-tp", "2", "-pp", "2", "--communicator", "mpi"]
        for count, flags in (("2", ["-tp", "2"]), ("2", ["-tp", "2", "--communicator", "mpi"]), ("4", both)):
            text = self.text_of([*mpirun, count, *self.generate_command(*flags)])
            expect(text == reference, f"mpirun {flags}: another text:\n{text}")
            print(f"  mpirun {' '.join(flags)}: the text of one rank", flush=True)

    def latents_command(self):
        command = [self.program, "generate", *COMMON, *latent_flags(), "--dtype", "float32", "--json"]
        return command + ["--max-tokens", "24", "--jsonl", self.write_requests(LATENT_METHODS)]

    def latents_of_one_rank(self):
        reference = self.text_of(self.latents_command(), methods=LATENT_METHODS)
        for (method, prompt), text in reference.items():
            expect(text == reference["none", prompt], f"{method}, {prompt}: {text}")
        return reference

    def latent_layouts(self, layouts):
        reference = self.latents_of_one_rank()
        for flags in layouts:
            if not self.lacks_gpus(flags):
                text = self.text_of([*self.latents_command(), *flags], methods=LATENT_METHODS)
                self.compare(flags, text, reference)

    def latent_load(self, flags):
        if self.lacks_gpus(flags):
            return
        begin = time.monotonic()
        with Server(self.program, flags, latent_flags(), LATENT_METHODS) as server:
            server.random_load(self.rounds)
            expect(server.get("/health") == 200, "the server is not healthy")
            expect(server.stop() == 0, "exit code")
        elapsed = time.monotonic() - begin
        print(f"  {' '.join(flags)}: {self.rounds} requests, some left early, {elapsed:.1f} s", flush=True)

    def contexts(self):
        self.latent_layouts((
            ["-tp", "2", "-dcp", "2"],
            ["-tp", "2", "-dcp", "2", *PROCESSES],
            ["-tp", "4", "-dcp", "4", "-ep", *PROCESSES],
            ["-tp", "4", "-dcp", "2", "-ep", *PROCESSES],
            ["-dp", "2", "-tp", "2", "-dcp", "2"],
        ))
        self.latent_load(["-tp", "2", "-dcp", "2", *PROCESSES])
        self.faults_of_rank_1(["-tp", "2", "-dcp", "2", *PROCESSES], latent_flags(), LATENT_METHODS)

    def experts(self):
        self.expert_layouts()
        self.expert_load()
        self.expert_faults()

    def expert_layouts(self):
        self.latent_layouts((
            ["-dp", "2", "-ep"],
            ["-dp", "2", "-tp", "2", "-ep"],
            ["-tp", "2", "-ep", *PROCESSES],
            ["-tp", "2", "-pp", "2", "-ep"],
            ["-tp", "2", "-pp", "2", "-ep", *PROCESSES],
            ["-dp", "2", "-pp", "2", "-ep"],
            ["-dp", "2", "-tp", "2", "-ep", *PROCESSES],
            ["-dp", "2", "-pp", "2", "-ep", *PROCESSES],
            ["-dp", "2", "-ep", *LANES],
        ))
        if ON_GPUS:
            self.through_nccl()

    def through_nccl(self):
        if not has_nccl():
            return self.skip("NCCL", "libnccl.so.2 cannot be opened, nor VLLM_NCCL_SO_PATH")
        flags = ["--disable-custom-all-reduce"]
        self.latent_layouts((
            ["-dp", "2", "-ep", *flags],
            ["-dp", "2", "-pp", "2", "-ep", *PROCESSES, *flags],
            ["-dp", "2", "-tp", "2", "-ep", *PROCESSES, *flags],
            ["-tp", "2", "-dcp", "2", *flags],
            ["-tp", "4", "-dcp", "2", "-ep", *PROCESSES, *flags],
        ))
        return None

    def expert_load(self):
        self.latent_load(["-dp", "2", "-ep"])
        if ON_GPUS:
            self.latent_load(["-dp", "2", "-pp", "2", "-ep", *PROCESSES])

    def expert_faults(self):
        self.faults_of_rank_1(["-dp", "2", "-tp", "2", "-ep", *PROCESSES], latent_flags(), LATENT_METHODS)

    def eight_ranks(self):
        """What a host of eight GPUs is for; tools/cuda/eight_gpus.py runs it."""
        self.latent_layouts((["-dp", "4", "-tp", "2", "-ep", *PROCESSES], ["-dp", "8", "-ep", *PROCESSES]))
        self.faults_of_rank_1(["-tp", "8", *PROCESSES])
        self.faults_of_rank_1(["-dp", "4", "-tp", "2", "-ep", *PROCESSES], latent_flags(), LATENT_METHODS)

    def expert_hosts(self):
        """Engines that have experts together on two hosts, which are processes beside each other here."""
        command = self.latents_command()
        reference = self.text_of(command, methods=LATENT_METHODS)
        for layout in (["-dp", "2"], ["-dp", "4"], ["-dp", "2", "-tp", "2"]):
            if self.lacks_gpus(layout):
                continue
            with concurrent.futures.ThreadPoolExecutor() as pool:
                runs = [
                    pool.submit(self.text_of, [*command, *own], True, LATENT_METHODS, gpus_of_host(layout, host))
                    for host, own in enumerate(two_hosts_flags([*layout, "-ep"]))
                ]
                for host, run in enumerate(runs):
                    self.compare([*layout, "-ep", "--nnodes", "2", "--node-rank", str(host)], run.result(), reference)
        if not self.lacks_gpus(["-dp", "2"]):
            self.hosts_that_end_apart(command, reference)
            self.servers_of_two_hosts()

    def hosts_that_end_apart(self, command, reference):
        """A host whose one request is over runs the steps of the other's, whichever of them it is."""
        one = os.path.join(self.folder.name, "one.jsonl")
        with open(command[-1], encoding="utf-8") as requests, open(one, "w", encoding="utf-8") as file:
            file.write(requests.readline())
        layout = ["-dp", "2", "-ep"]
        for short in (0, 1):
            commands = [[*command, *own] for own in two_hosts_flags(layout)]
            commands[short][len(command) - 1] = one
            with concurrent.futures.ThreadPoolExecutor() as pool:
                runs = [
                    pool.submit(self.outputs_of, own, gpus_of_host(layout, host)) for host, own in enumerate(commands)
                ]
                outputs = [run.result() for run in runs]
            expect(len(outputs[short]) == 1 and len(outputs[1 - short]) == len(reference), f"{outputs}")
            for output in outputs[0] + outputs[1]:
                expect(output["token_ids"] == reference[tuple(output["request_id"].split(" ", 1))][1], f"{output}")
        print("  two hosts, one of which has one request: the text of one rank", flush=True)

    def servers_of_two_hosts(self):
        """Requests to both at random; then one of them is killed under load."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            starts = [
                pool.submit(Server, self.program, flags, latent_flags(), LATENT_METHODS, gpus_of_host(["-dp", "2"], host))
                for host, flags in enumerate(two_hosts_flags(["-dp", "2", "-ep"]))
            ]
            with starts[0].result() as first, starts[1].result() as second:
                loads = [pool.submit(server.random_load, self.rounds) for server in (first, second)]
                [load.result() for load in loads]
                expect(first.get("/health") == second.get("/health") == 200, "not healthy")
                answers = [pool.submit(first.complete, 200) for _ in range(4)]
                time.sleep(0.5)
                begin = time.monotonic()
                second.process.kill()
                code = first.process.wait(LIMIT)
                elapsed = time.monotonic() - begin
                [answer.result() for answer in answers]
                expect(code == 1, f"exit code {code}")
                expect(elapsed <= FAULT_LIMIT, f"{elapsed:.1f} s")
                expect(re.search(r"rank 1 \(dp 1\)", first.errors()), first.errors())
        print(f"  the second host is killed under load: exit code 1 after {elapsed:.1f} s", flush=True)

    def two_hosts(self):
        if ON_GPUS:
            return self.skip("two hosts", "on CPUs alone; expert_hosts has two hosts on GPUs")
        if not network_spaces.allowed():
            return self.skip("two hosts", "network namespaces are not allowed here")
        reference = self.reference()
        with network_spaces.TwoHosts() as two:
            flags = ["-tp", "2", "--nnodes", "2", "--master-addr", two.addresses[0], "--node-rank"]
            other = subprocess.Popen(two.command(1, self.generate_command(*flags, "1")))
            text = self.text_of(two.command(0, self.generate_command(*flags, "0")))
            expect(other.wait(PATIENCE) == 0, "the second host failed")
            expect(text == reference, "two hosts: another text")
        print("  --nnodes 2: the text of one rank", flush=True)

    def start_many(self):
        for _ in range(self.starts):
            command = self.generate_command("-tp", "2", "--distributed-executor-backend", "mp")
            command[command.index("--max-tokens") + 1] = "2"
            self.text_of(command, drafted=False)

    def load(self):
        for flags in (
            ["-tp", "2", "--distributed-executor-backend", "mp"],
            ["-tp", "2", "-pp", "2", "--distributed-executor-backend", "mp"],
            ["-dp", "2", "-tp", "2"],
        ):
            if self.lacks_gpus(flags):
                continue
            with Server(self.program, flags) as server:
                server.random_load(self.rounds)
                expect(server.get("/health") == 200, "the server is not healthy")
                running = re.findall(r"^vllm:num_requests_running\{.*\} (\S+)", server.metrics(), re.M)
                expect(all(float(value) == 0 for value in running), f"requests are left: {running}")
                expect(server.stop() == 0, "exit code")
            print(f"  {' '.join(flags)}: {self.rounds} requests, some left early", flush=True)

    def faults(self):
        for layout in ("-tp", "-pp"):
            self.faults_of_rank_1([layout, "2", "--distributed-executor-backend", "mp"])
        if self.lacks_gpus(["-tp", "2"]):
            return
        with Server(self.program, ["-tp", "2", "--distributed-executor-backend", "mp"]) as server:
            child = server.children()[0]
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
            deadline = time.monotonic() + LIMIT
            while os.path.exists(f"/proc/{child}") and time.monotonic() < deadline:
                time.sleep(0.05)
            expect(not os.path.exists(f"/proc/{child}"), "rank 1 outlives rank 0")

    def faults_of_rank_1(self, flags, model=None, methods=METHODS):
        if self.lacks_gpus(flags):
            return
        for kind in (signal.SIGKILL, signal.SIGSTOP):
            with Server(self.program, flags, model, methods) as server:
                child = server.children()[0]
                with concurrent.futures.ThreadPoolExecutor() as pool:
                    answers = [pool.submit(server.complete, 200) for _ in range(4)]
                    time.sleep(0.5)
                    begin = time.monotonic()
                    os.kill(child, kind)
                    code = server.process.wait(LIMIT)
                    elapsed = time.monotonic() - begin
                    [answer.result() for answer in answers]
                expect(code == 1, f"exit code {code}")
                expect(elapsed <= FAULT_LIMIT, f"{elapsed:.1f} s")
                expect(re.search(r"rank 1\b", server.errors()), server.errors())
                expect(not os.path.exists(f"/proc/{child}"), "the other rank lives on")
            print(f"  {' '.join(flags[:-2])}, {kind.name} of rank 1 under load: exit code 1 after {elapsed:.1f} s", flush=True)

    def run(self, parts):
        if ON_GPUS and self.gpus < 2:
            return self.skip("every part", f"{self.gpus} GPUs, and two are needed")
        for name in parts:
            begin = time.monotonic()
            print(f"{name} ...", flush=True)
            getattr(self, name)()
            print(f"{name}: ok in {time.monotonic() - begin:.1f} s", flush=True)
        print("ranks suite passed" + (f", {self.skipped} parts skipped" if self.skipped else ""))
        return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--starts", type=int, default=5)
    parts = ["layouts", "contexts", "experts", "expert_hosts", "two_hosts", "start_many", "load", "faults"]
    parser.add_argument("--only", nargs="*", default=parts)
    arguments = parser.parse_args()
    Suite(arguments).run(arguments.only)
    return SKIPPED if ON_GPUS and num_gpus() < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
