#!/usr/bin/env python3
"""Random requests have the same answers with drafts and without, alone and together, whole and streamed.

    tests/e2e/differential_suite.py PROGRAM [--count 300] [--seed 1] [--one-rank] [--flags FLAGS]

Every answer is compared with that of a server without drafts that was asked one by one: texts, calls, ids,
log-probabilities, counts and reasons. Two servers with the bundled drafters and lists of them are asked six requests
at a time; further ones have steps of few tokens, few KV blocks, two stages and two engines, and run-batch has those of
the requests that it takes. FLAGS, as "--device cuda --kv-cache-dtype fp8", are every server's; --one-rank leaves those
of several ranks and engines out, which want a GPU each. Standard library only; exits with 1 when an answer differs, and
shows where.
"""

import argparse
import concurrent.futures
import http.client
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import urllib.parse

from random_requests import Requests
from server_process import Server

MODELS = pathlib.Path(__file__).resolve().parent.parent.parent / "models"
HEADS = MODELS.parent / "tests" / "golden" / "heads"
BASE = str(MODELS / "foretoken-7m")
FLAGS = ("--max-model-len", "512", "--served-model-name", "foretoken-7m", "--no-access-log", "--cpu-threads", "1")
OFF = {"enabled": False}


def files(method, folder, num_drafts=3):
    return {"method": method, "model": str(folder), "num_speculative_tokens": num_drafts}


FIRST = [{"method": "ngram", "num_speculative_tokens": 3}, {"method": "suffix"},
         files("eagle3", MODELS / "foretoken-7m-eagle3"), files("draft_model", MODELS / "foretoken-7m-draft")]
SECOND = [files("mtp", MODELS / "foretoken-7m-mtp", 2), {"method": "dflash", "model": str(HEADS / "foretoken-7m-dflash")},
          {"method": "medusa", "model": str(HEADS / "foretoken-7m-medusa")}, files("eagle", MODELS / "foretoken-7m-eagle")]
LIST = ["ngram", "suffix", "eagle3"]
# What a server has beside its drafters, and which of them its requests name.
SERVERS = [(FIRST, (), ["ngram", "suffix", "eagle3", "draft_model", LIST]),
           (SECOND, (), ["mtp", "dflash", "medusa", "eagle"]),
           (FIRST, ("--max-num-batched-tokens", "32", "--max-num-seqs", "4"), [["ngram", "eagle3"]]),
           (FIRST, ("--num-gpu-blocks-override", "40"), ["eagle3"]),
           (FIRST, ("--no-enable-prefix-caching", "--enforce-eager"), ["draft_model"]),
           (FIRST, ("--pipeline-parallel-size", "2"), [LIST]),
           (FIRST, ("--data-parallel-size", "2"), ["suffix"])]
SEVERAL_RANKS = {"--pipeline-parallel-size", "--data-parallel-size"}
# Names, times and what is known of drafts and caches.
OWN = {"id", "created", "created_at", "completed_at", "timings", "metrics", "generation_settings", "warnings",
       "tokens_cached", "call_id", "system_fingerprint", "speculative", "completion_tokens_details",
       "prompt_tokens_details", "input_tokens_details", "output_tokens_details", "input_tokens",
       "cache_read_input_tokens", "cache_creation_input_tokens"}


def ask(url, path, body, spec, stream=False):
    """Status and text of an answer."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=300)
    data = json.dumps({**body, "speculative": spec, "stream": stream})
    try:
        connection.request("POST", path, data, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8")
    finally:
        connection.close()


def kept(value):
    if isinstance(value, dict):
        return {name: kept(part) for name, part in value.items() if name not in OWN}
    return [kept(part) for part in value] if isinstance(value, list) else value


def answer_of(status, text):
    """What must be the same of a whole answer; errors name the request, and their status is enough."""
    return status, kept(json.loads(text)) if status == 200 else None


def positions(logprobs):
    """The log-probabilities of a choice, one after the other."""
    if not logprobs:
        return []
    if "content" in logprobs:
        return logprobs["content"] or []
    # Alternatives have their own order in a dictionary, and none where only the tokens' were wanted.
    tops = logprobs["top_logprobs"] or [None] * len(logprobs["tokens"])
    return [list(one) for one in zip(logprobs["tokens"], logprobs["token_logprobs"], tops, logprobs["text_offset"])]


def calls_text(message):
    return "".join((call["function"].get("name") or "") + (call["function"].get("arguments") or "")
                   for call in message.get("tool_calls") or [])


def add_choice(choice, sums):
    """Adds a choice or a chunk of it to what came of its number so far."""
    sum_of = sums.setdefault(choice.get("index", 0), {"text": "", "calls": "", "logprobs": [], "ids": [], "end": None})
    message = choice.get("message") or choice.get("delta") or {}
    sum_of["text"] += choice.get("text") or choice.get("content") or message.get("content") or ""
    sum_of["calls"] += calls_text(message)
    sum_of["logprobs"] += positions(choice.get("logprobs")) or choice.get("completion_probabilities") or []
    sum_of["ids"] += choice.get("token_ids") or choice.get("tokens") or []
    end = choice.get("finish_reason") or choice.get("stop_type")
    if end and end != "none":
        sum_of["end"] = [end, choice.get("stop_reason"), choice.get("stopping_word")]


def sums_of(path, bodies):
    """What a whole answer, or the events of a stream, say of each choice."""
    sums = {}
    for body in bodies:
        if path == "/completion":
            for choice in body if isinstance(body, list) else [body]:
                add_choice(choice, sums)
        for choice in [] if path == "/completion" else body.get("choices", []):
            add_choice(choice, sums)
    return sums


def streamed_differs(path, whole, events):
    """Where a stream says something else than a whole answer, or None."""
    if path == "/v1/responses":
        told = [event["response"] for event in events if "response" in event][-1]
        return difference(kept(whole), kept(told))
    if path == "/generate":
        details = {**events[-1]["details"], "tokens": [event["token"] for event in events]}
        whole["details"] = {name: whole["details"][name] for name in ("finish_reason", "generated_tokens", "tokens")}
        told = {"generated_text": events[-1]["generated_text"], "details": details}
        return difference(whole, {**told, "details": {name: details[name] for name in whole["details"]}})
    if path == "/v1/messages":
        text = "".join(event.get("delta", {}).get("text", "") for event in events)
        return difference("".join(part.get("text", "") for part in whole["content"]), text)
    return difference(sums_of(path, [whole]), sums_of(path, events))


def difference(left, right, where=""):
    """The first place at which two values differ, or None."""
    if left == right:
        return None
    if isinstance(left, dict) and isinstance(right, dict):
        for name in [*left, *right]:
            if left.get(name) != right.get(name):
                return difference(left.get(name), right.get(name), f"{where}/{name}")
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)) and len(left) == len(right):
        for i, (one, other) in enumerate(zip(left, right)):
            if one != other:
                return difference(one, other, f"{where}[{i}]")
    return f"{where}: {json.dumps(left)[:200]} | {json.dumps(right)[:200]}"


class Differences:
    """Compares answers with those that were given without drafts, and counts what differs."""

    def __init__(self, requests):
        self.requests = requests
        self.wanted = []
        self.count = 0

    def tell(self, label, request, where):
        if where is None:
            return
        self.count += 1
        print(f"{label}: {request[0]} {json.dumps(request[1])}\n    {where}", flush=True)

    def whole(self, url, spec, label):
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda request: ask(url, *request, spec), self.requests))
        for request, wanted, answer in zip(self.requests, self.wanted, answers):
            self.tell(label, request, difference(answer_of(*wanted), answer_of(*answer)))

    def streams(self, url, spec, label):
        for request, (status, text) in zip(self.requests, self.wanted):
            if status != 200:
                continue
            _, events = ask(url, *request, spec, stream=True)
            told = [json.loads(line[6:]) for line in events.splitlines()
                    if line.startswith("data: ") and line != "data: [DONE]"]
            self.tell(f"{label}, streamed", request, streamed_differs(request[0], json.loads(text), told))


    def batch(self, program, drafters, flags):
        asked = {str(i): request for i, request in enumerate(self.requests)
                 if request[0] in ("/v1/completions", "/v1/chat/completions")}
        lines = [{"custom_id": i, "method": "POST", "url": path, "body": body} for i, (path, body) in asked.items()]
        with tempfile.TemporaryDirectory() as folder:
            given, found = pathlib.Path(folder) / "in.jsonl", pathlib.Path(folder) / "out.jsonl"
            given.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            subprocess.run([program, "run-batch", "-i", str(given), "-o", str(found), "--model", BASE, *FLAGS[:4], *flags,
                            "--speculative-config", json.dumps(drafters), "--log-level", "error"], check=True)
            for line in found.read_text(encoding="utf-8").splitlines():
                told = json.loads(line)
                i = told["custom_id"]
                answer = told["response"]["status_code"], json.dumps(told["response"]["body"])
                self.tell("run-batch", asked[i], difference(answer_of(*self.wanted[int(i)]), answer_of(*answer)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one-rank", action="store_true")
    parser.add_argument("--flags", type=shlex.split, default=[])
    arguments = parser.parse_args()
    every = [*FLAGS, *arguments.flags]
    with Server(arguments.program, BASE, *every) as server:
        vocab_size = json.loads((pathlib.Path(BASE) / "config.json").read_text(encoding="utf-8"))["vocab_size"]
        drawn = Requests(arguments.seed, vocab_size)
        differences = Differences([drawn.draw() for _ in range(arguments.count)])
        differences.wanted = [ask(server.url, *request, OFF) for request in differences.requests]
        differences.streams(server.url, OFF, "no drafts")
    refused = sum(status != 200 for status, _ in differences.wanted)
    print(f"{arguments.count} requests, {refused} of which are refused", flush=True)
    for drafters, flags, methods in SERVERS:
        if arguments.one_rank and SEVERAL_RANKS.intersection(flags):
            continue
        with Server(arguments.program, BASE, *every, *flags, "--speculative-config", json.dumps(drafters)) as server:
            for method in methods:
                label = " ".join([*flags, str(method)])
                differences.whole(server.url, {"method": method}, label)
                if not flags:
                    differences.streams(server.url, {"method": method}, label)
                print(f"{label}: {differences.count} differences so far", flush=True)
    differences.batch(arguments.program, FIRST, arguments.flags)
    print(f"run-batch: {differences.count} differences so far", flush=True)
    return 1 if differences.count else 0


if __name__ == "__main__":
    sys.exit(main())
