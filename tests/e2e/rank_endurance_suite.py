#!/usr/bin/env python3
"""Ranks that share a layer under traffic, starts and faults: rank_endurance_suite.py PROGRAM [--only LAYOUT ...]

For each layout a server of processes gets requests at random, some of which leave early, with idle times; ends; and is
started again for each fault: under load every rank in turn is killed, and some are stopped. A fault must end the
group within ten seconds of the heartbeat's judgement, with an error that names the rank, and leave no process behind.
At the end the program is started and ended many times. --seconds: nothing begins after so long.

FORETOKEN_TEST_DEVICE=cuda takes a GPU for each rank, and passes over layouts for which there are too few.
"""

import argparse
import concurrent.futures
import os
import re
import signal
import sys
import time

from ranks_common import (
    FAULT_LIMIT,
    LATENT_METHODS,
    LIMIT,
    METHODS,
    ON_GPUS,
    PROCESSES,
    SKIPPED,
    Server,
    drafters,
    expect,
    latent_flags,
    num_gpus,
    num_ranks,
    tp_of,
)

LAYOUTS = {
    "tp4": ["-tp", "4"],
    "tp4-ep": ["-tp", "4", "-ep"],
    "dp4-ep": ["-dp", "4", "-ep"],
    "tp2-dp2-ep": ["-tp", "2", "-dp", "2", "-ep"],
    "tp4-dcp4-ep": ["-tp", "4", "-dcp", "4", "-ep"],
    "pp4": ["-pp", "4"],
}
DENSE = ("tp4", "pp4")  # the others have the bundled mixture with latents
STOPS_EACH = ("tp4",)  # others stop one rank


def lives(pid):
    """Not one that has ended and waits for its parent."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for_end(pids, limit):
    """Seconds until none lives."""
    begin = time.monotonic()
    while any(map(lives, pids)) and time.monotonic() - begin < limit:
        time.sleep(0.02)
    expect(not any(map(lives, pids)), f"after {limit} s some of {pids} live on")
    return time.monotonic() - begin


class Endurance:
    def __init__(self, arguments):
        self.program = os.path.abspath(arguments.program)
        self.rounds, self.starts = arguments.rounds, arguments.starts
        self.end = time.monotonic() + arguments.seconds
        self.failures = []

    def has_time(self):
        return time.monotonic() < self.end

    def server(self, name):
        flags = [*LAYOUTS[name], *PROCESSES]
        dense = name in DENSE
        model = drafters(tp_of(flags)) if dense else latent_flags()
        return Server(self.program, flags, model, METHODS if dense else LATENT_METHODS)

    def check(self, what, function, *arguments):
        """A line for what it says, or why it does not hold; whether it does."""
        if not self.has_time():
            return print(f"  {what}: no time is left", flush=True)
        begin = time.monotonic()
        try:
            told = function(*arguments)
            print(f"  {what}: {told}, {time.monotonic() - begin:.1f} s in all", flush=True)
        except (AssertionError, OSError) as error:
            self.failures.append(what)
            print(f"  {what}: FAILED: {str(error)[-1500:]}", flush=True)
        return None

    def arrivals(self, name):
        with self.server(name) as server:
            begin = time.monotonic()
            server.random_load(self.rounds)
            seconds = time.monotonic() - begin
            expect(server.get("/health") == 200, "the server is not healthy")
            running = re.findall(r"^vllm:num_requests_running\{.*\} (\S+)", server.metrics(), re.M)
            expect(all(float(value) == 0 for value in running), f"requests are left: {running}")
            children = server.children()
            code = server.stop()
            expect(code == 0, f"exit code {code}\n{server.errors()}")
            wait_for_end(children, FAULT_LIMIT)
        return f"{self.rounds} arrivals in {seconds:.1f} s"

    def fault(self, name, rank, kind):
        with self.server(name) as server:
            children = server.children()
            pid = ([server.process.pid] + children)[rank]
            with concurrent.futures.ThreadPoolExecutor() as pool:
                answers = [pool.submit(server.complete, 200) for _ in range(4)]
                time.sleep(0.3)
                os.kill(pid, kind)
                seconds = self.end_of_group(server, children, rank, kind)
                [answer.result() for answer in answers]
            if rank > 0:
                expect(server.process.returncode == 1, f"exit code {server.process.returncode}")
                expect(re.search(rf"rank {self.number_of(name, rank)}\b", server.errors()), server.errors())
        return f"the group has ended after {seconds:.1f} s"

    @staticmethod
    def number_of(name, child):
        """Of the rank that a child is: the first process has the first rank of each engine."""
        tp = tp_of(LAYOUTS[name])
        engines = num_ranks(LAYOUTS[name]) // tp if "-dp" in LAYOUTS[name] else 1
        if engines == 1:
            return child
        return (child - 1) // (tp - 1) * tp + 1 + (child - 1) % (tp - 1)

    @staticmethod
    def end_of_group(server, children, rank, kind):
        if rank > 0:
            begin = time.monotonic()
            server.process.wait(LIMIT)
            seconds = time.monotonic() - begin
            wait_for_end(children, FAULT_LIMIT)
            expect(seconds <= FAULT_LIMIT, f"{seconds:.1f} s")
            return seconds
        seconds = wait_for_end(children, FAULT_LIMIT)
        if kind == signal.SIGSTOP:
            os.kill(server.process.pid, signal.SIGCONT)
        server.process.wait(LIMIT)
        return seconds

    def faults(self, name):
        with self.server(name) as server:
            ranks = 1 + len(server.children())
            server.stop()
        stopped = range(ranks) if name in STOPS_EACH else [ranks - 1]
        for kind, chosen in ((signal.SIGKILL, range(ranks)), (signal.SIGSTOP, stopped)):
            for rank in chosen:
                if rank == 0 and ranks == 1 and kind == signal.SIGSTOP:
                    continue
                who = "the first process" if rank == 0 else f"rank {self.number_of(name, rank)}"
                self.check(f"{name}, {kind.name} of {who} under load", self.fault, name, rank, kind)

    def start_many(self, name):
        for _ in range(self.starts):
            with self.server(name) as server:
                expect(server.complete(2) == 200, server.errors())
                code = server.stop()
                expect(code == 0, f"exit code {code}\n{server.errors()}")
        return f"{self.starts} starts and ends"

    def run(self, names):
        kept = [name for name in names if not ON_GPUS or num_ranks(LAYOUTS[name]) <= num_gpus()]
        for name in sorted(set(names) - set(kept)):
            print(f"SKIPPED {name}: {num_gpus()} GPUs", flush=True)
        for name in kept:
            self.check(f"{name}, arrivals", self.arrivals, name)
        for name in kept:
            self.faults(name) if self.has_time() else print(f"  {name}, faults: no time is left", flush=True)
        for name in kept[:1]:
            self.check(f"{name}, starts", self.start_many, name)
        print(f"failed: {', '.join(self.failures)}" if self.failures else "rank endurance suite passed", flush=True)
        return 1 if self.failures else 0 if kept else SKIPPED


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--only", nargs="*", choices=LAYOUTS, default=list(LAYOUTS))
    arguments = parser.parse_args()
    return Endurance(arguments).run(arguments.only)


if __name__ == "__main__":
    sys.exit(main())
