#!/usr/bin/env python3
"""Engines of several hosts behind one front end: engine_hosts_suite.py PROGRAM [--rounds N] [--only PART ...]

Hosts are processes beside each other, started by --nnodes, by vLLM's names and by mpirun. Each layout
gives the text of one rank, greedy and sampled, with each drafter; then a server under random load, with
grammars; then hosts that are killed and stopped while requests run. Hosts with unequally many engines,
servers without engines and servers of their own have parts of their own: uneven, bare, own_servers.
"""

import argparse
import concurrent.futures
import contextlib
import functools
import http.client
import json
import os
import re
import shutil
import signal
import socket
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
    PROMPTS,
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


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def named_hosts(layout, shares, address="127.0.0.1"):
    """Flags of hosts with so many engines each, the server's first; its own may be none."""
    common = [*layout, "--data-parallel-address", address, "--data-parallel-rpc-port", free_port()]
    flags, first = [], 0
    for host, share in enumerate(shares):
        own = [*common, "--data-parallel-size-local", str(share)]
        flags.append(own if host == 0 else [*own, "--headless", "--data-parallel-start-rank", str(first)])
        first += share
    return flags


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


def engines_of(server):
    """Their numbers, as metrics tell them."""
    return set(re.findall(r'^vllm:num_requests_running\{.*engine="(\d+)"', server.metrics(), re.M))


def text_of_server(server, prompt):
    connection = server.connection()
    body = {"prompt": prompt, "max_tokens": 24, "temperature": 0}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read())["choices"][0]["text"]


class EngineHosts(Suite):
    def run_hosts(self, front, behind, methods=METHODS):
        """What the front end of two hosts generates, by the commands of both."""
        with HostBehind(behind) as other:
            text = self.text_of(front, methods=methods)
            expect(other.process.wait(PATIENCE) == 0, other.errors())
        return text

    def run_named(self, two, layout, shares, places):
        """What the first of several hosts generates, each in one of two networks."""
        flags = named_hosts(layout, shares, two.addresses[0])
        commands = [two.command(place, self.generate_command(*own)) for place, own in zip(places, flags)]
        with contextlib.ExitStack() as stack:
            behind = [stack.enter_context(HostBehind(command)) for command in commands[1:]]
            text = self.text_of(commands[0])
            for host in behind:
                expect(host.process.wait(PATIENCE) == 0, host.errors())
        return text

    def uneven(self):
        """One engine beside the server, two or three on another host."""
        if not network_spaces.allowed():
            return self.skip("uneven", "network namespaces are not allowed here")
        reference = self.reference()
        with network_spaces.TwoHosts() as two:
            for layout, shares in ((["-dp", "4"], (1, 3)), (["-dp", "3", "-tp", "2"], (1, 2))):
                self.compare([*layout, f"{shares}"], self.run_named(two, layout, shares, (0, 1)), reference)
        self.overlap()
        return None

    def overlap(self):
        """Two hosts that name the same engine are told so, both of them."""
        front, behind = named_hosts(["-dp", "3"], (2, 2))
        behind[-1] = "1"
        with HostBehind(self.generate_command(*behind)) as other, HostBehind(self.generate_command(*front)) as one:
            for host in (one, other):
                expect(host.process.wait(PATIENCE) == 1, "exit code")
                expect("two processes say that they are rank 1" in host.errors(), host.errors())
        print("  two hosts with one engine: both end with a sentence", flush=True)

    def bare(self):
        """A server without engines, of which one or two hosts have all."""
        if not network_spaces.allowed():
            return self.skip("bare", "network namespaces are not allowed here")
        reference = self.reference()
        with network_spaces.TwoHosts() as two:
            for layout, shares, places in (
                (["-dp", "2"], (0, 2), (0, 1)),
                (["-dp", "4"], (0, 3, 1), (0, 1, 0)),
                (["-dp", "1", "-tp", "2"], (0, 1), (0, 1)),
            ):
                text = self.run_named(two, layout, shares, places)
                self.compare([*layout, f"{shares}"], text, reference)
        self.bare_experts()
        self.bare_server()
        for kills_server in (False, True):
            self.bare_end(kills_server)
        return None

    def bare_experts(self):
        """Engines that have experts together, with a server beside them."""
        front, behind = named_hosts(["-dp", "2", "-ep"], (0, 2))
        text = self.run_hosts(
            [*self.latents_command(), *front], [*self.latents_command(), *behind], LATENT_METHODS
        )
        self.compare(["-dp", "2", "-ep", "(0, 2)"], text, self.latents_of_one_rank())

    def bare_server(self):
        front, behind = named_hosts(["-dp", "2"], (0, 2))
        with HostBehind(self.serve_command(behind, None)) as other, Server(self.program, front) as server:
            server.random_load(self.rounds)
            self.grammars(server)
            expect(server.get("/health") == 200, "the server is not healthy")
            expect(engines_of(server) == {"0", "1"}, f"engines {engines_of(server)}")
            self.named_engine(server)
            expect(server.stop() == 0, "exit code")
            expect(other.process.wait(PATIENCE) == 0, other.errors())
        print(f"  {' '.join(front)}: {self.rounds} requests", flush=True)

    @staticmethod
    def named_engine(server):
        """A header names the engine of a request."""

        def status_of(engine):
            headers = {"Content-Type": "application/json", "X-data-parallel-rank": engine}
            connection = server.connection()
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "max_tokens": 4}), headers)
            return connection.getresponse().status

        def tokens_of(engine):
            pattern = rf'^vllm:generation_tokens_total\{{.*engine="{engine}".*\}} (\S+)'
            return float(re.search(pattern, server.metrics(), re.M).group(1))

        before = tokens_of(0)
        codes = [status_of("1") for _ in range(5)]
        expect(codes == [200] * 5 and tokens_of(0) == before, f"{codes}, {tokens_of(0)} instead of {before}")
        codes = [status_of(engine) for engine in ("2", "one")]
        expect(codes == [400, 200], f"answers {codes}")

    def bare_end(self, kills_server):
        """The end of the engines' host is that of the server, and the other way round."""
        front, behind = named_hosts(["-dp", "2"], (0, 2))
        with HostBehind(self.serve_command(behind, None)) as other, Server(self.program, front) as server:
            (server if kills_server else other).process.kill()
            left = other if kills_server else server
            expect(left.process.wait(LIMIT) == 1, "exit code")
            named = "the front end" if kills_server else "rank [01]"
            expect(re.search(named, left.errors()), left.errors())
        print(f"  a server without engines, {'its' if kills_server else 'their'} end: both end", flush=True)

    def own_servers(self):
        """A server for each host or engine, with experts in common or nothing."""
        self.servers_apart()
        hybrid = ["-dp", "4", "--data-parallel-hybrid-lb", "--data-parallel-size-local", "2"]
        hybrid += ["--data-parallel-address", "127.0.0.1"]
        for layout, starts, flag in ((hybrid, ("0", "2"), "-dpr"), (["-dp", "2"], ("0", "1"), "-dpn")):
            common = [*layout, "-ep", "--data-parallel-rpc-port", free_port()]
            self.servers_together([[*common, flag, start] for start in starts])
        self.mixed_servers()

    def servers_apart(self):
        """Engines that share nothing: their servers start one after the other, and need no address."""
        for layout, starts, flag, numbers in (
            (["-dp", "4", "-dph", "-dpl", "2"], ("0", "2"), "-dpr", ({"0", "1"}, {"2", "3"})),
            (["-dp", "2"], ("0", "1"), "-dpn", ({"0"}, {"1"})),
        ):
            with contextlib.ExitStack() as stack:
                servers = [stack.enter_context(Server(self.program, [*layout, flag, start])) for start in starts]
                self.expect_alike(servers, numbers)
                clash = [*self.serve_command([*layout, flag, starts[1]], None), "--port", str(servers[0].port)]
                ended = subprocess.run([*clash, "--host", "127.0.0.1"], capture_output=True, text=True)
                expect(ended.returncode == 1 and "choose another --port" in ended.stderr, ended.stderr)
                # The other does not notice.
                expect(servers[0].stop() == 0, "exit code")
                expect(servers[1].complete(20) == 200, "no answer without the other server")
                expect(servers[1].stop() == 0, "exit code")
            print(f"  {' '.join(layout)} {flag}: two servers apart", flush=True)

    def servers_together(self, flags):
        """Engines with experts in common: their servers wait for each other at the start and at the end."""
        started = functools.partial(Server, self.program, model=latent_flags(), methods=LATENT_METHODS)
        with concurrent.futures.ThreadPoolExecutor(len(flags)) as pool, contextlib.ExitStack() as stack:
            servers = [stack.enter_context(server) for server in pool.map(started, flags)]
            local = 2 if "--data-parallel-hybrid-lb" in flags[0] else 1
            self.expect_alike(servers, [{str(i * local + j) for j in range(local)} for i in range(len(flags))])
            loads = [pool.submit(server.random_load, self.rounds) for server in servers]
            [load.result() for load in loads]
            expect(list(pool.map(Server.stop, servers)) == [0] * len(flags), "exit codes")
        print(f"  {' '.join(flags[0][:-2])}: {len(flags)} servers, experts in common", flush=True)

    def mixed_servers(self):
        """One host believes that it has the only server, the other that each has one."""
        common = ["-dp", "2", "-ep", "-dpl", "1", "-dpa", "127.0.0.1", "-dpp", free_port()]
        commands = [[*self.latents_command(), *common], [*self.latents_command(), *common, "-dpr", "1"]]
        with HostBehind(commands[0]) as one, HostBehind(commands[1]) as other:
            for host in (one, other):
                expect(host.process.wait(PATIENCE) == 1, "exit code")
                expect("--data-parallel-hybrid-lb" in host.errors(), host.errors())
        print("  one server or two: both hosts end with a sentence", flush=True)

    @staticmethod
    def expect_alike(servers, numbers):
        """The same texts, and the engines by their numbers."""
        texts = [[text_of_server(server, prompt) for prompt in PROMPTS] for server in servers]
        expect(texts[0] == texts[1], f"texts differ: {texts}")
        for server, own in zip(servers, numbers):
            expect(server.get("/health") == 200, "the server is not healthy")
            expect(engines_of(server) == own, f"engines {engines_of(server)}, not {own}")

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
    parts = ["layouts", "spaces", "experts", "launched", "load", "faults", "uneven", "bare", "own_servers"]
    parser.add_argument("--only", nargs="*", default=parts)
    arguments = parser.parse_args()
    arguments.starts = 0
    EngineHosts(arguments).run(arguments.only)


if __name__ == "__main__":
    sys.exit(main())
