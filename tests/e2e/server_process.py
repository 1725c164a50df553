"""A `foretoken serve` on a free port, for end-to-end tests."""

import re
import signal
import subprocess
import threading


class Server:
    """Starts on entry, is asked to end on exit, and must then have ended with status 0.

    What drafters did in earlier runs tells it nothing, unless `flags` say --keep-acceptance-rates."""

    def __init__(self, program, *flags, port=0):
        self.command = [program, "serve", "--port", str(port), "--host", "127.0.0.1",
                        "--log-level", "warning", "--no-keep-acceptance-rates", *flags]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.search(r" at (https?://\S+?),", line)
        if found is None:
            raise RuntimeError(f"no address in {line!r}: {self.process.stderr.read()}")
        self.url = found.group(1)
        self.errors = []
        self.reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr))
        self.reader.start()
        return self

    def __exit__(self, kind, value, trace):
        self.process.send_signal(signal.SIGTERM)
        code = self.wait(300)
        if kind is None and code != 0:
            raise RuntimeError(f"the server ended with {code}: {''.join(self.errors[-20:])}")

    def wait(self, seconds):
        """The status that the process ends with; it is killed when it takes longer."""
        try:
            code = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code
