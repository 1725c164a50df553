#!/usr/bin/env python3
"""Tokens/s of `foretoken serve` beside the engine alone, with the same requests in flight.

    bench/serving_overhead.py --bin build/cuda-release/foretoken --out OUT --clients 1,4,16 -- --device cuda ...

For each number of clients N the same text prompts run N at a time, each client sending its next prompt when an
answer has ended: through `foretoken bench serve` against a server that runs all the time, streaming, and through
`foretoken bench throughput` in a process of its own, in turns. Prompts are pieces of the bundled ones, of about
--input-tokens; outputs are greedy and ignore EOS. Flags behind -- go to both engines.
Writes OUT/serving.jsonl, a line for each run, and OUT/serving.md. Standard library only.
"""

import argparse
import json
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMPTS = ROOT / "bench" / "prompts" / "prompts.jsonl"


def write_prompts(path, count, words, seed):
    """`count` pieces of the bundled prompts, of words[0] to words[1] words."""
    text = []
    for line in PROMPTS.read_text(encoding="utf-8").splitlines():
        text += json.loads(line)["prompt"].split()
    draw = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(count):
            length = draw.randint(*words)
            at = draw.randrange(len(text) - length)
            file.write(json.dumps({"prompt": " ".join(text[at:at + length])}) + "\n")


def start_server(args):
    words = [args.bin, "serve", args.model, "--host", "127.0.0.1", "--port", "0",
             "--no-access-log", "--log-level", "warning", "--no-keep-acceptance-rates", *args.engine]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    found = re.search(r"http://[^,\s]+", line)
    if not found:
        server.kill()
        sys.exit(f"the server did not start: {line}")
    return server, found.group(0)


def run(args, words):
    result = subprocess.run([args.bin, *words], check=False, capture_output=True, text=True,
                            timeout=args.timeout)
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{result.stdout}{result.stderr}")


def shared_flags(args, prompts, clients, requests):
    return ["--dataset-name", "custom", "--dataset-path", prompts, "--num-prompts", str(requests),
            "--output-len", str(args.output_len), "--max-concurrency", str(clients),
            "--num-warmups", str(clients), "--temperature", "0"]


def offline(args, folder, flags):
    out = pathlib.Path(folder) / "offline.json"
    run(args, ["bench", "throughput", "--model", args.model, "--log-level", "error",
               "--output-json", str(out), *flags, *args.engine])
    result = json.loads(out.read_text(encoding="utf-8"))
    output = result["drafts"]["output_tokens"]
    return {"seconds": result["elapsed_time"], "output_tokens": output,
            "input_tokens": result["total_num_tokens"] - output,
            "tokens_per_second": result["output_tokens_per_second"]}


def served(args, folder, flags, url):
    out = pathlib.Path(folder) / "served.json"
    out.unlink(missing_ok=True)
    run(args, ["bench", "serve", "--base-url", url, "--skip-tokenizer-init", "--disable-shuffle",
               "--skip-chat-template", "--ignore-eos", "--disable-tqdm", "--save-result",
               "--result-dir", folder, "--result-filename", "served.json", "--percentile-metrics",
               "ttft,tpot,itl,e2el", "--metric-percentiles", "50,99", *flags])
    result = json.loads(out.read_text(encoding="utf-8"))
    if result["failed"] or result["completed"] == 0:
        sys.exit(f"{result['failed']} requests failed")
    record = {"seconds": result["duration"], "output_tokens": result["total_output_tokens"],
              "input_tokens": result["total_input_tokens"],
              "tokens_per_second": result["output_throughput"]}
    for metric in ("ttft", "itl", "tpot"):
        for percentile in (50, 99):
            key = f"p{percentile}_{metric}_ms"
            record[key] = result[key]
    return record


def measure(args, url, clients, requests, round_number, folder):
    prompts = str(pathlib.Path(folder) / f"prompts-{clients}.jsonl")
    write_prompts(prompts, requests, args.words, clients)
    flags = shared_flags(args, prompts, clients, requests)
    runs = {}
    order = ["offline", "served"] if round_number % 2 == 0 else ["served", "offline"]
    for way in order:
        runs[way] = (offline(args, folder, flags) if way == "offline"
                     else served(args, folder, flags, url))
    for field in ("input_tokens", "output_tokens"):
        if runs["offline"][field] != runs["served"][field]:
            sys.exit(f"{field} differ: {runs}")
    overhead = 1 - runs["served"]["tokens_per_second"] / runs["offline"]["tokens_per_second"]
    print(f"{clients} clients, round {round_number}: offline "
          f"{runs['offline']['tokens_per_second']:.1f}, served "
          f"{runs['served']['tokens_per_second']:.1f} tokens/s, overhead {100 * overhead:.2f} %",
          flush=True)
    return {"clients": clients, "round": round_number, "requests": requests, "first": order[0],
            "overhead": overhead, **runs}


def table(records, args):
    lines = ["| clients | requests | input tokens | offline tokens/s | served tokens/s | overhead "
             "(rounds) | TTFT p50 / p99 ms | ITL p50 / p99 ms |", "|" + "---|" * 8]
    for clients in sorted({record["clients"] for record in records}):
        rounds = [record for record in records if record["clients"] == clients]
        middle = lambda get: statistics.median(get(record) for record in rounds)
        serve = lambda key: middle(lambda record: record["served"][key])
        rates = [middle(lambda record, way=way: record[way]["tokens_per_second"])
                 for way in ("offline", "served")]
        overheads = ", ".join(f"{100 * record['overhead']:.2f}" for record in rounds)
        lines.append(
            f"| {clients} | {rounds[0]['requests']} | {rounds[0]['offline']['input_tokens']} "
            f"| {rates[0]:.1f} | {rates[1]:.1f} "
            f"| {100 * middle(lambda record: record['overhead']):.2f} % ({overheads}) "
            f"| {serve('p50_ttft_ms'):.1f} / {serve('p99_ttft_ms'):.1f} "
            f"| {serve('p50_itl_ms'):.2f} / {serve('p99_itl_ms'):.2f} |")
    lines += ["", f"Medians of the rounds; {args.output_len} tokens of output a request, all "
              "requests the same both ways."]
    return "\n".join(lines) + "\n"


def numbers(text):
    return [int(part) for part in text.split(",")]


def load_parser(description, **defaults):
    """A parser of what both benches of servers take; `defaults` replaces defaults."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the foretoken command")
    parser.add_argument("--out", required=True, help="folder for the results")
    parser.add_argument("--model", default=str(ROOT / "models" / "foretoken-7m"))
    parser.add_argument("--clients", type=numbers, default=[1, 4, 16, 64, 256])
    parser.add_argument("--requests", type=numbers, default=[8, 32, 96, 256, 768],
                        help="of a run, for each number of clients")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--words", type=numbers, default=[85, 340],
                        help="least and most words of a prompt")
    parser.add_argument("--output-len", type=int, default=128)
    parser.add_argument("--timeout", type=float, default=120, help="seconds of a run")
    parser.add_argument("engine", nargs="*", help="after --: flags of both engines")
    parser.set_defaults(**defaults)
    return parser


def parse_load(parser):
    args = parser.parse_args()
    if len(args.clients) != len(args.requests):
        parser.error("--clients and --requests must be equally many")
    return args


def main():
    args = parse_load(load_parser(__doc__))
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    # So that the server ends with this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    records = []
    server, url = start_server(args)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(args.rounds):
                for clients, requests in zip(args.clients, args.requests):
                    records.append(measure(args, url, clients, requests, number, folder))
                    with open(out / "serving.jsonl", "a", encoding="utf-8") as file:
                        file.write(json.dumps(records[-1]) + "\n")
                    (out / "serving.md").write_text(table(records, args), encoding="utf-8")
    finally:
        server.terminate()
        code = server.wait(timeout=60)
    print(table(records, args))
    return 0 if code == 0 else f"the server ended with {code}"


if __name__ == "__main__":
    sys.exit(main())
