#!/usr/bin/env python3
"""Runs load_suite.py in a small size against the program given, which prints its address."""

import pathlib
import subprocess
import sys

SUITE = pathlib.Path(__file__).resolve().parent / "load_suite.py"
SIZES = ["--streams", "200", "--vanish", "100", "--connections", "1000", "--halves", "50",
         "--slow", "2", "--free-within", "10", "--timeout", "60"]


def main():
    with subprocess.Popen(sys.argv[1:2], stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().strip()
            suite = subprocess.run([sys.executable, SUITE, "--base-url", address,
                                    "--pid", str(server.pid), *SIZES, *sys.argv[2:]], check=False)
            server.terminate()
            return suite.returncode or server.wait(timeout=40)
        finally:
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
