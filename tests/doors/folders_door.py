#!/usr/bin/env python3
"""Folders and files in the shapes that people have, as the smallest change of the bundled model each: what loads
writes what the model writes, and what does not is told apart by what it is, with a remedy.

The names behind the cases are the projects' public reports: llama is ggml-org/llama.cpp, vllm is vllm-project/vllm,
hf is huggingface/transformers, ollama is ollama/ollama.
"""

import json
import os
import pathlib
import shutil
import tempfile
import unittest

import door

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
PAGE = b"<!DOCTYPE html><html>Invalid username or password.</html>"
LLAMA3 = {"rope_type": "llama3", "type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


class Folders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plain = cls.ids_of(door.BUNDLED)

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    @staticmethod
    def run_model(model):
        return door.run_program(
            "generate", "--model", str(model), "--prompt", "Once upon a", "--max-tokens", "6", "--temperature", "0",
            "--ignore-eos", "--json", "--device", "cpu", "--max-model-len", "64",
            environment={**os.environ, "HF_HUB_OFFLINE": "1"})

    @classmethod
    def ids_of(cls, model):
        done = cls.run_model(model)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)["token_ids"]

    def copy(self, name="model"):
        """A copy of the bundled model, whose weights it shares."""
        folder = pathlib.Path(self.scratch.name) / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file in pathlib.Path(door.BUNDLED).iterdir():
            if file.suffix == ".safetensors":
                (folder / file.name).symlink_to(file)
            elif file.is_file():
                shutil.copy(file, folder / file.name)
        return folder

    def changed(self, **fields):
        """A copy whose config.json has these fields; None of a field's value stays None."""
        folder = self.copy()
        config = json.loads((folder / "config.json").read_text())
        for name, value in fields.items():
            config.pop(name, None)
            if value is not Ellipsis:
                config[name] = value
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def loads(self, model, same=True):
        ids = self.ids_of(model)
        if same:
            self.assertEqual(ids, self.plain)

    def refused(self, model, *parts):
        done = self.run_model(model)
        self.assertNotEqual(done.returncode, 0, parts)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_fields_of_config_json(self):
        """hf 32167, 32916: rope_scaling of all ages; ollama 8598: head_dim; vllm 9426: null fields"""
        for same, fields in (
                (True, {"architectures": None}), (True, {"architectures": []}), (True, {"head_dim": None}),
                (True, {"torch_dtype": "torch.bfloat16"}), (True, {"eos_token_id": [1, 2]}),
                (True, {"eos_token_id": None}), (True, {"num_hidden_layers": 10.0}),
                (True, {"max_position_embeddings": ...}), (True, {"rope_scaling": {}}),
                (True, {"rope_scaling": {"rope_type": "default", "type": "default"}}),
                (True, {"rope_scaling": {"type": "mrope", "mrope_section": [4, 2, 2]}}),
                (False, {"rope_scaling": {"type": "linear", "factor": 2}}),
                (False, {"rope_scaling": {"type": "dynamic", "factor": 3.0}}), (False, {"rope_scaling": LLAMA3}),
                (False, {"torch_dtype": ..., "dtype": "float16"})):
            with self.subTest(fields=fields):
                self.loads(self.changed(**fields), same)

    def test_bodies_of_models_that_embed(self):
        """As e5-mistral is published: the class of the body, tensors without a prefix"""
        folder = self.changed(architectures=["LlamaModel"], tie_word_embeddings=False)
        data = (folder / "model.safetensors").read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:begin])
        text = json.dumps({name.removeprefix("model."): one for name, one in header.items()}).encode()
        text += b" " * (-len(text) % 8)
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data[begin:])
        self.loads(folder)
        self.assertIn("no output matrix", self.run_model(folder).stderr)
        self.refused(self.changed(is_causal=False), "reads a text from both ends and writes none")

    def test_fields_that_cannot_be(self):
        """hf 45049, llama-factory 8166: what is wrong is named with its field or its shapes"""
        for part, fields in (("'rope_scaling' is \"linear\"", {"rope_scaling": "linear"}),
                             ("'rope_theta' is \"10000\"", {"rope_theta": "10000"}),
                             ("'architectures' must be a list", {"architectures": "LlamaForCausalLM"}),
                             ("asks for [3064, 256]", {"vocab_size": 3064}),
                             ("'model.layers.10.input_layernorm.weight' is missing", {"num_hidden_layers": 11}),
                             ("has no use for tensor", {"num_hidden_layers": 9})):
            with self.subTest(fields=fields):
                self.refused(self.changed(**fields), part)

    def test_quantisation_that_is_no_more(self):
        """vllm 11010, llm-compressor 959: weights were widened and the field stayed"""
        for method in ({}, None, {"quant_method": "bitsandbytes", "load_in_4bit": True},
                       {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True},
                       {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"},
                       {"quant_method": "fp8", "weight_block_size": [128, 128]}):
            with self.subTest(method=method):
                self.loads(self.changed(quantization_config=method))

    def test_files_beside_the_model(self):
        """llama 3633: added tokens that are there already; hf: lists of extra tokens; marks in front of JSON"""
        for name, content in (("added_tokens.json", b'{"<unk>": 0, "<s>": 1}'),
                              ("added_tokens.json", b'{"<pad>": 99999}'),
                              ("tokenizer_config.json", b'{"extra_special_tokens": ["<|a|>", "<|b|>"]}'),
                              ("generation_config.json", b'{"temperature": null, "top_k": null, "top_p": 1}')):
            with self.subTest(name=name, content=content):
                folder = self.copy()
                (folder / name).write_bytes(content)
                self.loads(folder)
        for name in ("config.json", "tokenizer.json"):
            with self.subTest(marked=name):
                folder = self.copy()
                (folder / name).write_bytes(b"\xef\xbb\xbf" + (folder / name).read_bytes())
                self.loads(folder)

    def test_what_was_fetched_in_place_of_a_file(self):
        """hf, llama and ollama: clones without Git LFS, pages of those who are not logged in"""
        for name in ("config.json", "tokenizer.json", "model.safetensors", "m.gguf"):
            for content, part in ((LFS, "it is a pointer of Git LFS"), (PAGE, "it is a web page")):
                with self.subTest(name=name, part=part):
                    folder = self.copy()
                    (folder / name).unlink(missing_ok=True)
                    (folder / name).write_bytes(content)
                    self.refused(folder / name if name == "m.gguf" else folder, name, part)

    def test_unfinished_downloads(self):
        for name, part in (("model.safetensors.incomplete", "was not finished"),
                           ("model.safetensors.crdownload", "was not finished"),
                           ("model.safetensors?download=true", "rename it to end in .safetensors")):
            with self.subTest(name=name):
                folder = self.copy()
                (folder / "model.safetensors").rename(folder / name)
                self.refused(folder, name, part)
        folder = self.copy()
        data = (folder / "tokenizer.json").read_bytes()
        (folder / "tokenizer.json").write_bytes(data[:len(data) // 2])
        self.refused(folder, "tokenizer.json is not a usable tokenizer", "download")

    def test_names_of_people(self):
        """ollama 6273: a file under its own name; copies of browsers, folders in folders, names like files"""
        folder = self.copy()
        (folder / "model.safetensors").rename(folder / "llama.safetensors")
        self.loads(folder / "llama.safetensors")
        self.loads(str(folder) + "//")
        folder = self.copy()
        (folder / "model.safetensors").rename(folder / "model (1).safetensors")
        self.loads(folder)
        self.loads(self.copy("model.gguf"))
        self.refused(self.scratch.name, "give one of its models", "model.gguf")

    def test_addresses_and_paths(self):
        for model, part in (("https://huggingface.co/org/model/blob/main/m-Q4_K_M.gguf", "give org/name"),
                            ("C:\\models\\llama", "is neither a folder that exists nor a Hub id"),
                            ("hf.co/org/model:Q4_K_M", "org/model"), ("/no/such/file.gguf", "there is no file")):
            with self.subTest(model=model):
                self.refused(model, part)


if __name__ == "__main__":
    door.main()
