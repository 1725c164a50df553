#!/usr/bin/env python3
"""What one request with a hostile grammar costs all others: clients without one stream answers from
`foretoken serve`, in turn alone, beside a plain request and beside a hostile one. Prints the others'
seconds for a token beside the hostile one as ratios to those beside the plain one and alone, the
medians of all rounds with their quartiles.
"""

import argparse
import concurrent.futures
import http.client
import itertools
import json
import statistics
import threading
import time
import urllib.parse

SALT = itertools.count()


def hostile(number):
    """Forms of output; each call gives other texts, so that none was compiled before."""
    salt = f"z{next(SALT)}{time.time_ns()}"
    nested = {"type": "string"}
    for _ in range(20):
        nested = {"anyOf": [{"type": "array", "items": nested}, {"type": "object", salt: 1}]}
    forms = [
        ("regex of many states", {"regex": f"(.*a.{{20}}b.{{20}}c.{{20}}d|{salt})"}),
        ("long choice", {"choice": [f"{salt}{i * 7919 % 20011} {i}" for i in range(20000)]}),
        ("counted pattern", {"json": {"type": "string", "pattern": f"^([a-d]{{1,900}}|{salt})x{{1,900}}$"}}),
        ("ambiguous grammar", {"grammar": f'start: start start | "a" | "{salt}" | ""'}),
        ("deep choices", {"json": nested}),
    ]
    return forms[number % len(forms)]


NUM_FORMS = 5


def ask(url, body, count=None):
    """Streams one completion; appends the times of its chunks to `count`."""
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=600)
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    for line in response:
        if count is not None and line.startswith(b"data: {"):
            count.append(time.perf_counter())
    connection.close()
    return response.status


def one_round(url, args, companion):
    """Seconds for a token of the others, first token left out."""
    stop = threading.Event()
    body = {"prompt": "Once upon a time", "max_tokens": args.tokens, "ignore_eos": True,
            "temperature": 1.0, "stream": True}

    def accompany():
        while companion is not None and not stop.is_set():
            status = ask(url, {**body, "ignore_eos": False, **companion()})
            if status != 200:
                raise RuntimeError(f"the companion was answered with {status}")

    def other(seed):
        times = []
        ask(url, {**body, "seed": seed}, times)
        return (times[-1] - times[0]) / (args.tokens - 1)

    thread = threading.Thread(target=accompany)
    thread.start()
    time.sleep(0.2)
    with concurrent.futures.ThreadPoolExecutor(args.clients) as pool:
        seconds = list(pool.map(other, range(args.clients)))
    stop.set()
    thread.join()
    return statistics.mean(seconds)


def quartiles(ratios):
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    url = urllib.parse.urlparse(args.url)
    for form in range(NUM_FORMS):
        to_plain, to_alone = [], []
        for _ in range(args.rounds):
            alone = one_round(url, args, None)
            plain = one_round(url, args, dict)
            beside = one_round(url, args, lambda: {"structured_outputs": hostile(form)[1]})
            to_plain.append(beside / plain)
            to_alone.append(beside / alone)
        print(f"{hostile(form)[0]:20} {quartiles(to_plain)} of beside a plain request, "
              f"{quartiles(to_alone)} of alone", flush=True)


if __name__ == "__main__":
    main()
