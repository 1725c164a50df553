#!/usr/bin/env python3
"""Command lines of public reports and pages, as people type and paste them."""

import tempfile
import unittest

import door


def run(*arguments, **more):
    return door.run_program(*arguments, **more)


def error_of(result):
    """The one error line of a command line that was refused."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("foretoken: error: ")]
    assert len(lines) == 1, result.stderr
    return lines[0][len("foretoken: error: "):]


class LinesOfReports(unittest.TestCase):
    """Command lines of public reports and pages: each starts, or is told what to change."""

    def test_what_is_told(self):
        for line, why in (
                # vllm 22072 and 8273: compose files and Python's subprocess
                (["serve", "/nowhere", "--dtype auto"], "write"),
                (["serve", "/nowhere", "--host 127.0.0.1", "--port 0"], "--host=127.0.0.1"),
                # vllm 37133 and 27389: images whose entry point has the command
                (["vllm", "serve", "/nowhere"], "leave 'vllm' out"),
                (["serve", "vllm", "serve", "/nowhere"], "leave 'vllm' out"),
                (["serve", "serve", "/nowhere"], "'serve' stands twice"),
                (["--model", "/nowhere", "--port", "0"], "name the command before"),
                (["llama-server", "-m", "x.gguf"], "use foretoken serve"),
                (["run", "llama3.2"], "use foretoken chat"),
                (["pull", "llama3.2"], "use foretoken download"),
                (["collect-env"], "use foretoken inspect"),
                # Switches with a value, as vLLM took them once and charts write them
                (["serve", "/nowhere", "--enable-prefix-caching", "True"],
                 "write --enable-prefix-caching alone"),
                (["serve", "/nowhere", "--enable-chunked-prefill", "False"],
                 "write --no-enable-chunked-prefill"),
                # Pages that print "--" as a dash
                (["serve", "/nowhere", "\u2013max-model-len", "1024"], "write --max-model-len"),
                (["serve", "/nowhere", "\u2014port", "0"], "write --port"),
                (["serve", "/nowhere", "--speculative-config", "{method:ngram}"], "single quotes"),
                (["serve", "/nowhere", "--allowed-origins", "*"], "'[\"a\"]'"),
                (["serve", "--model-id", "/nowhere", "--num-shard", "2", "--max-input-length", "9",
                  "--max-concurrent-requests", "4", "--quantize", "fp8", "--hostname", "::"],
                 "--tensor-parallel-size 2"),
                (["serve", "/nowhere", "--draft-model", "x/y"], "--spec-model x/y"),
                (["serve", "--fim-qwen-1.5b-default"], "name the model itself"),
                (["serve", "--gpt-oss-20b-default"], "name the model itself"),
                (["serve", "https://huggingface.co/org/name/blob/main/x.json"], "org/name alone")):
            result = run(*line)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("two, or as --dtype=auto" if why == "write" else why, error_of(result), line)

    def test_every_flag_of_a_line_is_told(self):
        """Lines of public pages and compose files, with what a fork alone knows among the flags."""
        for line, told, not_told in (
                # A draft model whose method another flag names, whichever comes first
                (["serve", "-hf", "a/b-GGUF:Q4_K_M", "-hfd", "c/d-GGUF:Q8_0", "--spec-type",
                  "draft-dflash", "--spec-draft-n-max", "7"],
                 ("use --spec-model c/d-GGUF:Q8_0", "use --spec-method dflash", "--spec-tokens 7"),
                 "draft_model"),
                (["serve", "-m", "x.gguf", "-md", "d.gguf"],
                 ("--spec-method draft_model --spec-model d.gguf",), "unknown flag -md"),
                # What nobody knows ends no list
                (["serve", "-m", "x.gguf", "--expert-backend", "--moe-ram-pool", "8192", "--fit",
                  "off", "--no-webui"],
                 ("unknown flag --expert-backend", "unknown flag --moe-ram-pool", "--fit off: ",
                  "--no-webui: "), "8192"),
                (["serve", "--model-path", "/nowhere", "--moe-dense-tp-size", "1",
                  "--ep-num-redundant-experts", "32", "--sleep-on-idle", "--mem-fraction", "0.7",
                  "--torchao-config", "int4wo-128", "--admin-api-key", "k"],
                 ("--moe-dense-tp-size 1: remove it", "--ep-num-redundant-experts 32: remove it",
                  "--sleep-on-idle: remove it", "--gpu-memory-utilization 0.7", "--quantization",
                  "--api-key k"), "unknown flag --moe"),
                (["serve", "--model-id", "/nowhere", "--max-total-tokens", "4096",
                  "--cuda-graphs", "1,2", "--payload-limit", "9", "--graceful-termination-timeout",
                  "5"],
                 ("TGI's", "--max-model-len", "--max-body-bytes 9", "--shutdown-timeout 5"), "#"),
                (["serve", "/nowhere", "--backend", "pytorch", "--extra_llm_api_options", "c.yaml"],
                 ("--backend pytorch: remove it", "--config"), "#")):
            error = error_of(run(*line))
            for word in told:
                self.assertIn(word, error, line)
            self.assertNotIn(not_told, error)

    def test_a_prompt_may_be_true(self):
        """Where texts stand free, a word behind a switch is one."""
        result = run("generate", "--enforce-eager", "true", "--max-tokens", "1")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_what_starts(self):
        for flags in (["--tool-call-parser", "deepseekv31", "--reasoning-parser", "deepseek-r1"],
                      ["--tool-call-parser", "Hermes", "--reasoning-parser", "gpt-oss"],
                      ["--tool-call-parser", "qwen25", "--reasoning-parser", "minimax_m3"],
                      ["--cc", '{"mode":"3"}'], ["--model-tag", "/nowhere"]):
            result = run("serve", *([] if flags[0] == "--model-tag" else ["/nowhere"]), "--port", "0",
                         *flags)
            self.assertIn("model '/nowhere' is neither", error_of(result), flags)
        for model in ("https://huggingface.co/org/name", "hf.co/org/name:Q4_K_M"):
            error = error_of(run("serve", model, environment={
                "HF_HUB_OFFLINE": "1", "HF_HOME": tempfile.gettempdir()}))
            self.assertIn("of org/name is not in the cache", error)

    def test_a_reader_is_told_once(self):
        told = run("generate", "Once", "--max-tokens", "1", "--load-format", "runai_streamer").stderr
        self.assertEqual(told.count("--load-format runai_streamer has no effect"), 1)


if __name__ == "__main__":
    door.main()
