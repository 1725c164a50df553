#!/usr/bin/env python3
"""Who is nearer to the weights' own float32 answer, foretoken or llama.cpp?

    bench/peers/llama_agreement.py --llama-server PROGRAM --foretoken PROGRAM --gguf FILE [--f32-gguf FILE]
        [--prompts 20] [--tokens 64] [--out FILE.json]

llama-server writes TOKENS greedy tokens behind each prompt (prompts behind which it ends earlier are left out). Then every candidate reads the same ids (teacher
forcing) and says its best two tokens at each of these positions: llama-server as it is, with caches of float32
and without flash attention, with the same weights stored as F32, and foretoken with its own types and with
--dtype float32. The reference is transformers in float64 on the weights as the file's blocks spell them
(dequantised by the package gguf), so that nothing but the file's rounding is in it.

Printed for each candidate: positions whose arg-max is llama-server's and the reference's, the root mean square
of the difference to the reference's log-probability of the reference's best token, and the greatest gap between
the reference's two best tokens where the arg-max is not the reference's. Needs torch, transformers and gguf.
"""

import argparse
import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

PROMPTS = pathlib.Path(__file__).parents[1] / "prompts" / "prompts.jsonl"


class Server:
    """A server's process on a port of its own, from entry, when it is healthy, to exit."""

    def __init__(self, command, log):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.command = [*command, "--host", "127.0.0.1", "--port", str(self.port)]
        self.log = log

    def __enter__(self):
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        for _ in range(3000):
            if self.process.poll() is not None:
                sys.exit(f"{self.command[0]} ended at its start; see {self.log}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return self
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        sys.exit(f"{self.command[0]} did not become healthy; see {self.log}")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def post(self, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(),
                                         {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)


def llama_server(args, gguf, *flags):
    return Server([args.llama_server, "-m", gguf, "-c", "4096", "-np", "1", "-t", str(args.threads), *flags],
                  "/tmp/llama_agreement_llama.log")


def write_texts(server, count, tokens):
    """For `count` prompts their ids and those that llama-server writes behind them, greedily."""
    texts = []
    for line in PROMPTS.read_text(encoding="utf-8").splitlines():
        prompt = json.loads(line)["prompt"][:600]
        ids = server.post("/tokenize", {"content": prompt, "add_special": True})["tokens"]
        answer = server.post("/completion", {"prompt": ids, "n_predict": tokens, "temperature": 0,
                                             "return_tokens": True, "cache_prompt": False})
        if len(answer["tokens"]) == tokens:
            texts.append({"prompt": ids, "written": answer["tokens"]})
        if len(texts) == count:
            break
    return texts


def best_of_llama(server, texts):
    """The best two tokens with log-probabilities at each written position, after the text before it."""
    best = []
    for text in texts:
        for position in range(len(text["written"])):
            ids = text["prompt"] + text["written"][:position]
            answer = server.post("/completion", {"prompt": ids, "n_predict": 1, "temperature": 0, "n_probs": 20,
                                                 "cache_prompt": True})
            tops = answer["completion_probabilities"][0]["top_logprobs"]
            best.append({top["id"]: top["logprob"] for top in tops})
    return best


def best_of_foretoken(server, texts):
    best = []
    for text in texts:
        ids = text["prompt"] + text["written"]
        answer = server.post("/v1/completions", {"prompt": ids, "max_tokens": 1, "temperature": 0,
                                                 "prompt_logprobs": 20})
        rows = answer["choices"][0]["prompt_logprobs"][len(text["prompt"]):]
        # A token of the text that is none of the best has its own entry: only ranks up to 20 count.
        best += [{int(token): entry["logprob"] for token, entry in row.items() if entry["rank"] <= 20}
                 for row in rows]
    return best


def reference(gguf, texts):
    """Float64 log-probabilities of all tokens at the written positions."""
    import torch
    from transformers import AutoModelForCausalLM

    path = pathlib.Path(gguf)
    model = AutoModelForCausalLM.from_pretrained(str(path.parent), gguf_file=path.name,
                                                 dtype=torch.float32, attn_implementation="eager")
    model = model.double().eval()
    rows = []
    with torch.no_grad():
        for text in texts:
            ids = torch.tensor([text["prompt"] + text["written"]])
            logits = model(ids).logits[0, len(text["prompt"]) - 1:-1]
            rows += list(torch.log_softmax(logits.double(), dim=-1))
    return rows


def row_of(name, best, written, truth):
    same_llama = same_truth = 0
    squares, gaps, own_gaps = [], [], []
    for row, token, exact in zip(best, written, truth):
        order = sorted(row, key=row.get, reverse=True)
        top = exact.topk(2)
        first = int(top.indices[0])
        same_llama += order[0] == token
        same_truth += order[0] == first
        if first in row:
            squares.append((row[first] - float(top.values[0])) ** 2)
        if order[0] != first:
            gaps.append(float(exact[first] - exact[order[0]]))
        if order[0] != token:
            own_gaps.append(row[order[0]] - row.get(token, min(row.values())))
    count = len(written)
    return {"candidate": name, "positions": count, "same_as_llama": 100 * same_llama / count,
            "same_as_float64": 100 * same_truth / count,
            "rms_logprob_error": math.sqrt(sum(squares) / max(1, len(squares))),
            "largest_true_gap_where_wrong": max(gaps, default=0.0),
            "largest_own_gap_to_llama": max(own_gaps, default=0.0)}


def candidates(args, texts):
    plain = ["-ctk", "f32", "-ctv", "f32", "-fa", "off"]
    runs = [("llama.cpp, defaults", llama_server(args, args.gguf), best_of_llama),
            ("llama.cpp, f32 caches, no flash attention", llama_server(args, args.gguf, *plain), best_of_llama)]
    if args.f32_gguf:
        runs += [("llama.cpp, F32 weights", llama_server(args, args.f32_gguf), best_of_llama),
                 ("llama.cpp, F32 weights, f32 caches, no flash attention", llama_server(args, args.f32_gguf, *plain),
                  best_of_llama)]
    ours = [args.foretoken, "serve", "--max-model-len", "2048", "--model"]
    log = "/tmp/llama_agreement_foretoken.log"
    runs += [("foretoken, defaults", Server([*ours, args.gguf], log), best_of_foretoken),
             ("foretoken, --dtype float32", Server([*ours, args.gguf, "--dtype", "float32"], log), best_of_foretoken)]
    if args.f32_gguf:
        runs.append(("foretoken, F32 weights, --dtype float32",
                     Server([*ours, args.f32_gguf, "--dtype", "float32"], log), best_of_foretoken))
    for name, server, ask in runs:
        with server:
            yield name, ask(server, texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama-server", required=True)
    parser.add_argument("--foretoken", required=True)
    parser.add_argument("--gguf", required=True)
    parser.add_argument("--f32-gguf")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of llama-server")
    parser.add_argument("--out")
    args = parser.parse_args()
    with llama_server(args, args.gguf) as server:
        texts = write_texts(server, args.prompts, args.tokens)
    written = [token for text in texts for token in text["written"]]
    print(f"{len(texts)} prompts, {len(written)} written tokens", flush=True)
    truth = reference(args.gguf, texts)
    tops = [exact.topk(2).values for exact in truth]
    close = sum(float(top[0] - top[1]) < 0.1 for top in tops)
    print(f"the reference's best two are closer than 0.1 in {close} positions", flush=True)
    rows = []
    for name, best in candidates(args, texts):
        rows.append(row_of(name, best, written, truth))
        print(json.dumps(rows[-1]), flush=True)
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps({"gguf": args.gguf, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
