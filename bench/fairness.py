#!/usr/bin/env python3
"""What one very long prompt costs short requests, and they it, on a running server.

    bench/fairness.py --url http://127.0.0.1:8000 --long 100000 [--clients 2] [--seconds 30]

Clients send short prompts one after another, first alone, then while the long prompt is being computed. Prompts
are token ids that no server can have cached. The long prompt runs until `--seconds` are over (its connection is
then closed) or until its end. Standard library only.
"""

import argparse
import http.client
import json
import random
import statistics
import threading
import time
import urllib.parse


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


class Load:
    """Short requests of several clients until `stop` is set, and what each of them saw."""

    def __init__(self, args):
        self.args, self.address = args, urllib.parse.urlsplit(args.url)
        self.rng = random.Random(args.seed)
        self.ttfts, self.gaps, self.failures = [], [], []
        self.stop = threading.Event()

    def prompt(self, length):
        return [self.rng.randrange(256, 1024) for _ in range(length)]

    def stream(self, length, max_tokens, open_connections):
        """Start and times of chunks of one request; an empty list where it was cut."""
        connection = http.client.HTTPConnection(self.address.hostname, self.address.port,
                                                timeout=self.args.timeout)
        open_connections.append(connection)
        begin, times = time.perf_counter(), []
        connection.request("POST", "/v1/completions", json.dumps(
            {"prompt": self.prompt(length), "max_tokens": max_tokens, "ignore_eos": True,
             "temperature": 0, "stream": True, "return_token_ids": True}))
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(f"status {response.status}: {response.read()[:300]!r}")
        for line in response:
            if line.startswith(b"data: {") and json.loads(line[6:]).get("choices"):
                times.append(time.perf_counter())
        connection.close()
        return begin, times

    def client(self):
        while not self.stop.is_set():
            try:
                begin, times = self.stream(self.args.short, self.args.output, [])
                self.ttfts.append(times[0] - begin)
                self.gaps += [b - a for a, b in zip(times, times[1:])]
            except Exception as failure:
                self.failures.append(failure)
                return

    def run_for(self, seconds, until=None):
        """Runs the clients so long, or until the event is set; the figures in ms."""
        threads = [threading.Thread(target=self.client) for _ in range(self.args.clients)]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        (until or threading.Event()).wait(seconds)
        self.stop.set()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]
        elapsed = time.perf_counter() - begin
        return {"requests": len(self.ttfts), "per_s": len(self.ttfts) / elapsed,
                "ttft_mean": statistics.mean(self.ttfts) * 1e3,
                "ttft_p99": percentile(self.ttfts, 0.99) * 1e3,
                "itl_mean": statistics.mean(self.gaps) * 1e3,
                "itl_p50": percentile(self.gaps, 0.5) * 1e3,
                "itl_p99": percentile(self.gaps, 0.99) * 1e3, "itl_max": max(self.gaps) * 1e3}


class LongPrompt(threading.Thread):
    """The long prompt; `ended` is set with its first token, `ttft` where it came."""

    def __init__(self, args):
        super().__init__(daemon=True)
        self.load, self.length = Load(args), args.long
        self.ended, self.ttft, self.connections = threading.Event(), None, []

    def run(self):
        try:
            begin, times = self.load.stream(self.length, 1, self.connections)
            self.ttft = times[0] - begin
        except Exception:  # cut by the end of the measurement
            pass
        self.ended.set()

    def cut(self):
        for connection in self.connections:
            if connection.sock is not None:
                connection.sock.shutdown(2)


def show(name, figures):
    print(f"{name}: " + ", ".join(f"{key} {value:.1f}" for key, value in figures.items()),
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True)
    for name, default, text in (
            ("long", 100000, "tokens of the long prompt"), ("short", 64, "of a short one"),
            ("output", 32, "tokens of a short answer"), ("clients", 2, "of short prompts"),
            ("seed", 1, "of the prompts"), ("timeout", 600, "seconds for one request")):
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    parser.add_argument("--seconds", type=float, default=30, help="of each part")
    parser.add_argument("--alone", action="store_true", help="also the long prompt by itself")
    args = parser.parse_args()
    if args.alone:
        lone = LongPrompt(args)
        lone.start()
        lone.join()
        print(f"the long prompt alone: first token after {lone.ttft or 0:.1f} s", flush=True)
    args.seed += 1
    alone = Load(args).run_for(args.seconds)
    show("short alone", alone)
    args.seed += 1
    long = LongPrompt(args)
    long.start()
    time.sleep(1)
    args.seed += 1
    beside = Load(args).run_for(args.seconds, long.ended)
    show("short beside the long prompt", beside)
    print(f"the long prompt beside them: {long.ttft and f'{long.ttft:.1f} s' or 'not ended'}")
    long.cut()
    show("ratio", {key: beside[key] / alone[key] for key in alone if key != "requests"})


if __name__ == "__main__":
    main()
