#!/usr/bin/env python3
"""foretoken serve against llama-server on the same machine and weights, in interleaved rounds.

    bench/peers/llama_server.py --foretoken build/cpu-release/foretoken --hf DIR \\
        --llama-server build/bin/llama-server --gguf FILE [--rounds 6]

Both servers are up all the time and take turns, the first one of a round alternately, because the memory
bandwidth of shared machines drifts: only the ratios of a round mean something. One client for both: streaming
/v1/completions, prompts of token ids that no server can have cached, greedy, EOS ignored. TTFT ends with the
first chunk that has text; tokens a second are those of all clients from the first request to the last chunk.
Standard library only.
"""

import argparse
import http.client
import json
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import threading
import time

NAMES = ("foretoken", "llama-server")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server's process on a port of its own; in use from entry, when it is healthy, to exit."""

    def __init__(self, name, command, log):
        self.name, self.port = name, free_port()
        self.command = [*command, "--host", "127.0.0.1", "--port", str(self.port)]
        self.log = open(log, "w", encoding="utf-8")

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        for _ in range(1200):
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended at its start; see {self.log.name}")
            if self.healthy():
                return self
            time.sleep(0.1)
        sys.exit(f"{self.name} is not healthy after two minutes; see {self.log.name}")

    def healthy(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def __exit__(self, kind, value, trace):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.log.close()


def ascii_tokens(hf):
    """Ids whose text is printable ASCII alone, so that every token streams as text at once."""
    vocab = json.loads((hf / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    return [index for text, index in vocab.items() if text.isascii() and text.isalnum()]


def read_stream(connection, body):
    """(start, times of chunks with text, completion tokens) of one request."""
    begin = time.perf_counter()
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"status {response.status}: {response.read()[:300]!r}")
    times, num_tokens = [], 0
    for line in response:
        if not line.startswith(b"data: {"):
            continue
        chunk = json.loads(line[6:])
        if any(choice.get("text") for choice in chunk.get("choices", [])):
            times.append(time.perf_counter())
        if chunk.get("usage"):
            num_tokens = chunk["usage"]["completion_tokens"]
    return begin, times, num_tokens


def run_round(server, prompts, num_output):
    """What the clients of one round saw, all of them starting together."""
    records, failures = [], []
    barrier = threading.Barrier(len(prompts))

    def client(prompt):
        body = json.dumps({"prompt": prompt, "max_tokens": num_output, "temperature": 0,
                           "stream": True, "ignore_eos": True,
                           "stream_options": {"include_usage": True}})
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
        barrier.wait()
        try:
            records.append(read_stream(connection, body))
        except Exception as failure:
            failures.append(failure)
        finally:
            connection.close()

    threads = [threading.Thread(target=client, args=(prompt,)) for prompt in prompts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        sys.exit(f"{server.name}: {failures[0]!r}")
    return summarize(records, num_output)


def summarize(records, num_output):
    for _, times, num_tokens in records:
        if num_tokens != num_output or not times:
            sys.exit(f"{num_tokens} tokens in {len(times)} chunks instead of {num_output} tokens")
    begin = min(record[0] for record in records)
    end = max(record[1][-1] for record in records)
    gaps = [b - a for _, times, _ in records for a, b in zip(times, times[1:])]
    ttfts = [times[0] - start for start, times, _ in records]
    return {"mean_ttft_ms": statistics.mean(ttfts) * 1e3, "min_ttft_ms": min(ttfts) * 1e3,
            "max_ttft_ms": max(ttfts) * 1e3, "median_itl_ms": statistics.median(gaps) * 1e3,
            "max_itl_ms": max(gaps) * 1e3,
            "tokens_per_s": num_output * len(records) / (end - begin),
            "chunks": sum(len(times) for _, times, _ in records)}


def commands(args):
    length = args.input_len + args.output_len + 64
    yield [args.foretoken, "serve", "--model", str(args.foretoken_model or args.hf), "--served-model-name", "model",
           "--max-model-len", str(length), "--max-num-seqs", str(args.clients),
           "--no-enable-prefix-caching", "--log-level", "warning", "--no-keep-acceptance-rates",
           *args.foretoken_flags.split()]
    yield [args.llama_server, "-m", str(args.gguf), "-t", str(args.threads), "-tb",
           str(args.threads), "-np", str(args.clients), "-c", str(length * args.clients),
           "--no-cache-prompt", *args.llama_flags.split()]


def ratio_line(name, rounds, better):
    ratios = sorted(pair["foretoken"][name] / pair["llama-server"][name] for pair in rounds)
    return f"{name}: foretoken / llama-server median {statistics.median(ratios):.3f}, " \
           f"{ratios[0]:.3f} to {ratios[-1]:.3f} ({better} is better)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--foretoken", required=True)
    parser.add_argument("--llama-server", required=True)
    parser.add_argument("--hf", type=pathlib.Path, required=True, help="folder of the checkpoint")
    parser.add_argument("--gguf", type=pathlib.Path, required=True, help="the same weights")
    parser.add_argument("--foretoken-model", help="what it loads instead of the folder")
    parser.add_argument("--foretoken-flags", default="", help="more of them, in one word")
    parser.add_argument("--llama-flags", default="", help="likewise")
    for name, default in (("rounds", 6), ("clients", 8), ("input-len", 128), ("output-len", 48),
                          ("threads", 2), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--logs", default="/tmp", help="folder for the servers' logs")
    parser.add_argument("--json", help="file for all figures")
    args = parser.parse_args()
    tokens, rng = ascii_tokens(args.hf), random.Random(args.seed)

    def prompts(count, length):
        return [[rng.choice(tokens) for _ in range(length)] for _ in range(count)]

    servers = [Server(name, command, f"{args.logs}/{name}.log")
               for name, command in zip(NAMES, commands(args))]
    rounds = []
    with servers[0], servers[1]:
        for server in servers:
            run_round(server, prompts(args.clients, args.input_len), 8)
        for number in range(args.rounds):
            pair, texts = {}, prompts(args.clients, args.input_len)
            for server in servers if number % 2 == 0 else reversed(servers):
                pair[server.name] = run_round(server, texts, args.output_len)
                figures = ", ".join(f"{name} {value:.1f}"
                                    for name, value in pair[server.name].items())
                print(f"round {number} {server.name}: {figures}", flush=True)
            rounds.append(pair)
    for line in (("mean_ttft_ms", "less"), ("tokens_per_s", "more"), ("median_itl_ms", "less")):
        print(ratio_line(line[0], rounds, line[1]))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rounds, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
