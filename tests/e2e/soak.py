#!/usr/bin/env python3
"""Weeks of traffic in minutes against a running `foretoken serve`: does its memory stay flat?

    tests/e2e/soak.py --base-url http://127.0.0.1:8000 --pid 4711 --minutes 20 --seed 1 --curve soak.csv

Phases of bursts, steady load, aborted streams and rest follow each other; requests of every endpoint are long and
short, streamed or not, with grammars, log-probabilities, several choices, wrong fields, broken JSON and time-outs.
After every phase, when nothing runs, the process is looked at. Standard library only; exits with 1 when an answer
was wrong, something was still held at rest, or resident memory grew by more than --max-growth in an hour.

Start the server with a small KV cache and response store, which otherwise fill for hours as they should:
    foretoken serve --kv-cache-memory-bytes 67108864 --max-stored-responses 64
"""

import argparse
import asyncio
import collections
import json
import os
import random
import sys
import time

from load_suite import Server, read_chunks, read_head

WORDS = "a cat and the little duck went to see an old green house by river because it was cold".split()
SCHEMAS = [
    {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
                                      "age": {"type": "integer", "minimum": 0, "maximum": 99}},
     "required": ["name", "age"], "additionalProperties": False},
    {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "minItems": 1, "maxItems": 4},
    {"type": "object", "properties": {"tags": {"type": "array", "maxItems": 2, "items": {
        "type": "string", "maxLength": 6}}}, "required": ["tags"], "additionalProperties": False},
]
IDLE_METRICS = ("vllm:num_requests_running", "vllm:num_requests_waiting",
                "vllm:kv_cache_usage_perc")


class Traffic:
    """Makes requests at random and counts what came of them."""

    def __init__(self, server, seed, max_model_len):
        self.server, self.rng = server, random.Random(seed)
        # In tokens; a word is at most three.
        self.longest = max_model_len // 2
        self.counts, self.wrong = collections.Counter(), []

    def text(self, longest=None):
        # Half of the prompts are short; few are near the model's length.
        length = int(min(self.rng.paretovariate(0.7) * 8, longest or self.longest // 3))
        start = f"{self.rng.randrange(200)} " if self.rng.random() < 0.7 else ""
        return start + " ".join(self.rng.choice(WORDS) for _ in range(length))

    def sampling(self):
        """Fields that generating endpoints share."""
        rng = self.rng
        fields = {"max_tokens": int(min(rng.paretovariate(0.6) * 6, self.longest // 2)),
                  "temperature": rng.choice([0, 0, 0.7, 1.0]), "stream": rng.random() < 0.5}
        if rng.random() < 0.5:
            fields["ignore_eos"] = True
        if rng.random() < 0.2:
            fields |= {"top_p": 0.9, "top_k": 40, "seed": rng.randrange(1000)}
        if rng.random() < 0.1:
            fields["stop"] = ["the", "duck"]
        if rng.random() < 0.1:
            fields["repetition_penalty"] = 1.1
        if rng.random() < 0.05:
            fields["timeout_seconds"] = 0.05
        return fields

    def grammar(self):
        schema = dict(self.rng.choice(SCHEMAS), title=f"schema {self.rng.randrange(200)}")
        return self.rng.choice([
            {"response_format": {"type": "json_schema",
                                 "json_schema": {"name": "it", "schema": schema}}},
            {"structured_outputs": {"regex": f"[a-f]{{1,{self.rng.randrange(2, 30)}}}"}},
            {"structured_outputs": {"choice": ["yes", "no", f"{self.rng.randrange(100)}"]}},
        ])

    def completion(self):
        body = {"prompt": self.text(), **self.sampling()}
        if self.rng.random() < 0.2:
            body["logprobs"] = 3
        if self.rng.random() < 0.1:
            body |= {"n": 2, "temperature": 0.7}
        if self.rng.random() < 0.1:
            body["prompt"] = [self.text(20) for _ in range(3)]
        return "/v1/completions", body

    def chat(self):
        body = {"messages": [{"role": "user", "content": self.text()}], **self.sampling()}
        if self.rng.random() < 0.3:
            body |= self.grammar()
            body["max_tokens"] = 64
        return "/v1/chat/completions", body

    def responses(self):
        body = {"input": self.text(), **self.sampling(), "store": self.rng.random() < 0.5}
        body["max_output_tokens"] = body.pop("max_tokens")
        return "/v1/responses", body

    def messages(self):
        body = {"messages": [{"role": "user", "content": self.text()}], **self.sampling()}
        if "stop" in body:
            body["stop_sequences"] = body.pop("stop")
        return "/v1/messages", body

    def small(self):
        return self.rng.choice([
            ("/v1/embeddings", {"input": self.text(50)}), ("/tokenize", {"prompt": self.text()}),
            ("/detokenize", {"tokens": [self.rng.randrange(3, 500) for _ in range(20)]})])

    def wrong_request(self):
        """Requests that must be refused with 4xx."""
        path, body = self.chat()
        return path, self.rng.choice([
            {**body, "temperature": -1}, {**body, "messages": "hi"}, {**body, "no_such_field": 1},
            {**body, "model": "no-such-model"}, {**body, "n": 0},
            {**body, "response_format": {"type": "json_schema", "json_schema": {
                "name": "x", "schema": {"type": 5}}}}, b"{broken", b"\xff\xfe", b"[" * 5000])

    def good_request(self):
        kinds = (self.completion, self.chat, self.responses, self.messages, self.small)
        return self.rng.choices(kinds, weights=(4, 4, 1, 1, 1))[0]()

    async def one(self, abort_share):
        """One request of any kind; a share of them is left by its client."""
        if self.rng.random() < 0.08:
            path, body = self.wrong_request()
            await self.ask(path, body, range(400, 500))
        elif self.rng.random() < abort_share:
            path, body = self.good_request()
            await self.leave(path, body, self.rng.choice([0, 0.01, 0.1, 0.5]))
        else:
            path, body = self.good_request()
            await self.ask(path, body, (200, 429, 504) if "timeout_seconds" in body else (200, 429))

    def data(self, path, body):
        return self.server.post(path, body if isinstance(body, bytes) else
                                json.dumps(body).encode(), "Connection: close\r\n")

    async def ask(self, path, body, right):
        try:
            answer = await self.server.ask(self.data(path, body))
            status = answer.status
            streamed = status == 200 and isinstance(body, dict) and body.get("stream")
            if streamed and not ends_well(path, answer.body):
                status = f"a stream that ends with {answer.body[-200:]!r}"
        except (OSError, asyncio.TimeoutError) as error:
            status = repr(error)
        self.counts[status if isinstance(status, int) else "failed"] += 1
        if status not in right and len(self.wrong) < 100:
            shown = body if isinstance(body, bytes) else json.dumps(body)
            self.wrong.append(f"{path} {shown[:300]!r}: {status}")

    async def leave(self, path, body, after):
        """Sends a request and closes the connection, while it is answered or before."""
        try:
            reader, writer = await self.server.open()
            writer.write(self.data(path, body))
            try:
                await asyncio.wait_for(reader.read(200), after or 0.001)
                await asyncio.sleep(after)
            except asyncio.TimeoutError:
                pass
            writer.close()
            self.counts["left"] += 1
        except OSError as error:
            self.wrong.append(f"leaving {path}: {error!r}")

    async def trickle(self):
        """A stream whose reader takes a few bytes now and then."""
        reader, writer = await self.server.open()
        path, body = self.chat()
        body["stream"] = True
        writer.write(self.data(path, body))
        status, _ = await read_head(reader)
        self.counts[status] += 1
        if status != 200:
            if status != 504:
                self.wrong.append(f"trickle: {status} for {json.dumps(body)[:300]}")
            return writer.close()
        try:
            async for _ in read_chunks(reader):
                await asyncio.sleep(self.rng.uniform(0, 0.05))
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            self.wrong.append(f"trickle: {error!r}")
        writer.close()


def ends_well(path, body):
    """Whether a stream has its API's last event."""
    ends = {"/v1/responses": (b"response.completed", b"response.incomplete", b"response.failed"),
            "/v1/messages": (b"message_stop", b'"error"')}.get(path, (b"[DONE]",))
    return any(end in body[-20000:] for end in ends)


async def phase(traffic, rng):
    """One phase of the traffic; its name."""
    kind = rng.choices(("burst", "steady", "leave", "rest", "trickle"),
                       weights=(3, 4, 2, 2, 1))[0]
    if kind == "burst":
        await asyncio.gather(*(traffic.one(0.1) for _ in range(rng.randrange(20, 200))))
    elif kind == "steady":
        tasks = []
        end = time.monotonic() + rng.uniform(3, 12)
        while time.monotonic() < end:
            tasks.append(asyncio.ensure_future(traffic.one(0.1)))
            await asyncio.sleep(rng.expovariate(rng.choice([5, 20])))
        await asyncio.gather(*tasks)
    elif kind == "leave":
        await asyncio.gather(*(traffic.one(0.9) for _ in range(rng.randrange(20, 100))))
    elif kind == "trickle":
        await asyncio.gather(*(traffic.trickle() for _ in range(5)))
    else:
        await asyncio.sleep(rng.uniform(1, 6))
    return kind


class Watch:
    """What the server's process holds when nothing runs."""

    def __init__(self, server, curve):
        self.server, self.begin, self.samples, self.problems = server, time.monotonic(), [], []
        self.curve = open(curve, "w", encoding="utf-8") if curve else None
        if self.curve:
            self.curve.write("minutes,phase,requests,rss_mib,files,threads\n")

    async def at_rest(self, name, num_requests):
        held = await self.wait_idle()
        if held:
            self.problems.append(f"after {name}: {held}")
        rss, files = self.server.process()
        threads = len(os.listdir(f"/proc/{self.server.pid}/task"))
        sample = ((time.monotonic() - self.begin) / 60, name, num_requests, rss, files, threads)
        self.samples.append(sample)
        if self.curve:
            self.curve.write("%.2f,%s,%d,%.2f,%d,%d\n" % sample)
            self.curve.flush()

    async def wait_idle(self, seconds=300):
        """Waits until the gauges are zero; what is still held after that."""
        end = time.monotonic() + seconds
        while True:
            page = (await self.server.get("/metrics")).body.decode()
            held = {line.split("{")[0]: float(line.rsplit(" ", 1)[1])
                    for line in page.splitlines() if line.startswith(IDLE_METRICS)
                    and "by_reason" not in line}
            if len(held) == len(IDLE_METRICS) and not any(held.values()):
                return None
            if time.monotonic() > end:
                return held
            await asyncio.sleep(0.1)

    def growth(self, skip=1 / 3):
        """MiB an hour by least squares over the samples behind the first share of them."""
        rest = self.samples[int(len(self.samples) * skip):]
        times, sizes = [s[0] / 60 for s in rest], [s[3] for s in rest]
        mean_time, mean_size = sum(times) / len(rest), sum(sizes) / len(rest)
        spread = sum((t - mean_time) ** 2 for t in times)
        return sum((t - mean_time) * (s - mean_size) for t, s in zip(times, sizes)) / spread

    def report(self):
        files, threads = ([s[i] for s in self.samples] for i in (4, 5))
        tenth = max(1, len(self.samples) // 10)
        print("curve (minutes: MiB): " + ", ".join(
            f"{s[0]:.1f}: {s[3]:.1f}" for s in self.samples[::tenth]))
        print(f"open files {min(files)} to {max(files)}, at the end {files[-1]}; threads "
              f"{min(threads)} to {max(threads)}, at the end {threads[-1]}")


async def run(args):
    server = Server(args)
    model = (await server.get("/v1/models")).json()["data"][0]
    traffic = Traffic(server, args.seed, model["max_model_len"])
    rng = random.Random(args.seed + 1)
    watch = Watch(server, args.curve)
    await watch.at_rest("start", 0)
    phases = collections.Counter()
    while time.monotonic() - watch.begin < args.minutes * 60:
        if args.pause_file and os.path.exists(args.pause_file):
            await asyncio.sleep(1)
            continue
        name = await phase(traffic, rng)
        phases[name] += 1
        await watch.at_rest(name, sum(traffic.counts.values()))
    watch.report()
    print(f"phases {dict(phases)}; answers {dict(traffic.counts)}")
    growth = watch.growth()
    problems = traffic.wrong + watch.problems
    first, last = watch.samples[1], watch.samples[-1]
    if last[4] > first[4] + 8:
        problems.append(f"open files went from {first[4]} to {last[4]}")
    if growth > args.max_growth:
        problems.append(f"memory grew by {growth:.1f} MiB an hour")
    print(f"{'FAIL' if problems else 'ok'}: resident {watch.samples[0][3]:.1f} MiB at the start, "
          f"{last[3]:.1f} at the end, {growth:+.1f} MiB an hour over the last two thirds; "
          f"{len(problems)} problems")
    for problem in problems[:10]:
        print("  " + problem)
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", default="http://127.0.0.1:8000")
    parser.add_argument("--pid", type=int, required=True, help="of the server")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--curve", help="CSV file for the samples")
    parser.add_argument("--pause-file", help="no traffic while it exists")
    parser.add_argument("--max-growth", type=float, default=60, help="MiB an hour that pass")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one request")
    parser.add_argument("--api-key")
    parser.set_defaults(model=None)
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
