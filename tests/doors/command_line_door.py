#!/usr/bin/env python3
"""Command lines as people bring them: from other engines, from habit, and from our own pages."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

import door

CODE = re.compile(r"^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
# The program at the front of an example, perhaps behind a launcher.
PROGRAM = re.compile(r"(?:^|[ (])(?:\S*/)?foretoken (?=[a-z]|--help)")
# Lines that take no time and no network, run as they stand.
CHEAP = ("convert", "generate", "embed", "run-batch", "inspect", "--help")


def run(*arguments, **more):
    return door.run_program(*arguments, **more)


def error_of(result):
    """The one error line of a command line that was refused."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("foretoken: error: ")]
    assert len(lines) == 1, result.stderr
    return lines[0][len("foretoken: error: "):]


def commands_of(page):
    """The lines of the page's code blocks that call the program, continued ones joined."""
    for block in CODE.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            match = PROGRAM.search(line)
            if match and not line.lstrip().startswith("#"):
                yield line[match.end():]


def arguments_of(line, config_file=None):
    """The words of a line of a page, up to what the shell does with the program.

    A file of --config, which is read before anything else, is replaced by `config_file` where given.
    """
    words = []
    for word in shlex.split(line, comments=True):
        if word in ("&", "|", ">", "2>", "&&") or word.startswith(">"):
            break
        if word != "...":
            words.append(config_file if config_file and words[-1:] == ["--config"] else word)
    return words


class FlagsOfOtherEngines(unittest.TestCase):
    def refused(self, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        return error_of(result)

    def test_llama_cpp(self):
        for flags, wanted in (
                (("--temp", "0.7"), "--temp 0.7: use --temperature 0.7"),
                (("-c", "4096"), "-c 4096: use --max-model-len 4096"),
                (("--ctx-size", "4096"), "--ctx-size 4096: use --max-model-len 4096"),
                (("-n", "128"), "-n 128: use --max-tokens 128"),
                (("--n-predict=128",), "--n-predict 128: use --max-tokens 128"),
                (("-t", "8"), "-t 8: use --cpu-threads 8"),
                (("--spec-type", "draft-mtp"), "--spec-type draft-mtp: use --spec-method mtp"),
                (("--spec-type", "ngram-simple"), "use --spec-method ngram"),
                (("--no-mmproj",), "only texts are served"),
                (("-ngl", "99"), "-ngl 99: use --device cuda"),
                (("-ngl", "0"), "-ngl 0: use --device cpu"),
                (("-m", "x.gguf"), "-m x.gguf: use --model x.gguf"),
                (("-hf", "org/repo"), "-hf org/repo: use --model org/repo"),
                (("-hf", "org/repo:Q4_K_M"), "use --model org/repo:Q4_K_M"),
                (("-p", "two words"), "-p 'two words': use --prompt 'two words'"),
                (("-md", "d.gguf"), "use --spec-method draft_model --spec-model d.gguf"),
                (("--draft-max", "4"), "use --spec-tokens 4"),
                (("-ctk", "q8_0"), "use --kv-cache-dtype int8"),
                (("--repeat-penalty", "1.1"), "use --repetition-penalty 1.1"),
                (("--mlock",), "--mlock: remove it"),
                (("-fa", "on"), "-fa on: remove it"),
                (("--load-mode", "mmap"), "--load-mode mmap: remove it"),
                (("--spec-draft-sampling", "greedy"), "drafts never change the text"),
                (("-s", "-1"), "-s -1: remove it")):
            with self.subTest(flags=flags):
                self.assertIn(wanted, self.refused("generate", "Once", *flags))

    def test_a_whole_line_of_llama_server(self):
        error = self.refused("serve", "-m", "x.gguf", "-c", "4096", "-ngl", "99", "-np", "4",
                             "--jinja", "-cb", "--alias", "me", "--temp", "0.7", "-n", "64",
                             "--chat-template-file", "t.jinja", "-b", "512", "--slots")
        for wanted in ("--model x.gguf", "--max-model-len 4096", "--max-num-seqs 4", "--jinja: remove",
                       "--served-model-name me", "--chat-template t.jinja",
                       "'{\"temperature\": 0.7}'", "'{\"max_new_tokens\": 64}'",
                       "--max-num-batched-tokens 512", "--slots: remove", "foretoken serve --help"):
            self.assertIn(wanted, error)

    def test_sglang_and_tensorrt_llm(self):
        error = self.refused("serve", "--model-path", "org/m", "--tp-size", "2",
                             "--mem-fraction-static", "0.8", "--context-length", "8192",
                             "--speculative-algorithm", "EAGLE3", "--speculative-num-steps", "3",
                             "--max-running-requests", "16", "--chunked-prefill-size", "4096",
                             "--dist-init-addr", "10.0.0.1:5000")
        for wanted in ("--model org/m", "--tensor-parallel-size 2", "--gpu-memory-utilization 0.8",
                       "--max-model-len 8192", "--spec-method eagle3", "--spec-tokens 3",
                       "--max-num-seqs 16", "--max-num-batched-tokens 4096",
                       "--master-addr 10.0.0.1 --master-port 5000"):
            self.assertIn(wanted, error)
        error = self.refused("serve", "--enable-priority-scheduling", "--max-loras-per-batch", "2",
                             "--decode-attention-backend", "fa3", "--enable-streaming-session",
                             "--sse-ping-interval", "30", "--reasoning-effort", "low")
        for wanted in ("--scheduling-policy priority", "--max-loras 2", "--attention-backend NAME",
                       "--enable-streaming-session: remove it", "--sse-keep-alive-interval 30",
                       "'{\"reasoning_effort\": \"low\"}'"):
            self.assertIn(wanted, error)
        error = self.refused("serve", "--tp_size", "2", "--max_batch_size", "8", "--max_seq_len",
                             "2048", "--kv_cache_free_gpu_memory_fraction=0.9")
        for wanted in ("--tensor-parallel-size 2", "--max-num-seqs 8", "--max-model-len 2048",
                       "--gpu-memory-utilization 0.9"):
            self.assertIn(wanted, error)

    def test_hints_of_the_whole_table_name_flags_that_exist(self):
        lines = run("foreign-flags").stdout.splitlines()
        self.assertGreater(len(lines), 1000)
        helps = {}
        num_hints = 0
        for line in lines:
            command, hint = line.split("\t")
            self.assertRegex(hint, r"^-\S+( 7)?: \S", line)
            use = re.search(r": use (.*)$", hint)
            if use is None or "hf download" in use.group(1):
                continue
            if command not in helps:
                helps[command] = run(*command.split(), "--help").stdout
            # What notes say of other commands stands behind a semicolon.
            for flag in re.findall(r"(?<!\S)--[a-z-]+", use.group(1).split(";")[0]):
                if " of foretoken " in use.group(1):
                    continue
                with self.subTest(line=line):
                    self.assertRegex(helps[command], rf"(?<![\w-]){flag}(?![\w-])")
                    num_hints += 1
        self.assertGreater(num_hints, 200)

    def test_vllms_short_names_stay(self):
        ranks = run("generate", "Once", "-n", "2", "-r", "5")
        self.assertIn("node", ranks.stderr)
        self.assertNotIn("unknown flag", ranks.stderr)
        result = run("generate", "Once", "-hf", "{\"vocab_size\": 1", "--max-tokens", "1")
        self.assertIn("--hf-overrides", result.stderr)


class LinesOfVllm(unittest.TestCase):
    """As its recipes and charts have them: only the model is missing here."""

    def test_they_reach_the_model(self):
        for line in (
                "--speculative-config {\"method\":\"qwen3_next_mtp\",\"num_speculative_tokens\":2} "
                "--load-format fastsafetensors --performance-mode throughput -O3 --async-scheduling "
                "--language-model-only --trust-remote-code --enable-chunked-prefill",
                "--speculative_config {\"model\":\"x/y\",\"num_speculative_tokens\":3,"
                "\"method\":\"eagle\",\"max_model_len\":\"65536\"} --max_num_batched_tokens 16384 "
                "--gpu_memory_utilization 0.8 --load-format instanttensor",
                "--disable-access-log-for-endpoints /health,/metrics,/ping --enable-request-id-headers "
                "--enable-prompt-tokens-details --kv-cache-metrics --kv-cache-metrics-sample 0.1",
                "--default-chat-template-kwargs {\"enable_thinking\":false} --numa-bind "
                "--reasoning-config {\"reasoning_start_str\":\"<think>\"} --log-error-stack",
                "--mamba-cache-mode align --gdn-prefill-backend triton --mm-processor-cache-type shm "
                "--distributed-timeout-seconds 600 --watermark 0.01 --ir-op-priority {}",
                "--device-memory-utilization 0.9 --mamba-config {\"backend\":\"triton\"} --dcp-q-replicate "
                "--jit-monitor-mode error --mm-hasher-algorithm sha256 --max-num-scheduled-tokens 8192 "
                "--tool-strict-level auto --no-enable-fault-tolerance --prefix-match-unit 32",
                # Names that vLLM has dropped since, in charts that still have them.
                "--cuda-graph-sizes 1 2 4 --guided-decoding-disable-any-whitespace "
                "--guided-decoding-disable-fallback --lora-extra-vocab-size 256 "
                "--tokenizer-pool-type ray --num-redundant-experts 0 --eplb-window-size 1000 "
                "--spec-decoding-acceptance-method rejection_sampler "
                "--speculative-draft-tensor-parallel-size 1 --quantization-param-path x.json"):
            result = run("serve", "/nowhere", "--port", "0", *line.split())
            self.assertIn("model '/nowhere' is neither", error_of(result), result.stderr)

    def test_files_of_flags_may_nest(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("model: /nowhere\nspeculative-config:\n  method: ngram\n"
                       "  num_speculative_tokens: 4\ncompilation-config:\n  cudagraph_mode: FULL\n"
                       "  cudagraph_capture_sizes: [1, 2, 4]\nseed: null\nport: 0\n")
            file.flush()
            self.assertIn("model '/nowhere' is neither",
                          error_of(run("serve", "--config", file.name)))
            file.write("speculative-config:\n  methud: ngram\n")
            file.flush()
            self.assertIn("did you mean 'method'", error_of(run("serve", "--config", file.name)))

    def test_files_of_flags_in_other_forms_of_yaml(self):
        def sentence(text):
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(text)
                file.flush()
                return error_of(run("serve", "--config", file.name))

        for text in ('{"model": "/nowhere", "port": 0, "enforce-eager": false, "api_key": ["a", "b"],'
                     ' "speculative_config": {"method": "ngram", "num_speculative_tokens": 2}}',
                     "%YAML 1.2\n---\nmodel: /nowhere\nport: 0\n...\n",
                     "\ufeffmodel: /nowhere\nport: 0\n"):
            self.assertIn("model '/nowhere' is neither", sentence(text))
        for text, why in (("model: &m /nowhere\n", "line 1: anchors"), ('{"model": ', "no valid object"),
                          ("model: /nowhere\nserved-model-name:\n  - *m\n", "line 3: anchors"),
                          ("served-model-name: !!str 8\n", "in quotes")):
            self.assertIn(why, sentence(text))

    def test_values_in_braces_and_over_lines(self):
        def sentence(text):
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(text)
                file.flush()
                return error_of(run("serve", "--config", file.name))

        for form in ("{method: ngram, num_speculative_tokens: 3}",
                     "{\n  method: ngram,  # look-ups\n  num_speculative_tokens: 3\n}",
                     "{'method': 'ngram', \"num_speculative_tokens\": 3}"):
            self.assertIn("model '/nowhere' is neither", sentence(
                f"model_tag: /nowhere\nport: 0\nspeculative-config: {form}\nserved-model-name: [\n"
                "  a,\n  b]\noverride-generation-config: {temperature: 0.5}\n"))
            self.assertIn("'method' (--spec-method) is missing", sentence(
                f"model: /nowhere\nspeculative-config: {form}\n".replace("method", "methud")))

    def test_what_cannot_be_had_says_why(self):
        for flags, why in ((("--offload-backend", "uva"), "weights stay on the device"),
                           (("--grpc",), "there is no gRPC"), (("--enable-elastic-ep",), "experts"),
                           (("--weight-transfer-config", '{"backend": "nccl"}'),
                            "weights are those of the model"),
                           (("--kv-events-config", '{"enable_kv_cache_events": true}'),
                            "KV blocks are not moved between servers"),
                           (("--device-ids", "2,3"), "set CUDA_VISIBLE_DEVICES"),
                           (("--tool-strict-level", "parameter"), '"strict": true'),
                           (("--enable-prompt-adapter",), "use --enable-lora"),
                           (("--enable-microbatching",), "use --enable-dbo"),
                           (("--load-format", "tensorizer"), "'tensorizer' is unknown")):
            self.assertIn(why, error_of(run("serve", "/nowhere", "--port", "0", *flags)))


class Sentences(unittest.TestCase):
    """What CLI11 says of values, said so that it helps."""

    def test_variables_of_llama_server_are_not_passed_over_in_silence(self):
        told = run("serve", "--model", "/nowhere", "--port", "0", environment={
            "LLAMA_API_KEY": "secret", "LLAMA_ARG_CTX_SIZE": "64", "LLAMA_ARG_JINJA": "1",
            "FORETOKEN_DEVICE": "cuda",
            # As Kubernetes makes them for a service that is called "vllm": nobody asked for these.
            "VLLM_PORT": "tcp://10.0.0.1:8000", "VLLM_PORT_8000_TCP_ADDR": "10.0.0.1",
            "VLLM_SERVICE_HOST": "10.0.0.1", "VLLM_API_SERVICE_PORT_HTTP": "8000"}).stderr
        for sentence in ("LLAMA_API_KEY has no effect; use --api-key", "LLAMA_ARG_JINJA has no effect",
                         "LLAMA_ARG_CTX_SIZE has no effect; use --max-model-len",
                         "FORETOKEN_DEVICE has no effect; it is read by the Python package alone"):
            self.assertIn(sentence, told)
        self.assertNotIn("secret", told)
        self.assertNotIn("VLLM_", told)

    def test_variables_of_scripts_that_are_not_set(self):
        """They were the number 0, or the bundled model in the place of the one that was meant"""
        for words, name in ((("serve", "--model", ""), "--model has an empty value"),
                            (("serve", "", "--port", "0"), "the model's name is empty"),
                            (("serve", "--no-such", "", "--port", "0"), "unknown flag --no-such"),
                            (("serve", "--gpu-memory-utilization", ""), "--gpu-memory-utilization has"),
                            (("generate", "Once", "--temperature="), "--temperature has an empty"),
                            (("bench", "latency", "--batch-size", ""), "--batch-size has an empty")):
            result = run(*words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(name, error_of(result))

    def test_a_tokenizer_may_be_the_models_own(self):
        # What asks for nothing is passed over, as charts write it; sizes have Kubernetes' suffixes.
        line = ("generate", "--model", door.BUNDLED, "--prompt", "Once", "--max-tokens", "1",
                "--kv-events-config", '{"enable_kv_cache_events": false, "publisher": "zmq"}',
                "--kv-transfer-config", "{}", "--kv-cache-memory-bytes", "64Mi")
        for flag in ("--tokenizer", "--hf-config-path"):
            self.assertEqual(door.run_program(*line, flag, door.BUNDLED).returncode, 0, flag)
            other = door.run_program(*line, flag, "org/other")
            self.assertEqual(other.returncode, 1)
            self.assertIn(f"{flag} org/other", other.stderr)

    def test_values(self):
        for flags, wanted in (
                (("--max-tokens", "3x"), "--max-tokens must be an integer, not '3x'"),
                (("--max-tokens=",), "--max-tokens"),
                (("--temperature", "hot"), "--temperature must be a number, not 'hot'"),
                (("--max-tokens", "010"), "--max-tokens 010 begins with 0; write 10"),
                (("--max-model-len", "long"), "--max-model-len: 'long' is not a number like 4096"),
                (("--kv-cache-memory-bytes", "64Mb"), "'64Mb' is not a number like 4096, 4k (4000)"),
                (("--max-model-len", "1000G"),
                 "--max-model-len: must be from 1 to 2147483647, or auto, not 1000G"),
                (("--scheduling-policy", "prioirty"),
                 "--scheduling-policy must be one of fcfs, priority, not 'prioirty'; did you mean"),
                (("--master-port", "0"), "--master-port must be from 1 to 65535, not 0")):
            with self.subTest(flags=flags):
                result = run("generate", "Once", *flags)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(wanted, error_of(result))
                self.assertNotIn("Could not convert", result.stderr)

    def test_fields_that_exclude_each_other_are_refused_before_the_model_loads(self):
        result = run("generate", "Once", "--n", "2", "--temperature", "0")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("n is 2, but with temperature 0", error_of(result))
        self.assertNotIn("loading", result.stderr)

    def test_a_model_without_room_for_an_answer(self):
        with open(f"{door.BUNDLED}/config.json", encoding="utf-8") as file:
            config = {**json.load(file), "max_position_embeddings": 1}
        with door.model_copy(config__json=config) as folder:
            for flags in ((), ("--max-model-len", "1"), ("--max-model-len", "auto")):
                result = run("generate", "Once", "--model", folder, *flags)
                self.assertIn("allows a context of 1 tokens; at least 2", error_of(result))

    def test_serve(self):
        for flags, wanted in (
                (("--shutdown-timeout", "-1"), "--shutdown-timeout must be from 0 to 86400, not -1"),
                (("--queue-timeout-seconds", "-1"),
                 "--queue-timeout-seconds must be at least 0, not -1"),
                (("--port", "http"), "--port: 'http' is not an integer")):
            with self.subTest(flags=flags):
                self.assertIn(wanted, error_of(run("serve", *flags)))

    def test_a_command_that_is_none(self):
        self.assertIn("there is no command 'serv'; did you mean 'serve'?",
                      error_of(run("serv", "--port", "80")))
        self.assertIn("name a command before", error_of(run("-m", "x.gguf", "-p", "Hello")))


class Generate(unittest.TestCase):
    FLAGS = ("--max-tokens", "6", "--temperature", "0", "--log-level", "error")

    def test_a_bare_prompt(self):
        bare = run("generate", "Once upon a time", *self.FLAGS)
        named = run("generate", "--prompt", "Once upon a time", *self.FLAGS)
        self.assertEqual(bare.returncode, 0, bare.stderr)
        first = bare.stdout.splitlines()[0]
        self.assertTrue(first.strip())
        self.assertEqual(first, named.stdout.splitlines()[0])

    def test_a_bare_model_beside_prompts(self):
        result = run("generate", door.BUNDLED, "--prompt", "Once", *self.FLAGS)
        self.assertEqual(result.returncode, 0, result.stderr)
        result = run("generate", "foretoken-7m-draft", "--prompt", "Once", *self.FLAGS)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_vllms_json_of_kernels_and_flags_of_servers(self):
        for flags in (("--attention-config", '{"backend": "TRITON_ATTN"}'), ('-ac={"backend":"FLEX_ATTENTION"}',),
                      ("--attention-config", '{"backend": "TRITON_ATTN", "flash_attn_version": null}'),
                      ("--reasoning-parser", "qwen3")):
            with self.subTest(flags=flags):
                result = run("generate", "Once", *self.FLAGS, *flags)
                self.assertEqual(result.returncode, 0, result.stderr)
        result = run("generate", "Once", "--attention-config", '{"backend": "FLASHMLA"}')
        self.assertIn("'flashmla' does not exist on cpu", error_of(result))

    def test_a_model_and_a_prompt(self):
        """As of "ollama run MODEL PROMPT"."""
        result = run("generate", "foretoken-7m", "Once upon a time", *self.FLAGS)
        named = run("generate", "--model", "foretoken-7m", "--prompt", "Once upon a time", *self.FLAGS)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines()[0], named.stdout.splitlines()[0])

    def test_what_is_missing_or_too_much(self):
        for arguments, wanted in (
                (("generate", "foretoken-7m", "Once", "--prompt", "y"), "'Once'; quote values that hold spaces"),
                (("generate", "Once", "upon", "a"), "'a'; quote values that hold spaces"),
                (("generate",), "a prompt (\"text\", --prompt"),
                (("generate", "foretoken-7m"), "a prompt beside the model 'foretoken-7m'"),
                (("generate", "org/name"), "a prompt beside the model 'org/name'"),
                (("generate", "Once", "upon"), "'upon'; quote values that hold spaces"),
                (("generate", "Once", "--model", "x", "--prompt", "y"), "stands beside --model")):
            with self.subTest(arguments=arguments):
                result = run(*arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(wanted, error_of(result))

    def test_embed(self):
        result = run("embed", "a little duck", "--log-level", "error")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(len(json.loads(result.stdout)["embedding"]), 10)


class Inspect(unittest.TestCase):
    def test_the_model_stands_first(self):
        for more in ((), ("--config-only",)):
            result = run("inspect", "--model", door.BUNDLED, "--num-gpu-blocks-override", "64", *more)
            self.assertEqual(result.returncode, 0, result.stderr)
            lines = result.stdout.splitlines()
            self.assertEqual(lines[:2], ["model:", f"  name: {door.BUNDLED}"])
            self.assertIn("drafters:", lines)


class Bench(unittest.TestCase):
    def test_throughput_of_ids_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            result = run("bench", "throughput", "--skip-tokenizer-init", "--dataset-name", "random",
                         "--num-prompts", "3", "--input-len", "8", "--output-len", "5",
                         "--output-json", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            totals = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
            self.assertEqual(totals["total_num_tokens"], 3 * (8 + 5))

    def test_prompts_of_text_say_what_they_need(self):
        result = run("bench", "throughput", "--skip-tokenizer-init", "--num-prompts", "3")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("--dataset-name random", error_of(result))


class Completion(unittest.TestCase):
    def offered(self, *words):
        script = run("completion", "bash").stdout
        line = " ".join(shlex.quote(word) for word in (os.path.abspath(door.program()), *words))
        script += (f"\nCOMP_WORDS=({line})\nCOMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n_foretoken\n"
                   "printf '%s\\n' \"${COMPREPLY[@]}\"\n")
        shell = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True,
                               cwd=door.ROOT)
        return shell.stdout.split()

    def test_values(self):
        for words, wanted in (
                (("generate", "--device", ""), ["cpu", "cuda"]),
                (("serve", "--kv-cache-dtype", "i"), ["int8"]),
                (("serve", "--spec-length-policy", "a"), ["adaptive"]),
                (("generate", "--cudagraph-mode", "FULL_D"), ["FULL_DECODE_ONLY"]),
                (("generate", "--prompt-file", "READ"), ["README.md"]),
                (("generate", "--download-dir", "exam"), ["examples"]),
                (("generate", "--max-num-seqs", ""), [])):
            with self.subTest(words=words):
                self.assertEqual(self.offered(*words), wanted)
        self.assertIn("hermes", self.offered("serve", "--tool-call-parser", ""))
        self.assertIn("ngram", self.offered("generate", "--spec-method", ""))

    def test_models(self):
        for words in (("serve", ""), ("generate", "--model", "foretoken"),
                      ("serve", "--spec-model", "foretoken")):
            with self.subTest(words=words):
                self.assertIn("foretoken-7m-draft", self.offered(*words))

    def test_models_of_the_hubs_cache(self):
        with tempfile.TemporaryDirectory() as cache:
            os.makedirs(os.path.join(cache, "models--org--na-me"))
            names = run("model-names", environment={"HF_HUB_CACHE": cache}).stdout.splitlines()
        self.assertIn("org/na-me", names)
        self.assertIn("foretoken-7m", names)


class OurPages(unittest.TestCase):
    """Each command line of README.md and docs/ is one that the program takes."""

    def test_every_line_parses(self):
        num_lines = 0
        with tempfile.NamedTemporaryFile(suffix=".yaml") as config:
            for page in [door.ROOT / "README.md", *sorted((door.ROOT / "docs").glob("*.md"))]:
                for line in commands_of(page):
                    words = arguments_of(line, config.name)
                    with self.subTest(page=page.name, line=line):
                        result = run(*words, "--help")
                        self.assertEqual(result.returncode, 0, result.stderr)
                        num_lines += 1
        self.assertGreater(num_lines, 20)

    def test_the_readmes_lines_run(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("models", "examples", "bench"):
                os.symlink(door.ROOT / name, os.path.join(folder, name))
            num_lines = 0
            for line in commands_of(door.ROOT / "README.md"):
                words = arguments_of(line)
                if words[0] not in CHEAP or any("/" in word and not word.startswith(
                        ("models/", "examples/")) for word in words if " " not in word):
                    continue
                with self.subTest(line=line):
                    result = subprocess.run([os.path.abspath(door.program()), *words], cwd=folder, check=False,
                                            capture_output=True, text=True, timeout=600)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    num_lines += 1
            self.assertGreaterEqual(num_lines, 6)
            results = pathlib.Path(folder, "results.jsonl").read_text(encoding="utf-8").splitlines()
            examples = pathlib.Path(folder, "examples/requests.jsonl").read_text(encoding="utf-8")
            self.assertEqual(len(results), len(examples.splitlines()))
            for text in results:
                self.assertEqual(json.loads(text)["response"]["status_code"], 200, text)


if __name__ == "__main__":
    door.main()
