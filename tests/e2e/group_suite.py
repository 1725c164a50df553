#!/usr/bin/env python3
"""Ranks as processes, without a model: group_suite.py PROGRAM [--starts N]

PROGRAM is test_group_program. Starts groups, kills and stops each rank, cuts the network between two
hosts (network namespaces), and looks at errors, times and exit codes. Parts that this machine does
not allow are skipped with a line that says so.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

import network_spaces

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Seconds. Every rank that is left ends within six of a fault, where the machine is not busy; without
# the watch over it, it would stay for an hour or more.
LIMIT = PATIENCE = 120


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Group:
    """Processes whose messages are read as they come."""

    def __init__(self, commands, environments=None):
        self.log = tempfile.TemporaryFile("w+")
        environments = environments or [None] * len(commands)
        self.processes = [
            subprocess.Popen(
                command,
                stderr=self.log,
                stdout=self.log,
                stdin=subprocess.DEVNULL,
                env=None if more is None else {**os.environ, **more},
            )
            for command, more in zip(commands, environments)
        ]

    def text(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors="replace")

    def pids(self, ranks):
        """Process ids by rank, once all of them work."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = dict(
                (int(rank), int(pid))
                for rank, pid in re.findall(r"rank (\d+) works, process (\d+)", self.text())
            )
            if len(found) == ranks:
                return found
            if any(process.poll() not in (None, 0) for process in self.processes):
                break
            time.sleep(0.02)
        raise AssertionError(f"the ranks did not start:\n{self.text()}")

    def wait(self, limit=PATIENCE, leave_out=()):
        """Exit codes of all, None of those left out."""
        deadline = time.monotonic() + limit
        codes = []
        for process in self.processes:
            if process in leave_out:
                codes.append(None)
                continue
            try:
                codes.append(process.wait(max(0.0, deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"a rank has not ended in {limit} s:\n{self.text()}") from None
        return codes

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.log.close()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def expect(holds, message):
    if not holds:
        raise AssertionError(message)


class Suite:
    def __init__(self, program, starts):
        self.program = program
        self.starts = starts
        self.skipped = 0

    def own(self, ranks, *more):
        """One process that starts the others."""
        return Group([[self.program, "--tp", str(ranks), *more]])

    def launched(self, ranks, *more):
        """One process a rank, as torchrun starts them."""
        place = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        return Group(
            [[self.program, "--tp", str(ranks), *more] for _ in range(ranks)],
            [{**place, "RANK": str(rank)} for rank in range(ranks)],
        )

    def skip(self, what, why):
        self.skipped += 1
        print(f"SKIPPED {what}: {why}", flush=True)

    def starts_and_ends(self):
        for start in range(self.starts):
            group = self.own(4, "--seconds", "0") if start % 2 else self.launched(4, "--seconds", "0")
            codes = group.wait()
            expect(set(codes) == {0}, f"start {start}: exit codes {codes}:\n{group.text()}")
            group.close()

    def fault(self, make, rank, kind):
        """A fault at one rank ends the others in time, with an error that names it."""
        group = make(3)
        try:
            pids = group.pids(3)
            begin = time.monotonic()
            os.kill(pids[rank], kind)
            victim = [process for process in group.processes if process.pid == pids[rank]]
            group.wait(LIMIT, leave_out=victim)
            elapsed = time.monotonic() - begin
            codes = [process.returncode for process in group.processes if process not in victim]
            # An own child dies with rank 0, whose death has no messenger left.
            own_head = len(group.processes) == 1 and rank == 0
            if not own_head:
                expect(codes and all(code == 1 for code in codes), f"exit codes {codes}")
                named = re.search(rf"error: .*rank {rank}\b", group.text())
                expect(named, f"no error names rank {rank}:\n{group.text()}")
            left = [pid for at, pid in pids.items() if at != rank and alive(pid)]
            deadline = begin + LIMIT
            while left and time.monotonic() < deadline:
                time.sleep(0.05)
                left = [pid for pid in left if alive(pid)]
            expect(own_head and kind == signal.SIGSTOP or not left, f"processes {left} live on")
            return elapsed
        finally:
            for pid in group.pids(3).values():
                if alive(pid):
                    os.kill(pid, signal.SIGKILL)
            group.close()

    def faults(self):
        for name, make in (("own children", self.own), ("a launcher's", self.launched)):
            for kind in (signal.SIGKILL, signal.SIGSTOP):
                for rank in range(3):
                    if name == "own children" and rank == 0 and kind == signal.SIGSTOP:
                        continue  # its children end; nobody is left to wait for but itself
                    elapsed = self.fault(make, rank, kind)
                    print(f"  {kind.name} of rank {rank} of {name}: all ended in {elapsed:.1f} s")

    def disagreement(self):
        place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        group = Group(
            [[self.program, "--tp", "2", "--part", part] for part in ("a", "b")],
            [{**place, "RANK": str(rank)} for rank in range(2)],
        )
        expect(group.wait() == [1, 1], "both must fail")
        expect(
            group.text().count("rank 1 (tp 1) has --part b, rank 0 has a") == 2, group.text()
        )
        group.close()

    def restarts(self):
        """A loop that starts the group again, as a supervisor does."""
        script = 's=3600; until "$0" --tp 2 --seconds $s; do s=0; sleep 0.1; done'
        group = Group([["sh", "-c", script, self.program]])
        os.kill(group.pids(2)[1], signal.SIGKILL)
        expect(group.wait() == [0], group.text())
        expect(group.text().count("rank 1 works") == 2, group.text())
        group.close()
        if shutil.which("mpirun") is None:
            return
        script = os.path.join(ROOT, "packaging", "cluster", "restart-mpirun.sh")
        more = {"FORETOKEN_MPIRUN_ARGS": "--allow-run-as-root --oversubscribe"}
        with tempfile.TemporaryDirectory() as folder:
            again = os.path.join(folder, "again")
            once = 'test -e "$0" && s=0 || s=3600; exec "$@" --seconds $s'
            command = ["sh", script, "2", "sh", "-c", once, again, self.program, "--tp", "2"]
            group = Group([command], [more])
            victim = group.pids(2)[1]
            pathlib.Path(again).touch()
            os.kill(victim, signal.SIGKILL)
            expect(group.wait() == [0], group.text())
            expect(group.text().count("rank 1 works") == 2, group.text())
            group.close()

    def hosts(self, two, *more):
        return Group(
            [
                two.command(
                    host,
                    [self.program, "--tp", "4", "--nnodes", "2", "--node-rank", str(host)]
                    + ["--master-addr", two.addresses[0], *more],
                )
                for host in range(2)
            ]
        )

    def two_hosts(self):
        if not network_spaces.allowed():
            return self.skip("two hosts", "network namespaces are not allowed here")
        with network_spaces.TwoHosts() as two:
            group = self.hosts(two, "--seconds", "1")
            expect(group.wait() == [0, 0], group.text())
            group.close()
            group = self.hosts(two)
            group.pids(4)
            begin = time.monotonic()
            two.cut()
            expect(group.wait(LIMIT) == [1, 1], group.text())
            print(f"  a cut network: all ended in {time.monotonic() - begin:.1f} s")
            expect(group.text().count("error: ") >= 2, group.text())
            group.close()

    def mpirun(self):
        if shutil.which("mpirun") is None:
            return self.skip("mpirun", "it is not installed (openmpi-bin)")
        base = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
        group = Group([[*base, "-np", "4", self.program, "--tp", "4", "--seconds", "0"]])
        expect(group.wait() == [0], group.text())
        group.close()
        if os.path.exists(os.path.join(os.path.dirname(self.program), "libforetoken_mpi.so")):
            mpi = [self.program, "--tp", "8", "--communicator", "mpi", "--seconds", "1"]
            group = Group([[*base, "-np", "8", *mpi]])
            expect(group.wait() == [0], group.text())
            group.close()
        else:
            self.skip("MPI between ranks", "libforetoken_mpi.so was not built (libopenmpi-dev)")
        group = Group([[*base, "-np", "3", self.program, "--tp", "3"]])
        os.kill(group.pids(3)[2], signal.SIGKILL)
        expect(group.wait(LIMIT) != [0], group.text())
        group.close()
        group = Group([[*base, "-np", "2", self.program, "--tp", "3"]])
        expect(group.wait() != [0], group.text())
        expect("mpirun started 2 processes" in group.text(), group.text())
        group.close()
        if network_spaces.allowed():
            self.mpirun_on_two_hosts(base)

    def mpirun_on_two_hosts(self, base):
        with network_spaces.TwoHosts() as two, tempfile.TemporaryDirectory() as folder:
            agent = os.path.join(folder, "agent")
            with open(agent, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n# HOST COMMAND...: what ssh would do\n")
                file.write(f'host=$1; shift; space={two.names[0]}\n')
                file.write(f'[ "$host" = {two.addresses[1]} ] && space={two.names[1]}\n')
                file.write('exec ip netns exec "$space" sh -c "$*"\n')
            os.chmod(agent, os.stat(agent).st_mode | stat.S_IXUSR)
            hosts = ",".join(f"{address}:2" for address in two.addresses)
            network = two.addresses[0].rsplit(".", 1)[0] + ".0/24"
            options = ["--host", hosts, "--mca", "plm_rsh_agent", agent]
            options += ["--mca", "oob_tcp_if_include", network, "--mca", "btl_tcp_if_include", network]
            program = [self.program, "--tp", "4", "--seconds", "1", "--master-addr", two.addresses[0]]
            group = Group([two.command(0, [*base, "-np", "4", *options, *program])])
            expect(group.wait() == [0], group.text())
            expect(len(set(re.findall(r"rank (\d) works", group.text()))) == 4, group.text())
            group.close()

    def run(self):
        for part in (
            self.starts_and_ends,
            self.faults,
            self.disagreement,
            self.restarts,
            self.two_hosts,
            self.mpirun,
        ):
            begin = time.monotonic()
            print(f"{part.__name__} ...", flush=True)
            part()
            print(f"{part.__name__}: ok in {time.monotonic() - begin:.1f} s", flush=True)
        print("group suite passed" + (f", {self.skipped} parts skipped" if self.skipped else ""))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--starts", type=int, default=20)
    arguments = parser.parse_args()
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        os.environ.pop(name, None)
    Suite(os.path.abspath(arguments.program), arguments.starts).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
