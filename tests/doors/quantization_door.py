#!/usr/bin/env python3
"""--quantization, and the folders that `foretoken convert` writes: the same numbers both ways and on
any number of ranks, with and without drafts; methods that the files do not have are refused."""

import json
import pathlib
import shutil
import struct
import tempfile
import unittest

import door

FLAGS = ("--dtype", "float32", "--max-tokens", "40", "--ignore-eos", "--json", "--max-model-len", "256")
PROMPT = "Once upon a time, there was a little cat"


def ids(model, *flags):
    """The tokens that follow the prompt, and all that the program says."""
    done = door.run_program("generate", "--model", model, "--prompt", PROMPT, "--temperature", "0",
                            *FLAGS, *flags)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)["token_ids"], done.stderr


def calibrate(source, target, scale):
    """A copy of a folder of FP8 whose matrices have an input_scale, as static schemes write it."""
    shutil.copytree(source, target)
    weights = pathlib.Path(target) / "model.safetensors"
    data = weights.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    for name in [name for name in header if name.endswith(".weight_scale")]:
        header[name.replace(".weight_scale", ".input_scale")] = {
            "dtype": "F32", "shape": [1], "data_offsets": [len(body), len(body) + 4]}
        body += struct.pack("<f", scale)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    weights.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return str(target)


class Quantization(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.written = {}
        for kind in ("fp8", "nvfp4", "mxfp4"):
            cls.written[kind] = str(pathlib.Path(cls.folder.name) / kind)
            done = door.run_program("convert", door.BUNDLED, "--type", kind, "-o", cls.written[kind])
            if done.returncode != 0:
                raise AssertionError(done.stderr)
        cls.rounded, cls.said = ids(door.BUNDLED, "--quantization", "fp8")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_rounding_is_what_convert_writes(self):
        self.assertEqual(ids(self.written["fp8"], "-q", "compressed-tensors")[0], self.rounded)
        self.assertIn("of FP8;", self.said)

    def test_ranks_and_drafts_change_nothing(self):
        drafts = ("--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}')
        for more in (("-tp", "2", *drafts), ("-pp", "2")):
            self.assertEqual(ids(door.BUNDLED, "--quantization", "fp8", *more)[0], self.rounded, more)

    def test_a_draft_model_is_rounded_by_its_own_field(self):
        config = json.dumps({"method": "draft_model", "model": door.BUNDLED, "num_speculative_tokens": 3,
                             "quantization": "fp8"})
        self.assertEqual(ids(door.BUNDLED, "--speculative-config", config)[0], ids(door.BUNDLED)[0])
        wrong = config.replace("fp8", "awq")
        done = door.run_program("generate", "--model", door.BUNDLED, "--prompt", "a", "--speculative-config", wrong)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("speculative config: quantization awq: the weights of", done.stderr)

    def test_rounded_activations(self):
        flags = ("--activation-scheme", "dynamic")
        alone, said = ids(self.written["fp8"], *flags)
        self.assertIn("rows are rounded to E4M3", said)
        self.assertEqual(ids(door.BUNDLED, "--quantization", "fp8", *flags)[0], alone)
        drafts = ("--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}')
        self.assertEqual(ids(self.written["fp8"], *flags, *drafts)[0], alone)
        done = door.run_program("generate", "--model", door.BUNDLED, "--prompt", "a", *flags)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("add --quantization fp8", done.stderr)

    def test_activations_rounded_by_the_scales_of_the_files(self):
        flags = ("--activation-scheme", "static")
        coarse = calibrate(self.written["fp8"], pathlib.Path(self.folder.name) / "coarse", 0.05)
        alone, said = ids(coarse, *flags)
        self.assertIn("rows are rounded to E4M3", said)
        # What is cut off at 448 times the scale shows that the scale is the file's.
        narrow = calibrate(self.written["fp8"], pathlib.Path(self.folder.name) / "narrow", 1e-4)
        self.assertNotEqual(ids(narrow, *flags)[0], alone)
        self.assertEqual(ids(narrow)[0], ids(self.written["fp8"])[0])
        # One scale for a whole row is the same for every rank's part of it.
        drafts = ("--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}')
        for more in (drafts, ("-tp", "2", *drafts), ("-pp", "2")):
            self.assertEqual(ids(coarse, *flags, *more)[0], alone, more)
        done = door.run_program("generate", "--model", self.written["fp8"], "--prompt", "a", *flags)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has no input_scale of its own", done.stderr)

    def test_rounded_activations_of_experts(self):
        mixture = str(pathlib.Path(door.BUNDLED).parent / "foretoken-2m-deepseek")
        flags = ("--quantization", "fp8", "--activation-scheme", "dynamic")
        alone, said = ids(mixture, *flags)
        self.assertIn("rows are rounded to E4M3", said)
        drafts = ("--speculative-config", '{"method": "mtp", "num_speculative_tokens": 3}')
        self.assertEqual(ids(mixture, *flags, *drafts)[0], alone)
        dealt = ("-tp", "2", "--enable-expert-parallel")
        self.assertEqual(ids(mixture, *flags, *dealt, *drafts)[0], ids(mixture, *flags, *dealt)[0])

    def test_few_bits_run(self):
        for kind in ("nvfp4", "mxfp4"):
            found, _ = ids(self.written[kind])
            self.assertEqual(len(found), 40)

    def test_methods_that_the_files_do_not_have(self):
        for model, flags, wanted in (
                (door.BUNDLED, ("--quantization", "awq"), "are not quantised; remove it"),
                (self.written["nvfp4"], ("--quantization", "fp8"), "quantised by compressed-tensors"),
                (door.BUNDLED, ("--quantization", "fp8", "--load-format", "dummy"), "keeps no random weights in FP8 in rows of")):
            done = door.run_program("generate", "--model", model, "--prompt", "a", *flags)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(wanted, done.stderr)


if __name__ == "__main__":
    door.main()
