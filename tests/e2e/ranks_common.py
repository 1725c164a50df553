"""What the suites of ranks have in common: layouts, their devices, and a server of the program."""

import concurrent.futures
import ctypes
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

# Seconds: from a fault to the end of rank 0, which takes six where the machine is not busy, and for
# whatever else must end.
LIMIT, PATIENCE = 120, 600
SKIPPED = 77
PROMPTS = ["Once upon a time, there was a little", "The dog and the cat", "Lily went to the park"]
MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
METHODS = ["ngram", "draft_model", "eagle3", "mtp"]
# Of the bundled model with latents, of which all tensor parallel ranks have the same.
LATENTS, LATENT_METHODS = str(MODELS / "foretoken-2m-deepseek"), ["ngram", "mtp"]
COMMON = ["--log-level", "error", "--max-model-len", "256", "--max-num-seqs", "8"]
ON_GPUS = os.environ.get("FORETOKEN_TEST_DEVICE", "cpu") == "cuda"
if ON_GPUS:
    COMMON += ["--device", "cuda", "--max-num-batched-tokens", "64", "--num-gpu-blocks-override", "256"]
else:
    COMMON += ["--cpu-threads", "1"]
ALLOWED = 2 if ON_GPUS else 0  # texts that may differ from one rank's
FAULT_LIMIT = LIMIT  # seconds from a fault to the end of rank 0, however busy the machine is
PROCESSES = ["--distributed-executor-backend", "mp"]
LANES = ["--enable-dbo", "--dbo-decode-token-threshold", "2", "--dbo-prefill-token-threshold", "2"]


def expect(holds, message):
    if not holds:
        raise AssertionError(message)


def gpus_here():
    """As CUDA_VISIBLE_DEVICES names them."""
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    if listed.returncode != 0:
        return []
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",") if named else [str(i) for i in range(listed.stdout.count("GPU "))]


def num_gpus():
    return len(gpus_here())


def has_nccl():
    try:
        ctypes.CDLL(os.environ.get("VLLM_NCCL_SO_PATH") or "libnccl.so.2")
    except OSError:
        return False
    return True


def num_ranks(flags):
    count = 1
    for name in ("-tp", "-pp", "-dp"):
        if name in flags:
            count *= int(flags[flags.index(name) + 1])
    return count


def drafters(tp):
    """All four, for that many tensor parallel ranks."""
    common = {"num_speculative_tokens": 3, "length_policy": "fixed"}
    entries = [{"method": "ngram", "prompt_lookup_max": 4, "prompt_lookup_min": 1, **common}]
    for method in METHODS[1:]:
        folder = "foretoken-7m-" + method.replace("draft_model", "draft")
        entries.append({"method": method, "model": str(MODELS / folder), **common})
    # The draft model has four heads.
    entries[1]["draft_tensor_parallel_size"] = tp if tp <= 4 else 1
    return ["-sc", json.dumps(entries)]


def latent_flags():
    """The model with latents and its drafters."""
    common = {"num_speculative_tokens": 3, "length_policy": "fixed"}
    entries = [{"method": "ngram", "prompt_lookup_max": 4, "prompt_lookup_min": 1, **common}]
    return ["--model", LATENTS, "-sc", json.dumps([*entries, {"method": "mtp", **common}])]


def tp_of(flags):
    return int(flags[flags.index("-tp") + 1]) if "-tp" in flags else 1


def two_hosts_flags(layout):
    """The flags of two hosts, both of which are this one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = [*layout, "--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", port]
    return [[*common, "--node-rank", host] for host in ("0", "1")]


def gpus_of_host(layout, host):
    """The environment of one of two hosts that are this one: on GPUs each has half of them."""
    if not ON_GPUS:
        return None
    each = num_ranks(layout) // 2
    own = gpus_here()[host * each : (host + 1) * each]
    return dict(os.environ, CUDA_VISIBLE_DEVICES=",".join(own))


def children_of(process):
    """Of any of its threads."""
    found = []
    for task in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{task}/children", encoding="utf-8") as file:
            found += [int(pid) for pid in file.read().split()]
    return found


class Server:
    def __init__(self, program, flags, model=None, methods=METHODS, environment=None):
        self.log = tempfile.TemporaryFile("w+")
        self.methods = methods
        command = [program, "serve", *COMMON, *(model or drafters(tp_of(flags))), *flags]
        command += ["--host", "127.0.0.1", "--port", "0", "--no-access-log", "--no-keep-acceptance-rates"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment)
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if not found:
            self.process.wait(PATIENCE)
            raise AssertionError(f"the server did not start: {line}\n{self.errors()}")
        self.port = int(found.group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def errors(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors="replace")

    def children(self):
        return children_of(self.process.pid)

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def get(self, path):
        connection = self.connection()
        connection.request("GET", path)
        return connection.getresponse().status

    def metrics(self):
        connection = self.connection()
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()

    def complete(self, max_tokens, leave_after=None):
        """One request; with leave_after its connection is closed after so many bytes of the stream."""
        try:
            connection = self.connection()
            body = {"prompt": random.choice(PROMPTS), "max_tokens": max_tokens, "ignore_eos": True}
            body["speculative"] = {"method": random.choice(self.methods)}
            body["stream"] = leave_after is not None
            connection.request(
                "POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            answer.read(leave_after) if leave_after is not None else answer.read()
            connection.close()
            return answer.status
        except (OSError, http.client.HTTPException):
            return None

    def random_load(self, rounds):
        random.seed(7)
        wishes = [(random.randint(1, 40), random.choice([None, None, 1, 300])) for _ in range(rounds)]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            while wishes:
                burst = [wishes.pop() for _ in range(min(len(wishes), random.randint(1, 30)))]
                answers = [pool.submit(self.complete, *wish) for wish in burst]
                codes = {answer.result() for answer in answers}
                expect(codes == {200}, f"answers {codes}\n{self.errors()}")
                time.sleep(random.choice([0, 0, 0.3]))  # idle now and then

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)
