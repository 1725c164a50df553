"""Two hosts on one machine: network namespaces joined by a virtual cable."""

import os
import subprocess


def allowed():
    """Whether this process may make network namespaces with iproute2."""
    if os.geteuid() != 0:
        return False
    try:
        name = f"ftprobe{os.getpid()}"
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True)
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
        return made.returncode == 0
    except FileNotFoundError:
        return False


class TwoHosts:
    """Namespaces `names` with the addresses `addresses`; cut() takes the cable out."""

    def __init__(self):
        number = os.getpid() % 200 + 20
        self.names = [f"ft{os.getpid()}a", f"ft{os.getpid()}b"]
        self.addresses = [f"10.{number}.0.1", f"10.{number}.0.2"]
        self.cable = [f"fta{os.getpid() % 100000}", f"ftb{os.getpid() % 100000}"]

    def __enter__(self):
        ends = self.cable
        for name in self.names:
            self._ip("netns", "add", name)
        self._ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for name, end, address in zip(self.names, ends, self.addresses):
            self._ip("link", "set", end, "netns", name)
            self._ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
            self._ip("-n", name, "link", "set", end, "up")
            self._ip("-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def cut(self):
        self._ip("-n", self.names[1], "link", "set", self.cable[1], "down")

    def command(self, host, arguments):
        """The command line that runs `arguments` on a host."""
        return ["ip", "netns", "exec", self.names[host], *arguments]

    def _ip(self, *arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True)
