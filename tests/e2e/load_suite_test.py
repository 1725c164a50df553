#!/usr/bin/env python3
"""Runs load_suite.py in a small size.

load_suite_test.py PROGRAM [ARGUMENT...]: against an example server, which prints its address; the
arguments go to the suite. load_suite_test.py PROGRAM serve: against `foretoken serve`.
"""

import pathlib
import subprocess
import sys

from server_process import Server

SUITE = pathlib.Path(__file__).resolve().parent / "load_suite.py"
SIZES = ["--streams", "200", "--vanish", "100", "--connections", "1000", "--halves", "50",
         "--slow", "2", "--timeout", "300",
         # A busy machine shows that nothing stands still, not how fast it is.
         "--free-within", "120", "--slower-by", "inf"]


def run_suite(address, pid, arguments):
    return subprocess.run([sys.executable, SUITE, "--base-url", address, "--pid", str(pid), *SIZES,
                           *arguments], check=False).returncode


def main():
    if sys.argv[2:] == ["serve"]:
        with Server(sys.argv[1], "--kv-cache-memory-bytes", "67108864") as server:
            return run_suite(server.url, server.process.pid, [])
    with subprocess.Popen(sys.argv[1:2], stdout=subprocess.PIPE, text=True) as server:
        try:
            code = run_suite(server.stdout.readline().strip(), server.pid, sys.argv[2:])
            server.terminate()
            return code or server.wait(timeout=300)
        finally:
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
