#!/usr/bin/env python3
"""Engines of several hosts behind one front end: engine_hosts_suite.py PROGRAM [--rounds N] [--only PART ...]

Hosts are processes beside each other, started by --nnodes, by vLLM's names and by mpirun. Each layout
gives the text of one rank, greedy and sampled, with each drafter; then a server under random load, with
grammars; then hosts that are killed and stopped while requests run.
"""

import argparse
import concurrent.futures
import http.client
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
    COMMON,
    FAULT_LIMIT,
    LATENT_METHODS,
    LIMIT,
    METHODS,
    PATIENCE,
    Server,
    children_of,
    drafters,
    expect,
    latent_flags,
    tp_of,
    two_hosts_flags,
)
from ranks_suite import Suite


def vllm_flags(layout):
    """The same hosts by vLLM's names, of which the second has no server."""
    first, second = two_hosts_flags(layout)
    engines = int(layout[layout.index("-dp") + 1])
    port = first[first.index("--master-port") + 1]
    names = ["--data-parallel-size-local", str(engines // 2), "--data-parallel-address", "127.0.0.1"]
    common = [*layout, *names, "--data-parallel-rpc-port", port]
    return [common, [*common, "--headless", "--data-parallel-start-rank", str(engines // 2)]]


class HostBehind:
    """A host that has engines for the front end of another one."""

    def __init__(self, command):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def errors(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors="replace")


class EngineHosts(Suite):
    def run_hosts(self, front, behind, methods=METHODS):
        """What the front end of two hosts generates, by the commands of both."""
        with HostBehind(behind) as other:
            text = self.text_of(front, methods=methods)
            expect(other.process.wait(PATIENCE) == 0, other.errors())
        return text

    def layouts(self):
        reference = self.reference()
        for name, layout in (
            ("--nnodes 2", ["-dp", "2"]),
            ("--nnodes 2", ["-dp", "4", "-tp", "2"]),
            ("--headless", ["-dp", "4"]),
            ("--headless", ["-dp", "2", "-pp", "2"]),
        ):
            flags = two_hosts_flags(layout) if name == "--nnodes 2" else vllm_flags(layout)
            text = self.run_hosts(*(self.generate_command(*own) for own in flags))
            self.compare([*layout, name], text, reference)

    def spaces(self):
        """Hosts with networks of their own: requests and outputs over TCP."""
        if not network_spaces.allowed():
            return self.skip("two hosts", "network namespaces are not allowed here")
        reference = self.reference()
        with network_spaces.TwoHosts() as two:
            layout = ["-dp", "2", "-tp", "2", "--nnodes", "2", "--master-addr", two.addresses[0], "--node-rank"]
            commands = [two.command(host, self.generate_command(*layout, str(host))) for host in (0, 1)]
            self.compare(layout[:6], self.run_hosts(*commands), reference)
        return None

    def experts(self):
        """Experts in common need no second server either."""
        reference = self.latents_of_one_rank()
        layout = ["-dp", "2", "-ep"]
        commands = ([*self.latents_command(), *own] for own in vllm_flags(layout))
        text = self.run_hosts(*commands, LATENT_METHODS)
        self.compare([*layout, "--headless"], text, reference)

    def launched(self):
        if shutil.which("mpirun") is None:
            return self.skip("mpirun", "it is not installed (openmpi-bin)")
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np"]
        reference = self.reference()
        for count, flags in (("2", ["-dp", "2"]), ("4", ["-dp", "2", "-tp", "2", "--communicator", "mpi"])):
            text = self.text_of([*mpirun, count, *self.generate_command(*flags)])
            self.compare(["mpirun", *flags], text, reference)
        latents = self.latents_of_one_rank()
        for communicator in ("sockets", "mpi"):
            flags = ["-dp", "2", "-tp", "2", "-ep", "--communicator", communicator]
            text = self.text_of([*mpirun, "4", *self.latents_command(), *flags], methods=LATENT_METHODS)
            self.compare(["mpirun", *flags], text, latents)
        return None

    def serve_command(self, flags, model):
        command = [self.program, "serve", *COMMON, *(model or drafters(tp_of(flags))), *flags]
        return [*command, "--no-keep-acceptance-rates"]

    def load(self):
        front, behind = vllm_flags(["-dp", "4"])
        with HostBehind(self.serve_command(behind, None)), Server(self.program, front) as server:
            server.random_load(self.rounds)
            self.grammars(server)
            expect(server.get("/health") == 200, "the server is not healthy")
            metrics = server.metrics()
            running = re.findall(r"^vllm:num_requests_running\{.*\} (\S+)", metrics, re.M)
            expect(len(running) == 4 and all(float(value) == 0 for value in running), f"left: {running}")
            counts = re.findall(r"^vllm:generation_tokens_total\{.*engine=\"(\d)\".*\} (\S+)", metrics, re.M)
            expect(len(counts) == 4 and all(float(value) > 0 for _, value in counts), f"idle engines: {counts}")
            expect(server.stop() == 0, "exit code")
        print(f"  {' '.join(front[:2])}: {self.rounds} requests on two hosts, some left early", flush=True)

    @staticmethod
    def grammars(server):
        """One for each engine, by what waits."""

        def answer(i):
            body = {"prompt": f"Give me {i}: ", "max_tokens": 40, "temperature": 1, "seed": i}
            body["structured_outputs"] = {"regex": "[a-c]{4}[0-9]{20}"}
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())["choices"][0]["text"]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for text in pool.map(answer, range(8)):
                expect(re.fullmatch("[a-c]{4}[0-9]{20}", text), f"no match: {text!r}")

    def faults(self):
        for layout in (["-dp", "2"], ["-dp", "2", "-tp", "2"]):
            for kind in (signal.SIGKILL, signal.SIGSTOP):
                self.fault_behind(layout, kind)
        self.fault_at_front(["-dp", "2", "-tp", "2"])

    def fault_behind(self, layout, kind):
        front, behind = two_hosts_flags(layout)
        with HostBehind(self.serve_command(behind, None)) as other, Server(self.program, front) as server:
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                answers = [pool.submit(server.complete, 200) for _ in range(1000)]
                time.sleep(2.5)  # until a heartbeat has told what the host does
                begin = time.monotonic()
                os.kill(other.process.pid, kind)
                code = server.process.wait(LIMIT)
                elapsed = time.monotonic() - begin
                [answer.result() for answer in answers]
            expect(code == 1, f"exit code {code}")
            expect(elapsed <= FAULT_LIMIT, f"{elapsed:.1f} s")
            expect(re.search(r"rank \d \(.*dp 1\).*step \d", server.errors()), server.errors())
        print(f"  {' '.join(layout)}, {kind.name} of the second host: exit code 1 after {elapsed:.1f} s", flush=True)

    def fault_at_front(self, layout):
        """The host behind ends, with its children."""
        front, behind = two_hosts_flags(layout)
        with HostBehind(self.serve_command(behind, None)) as other, Server(self.program, front) as server:
            children = children_of(other.process.pid)
            expect(len(children) == 1, f"children {children}")
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                answers = [pool.submit(server.complete, 200) for _ in range(1000)]
                time.sleep(0.5)
                begin = time.monotonic()
                server.process.kill()
                code = other.process.wait(LIMIT)
                elapsed = time.monotonic() - begin
                [answer.result() for answer in answers]
            expect(code == 1, f"exit code {code}")
            expect(elapsed <= FAULT_LIMIT, f"{elapsed:.1f} s")
            expect(re.search(r"rank 2: .*\brank 0\b", other.errors()), other.errors())
            expect(not os.path.exists(f"/proc/{children[0]}"), "a rank outlives its host's first process")
        print(f"  {' '.join(layout)}, the front end is killed: exit code 1 after {elapsed:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=60)
    parts = ["layouts", "spaces", "experts", "launched", "load", "faults"]
    parser.add_argument("--only", nargs="*", default=parts)
    arguments = parser.parse_args()
    arguments.starts = 0
    EngineHosts(arguments).run(arguments.only)


if __name__ == "__main__":
    sys.exit(main())
