#!/usr/bin/env python3
"""The support matrix, run by the program: cells of their own processes, reports, and going on."""

import collections
import json
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import door

CELLS = [
    {"drafter": "eagle", "cudagraph_mode": "FULL"},
    {"drafter": "ngram", "tensor_parallel_size": 2},
    {"architecture": "DeepseekV3ForCausalLM", "drafter": "mtp", "data_parallel_size": 2,
     "enable_expert_parallel": True, "enable_dbo": True},
    {"kv_cache_dtype": "fp8", "drafter": "draft_model"},
    {"attention_backend": "nobody"},
    {"tensor_parallel_size": 3},
]

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/support-matrix.md"

# Every reason for which cells of the product are not supported: a new one is named here.
KINDS = [r"takes (latent attention|attention without latents).*, which this model does not have",
         r"--enable-expert-parallel: the model is no mixture of experts",
         r"--enable-dbo: two lanes are within one graph",
         r"method gemma4_assistant attends to the target's keys and values, and the target keeps "
         r"latents instead"]
CPU_KINDS = KINDS + [r"'(flash|flash_mla|flashinfer|flashinfer_mla|flashmla|cutlass_mla)' does not "
                     r"exist on cpu"]
CUDA_KINDS = KINDS + [r"--kv-cache-dtype (int8|fp8) is not read by --attention-backend "
                      r"(flashinfer|flashinfer_mla|flashmla|cutlass_mla)"]


class Matrix(unittest.TestCase):
    """Cases share the checkpoints, but for those that look at how they are written."""

    @classmethod
    def setUpClass(cls):
        cls.models = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.models.cleanup()

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name)
        self.addCleanup(self.scratch.cleanup)

    def own_models(self):
        """Flags of a case in which checkpoints must be written."""
        return "--work-folder", self.folder / "models"

    def run_matrix(self, *flags, num_prompts=6, program=None):
        return subprocess.run(
            [program or sys.argv[1], "matrix", "--work-folder", self.models.name, "--output",
             self.folder / "matrix", "--num-prompts", str(num_prompts), *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, check=False)

    def report(self):
        return json.loads((self.folder / "matrix.json").read_text())

    def run_file(self, cells, *flags, **more):
        rows = self.folder / "cells.json"
        rows.write_text(json.dumps(cells))
        return self.run_matrix("--rows", rows, *flags, **more)

    def test_cells_are_run_and_reported(self):
        done = self.run_file(CELLS)
        self.assertEqual(done.returncode, 0, done.stderr)
        cells = self.report()["cells"]
        self.assertEqual([cell["status"] for cell in cells],
                         ["green reduced"] * 4 + ["unsupported"] * 2, done.stderr)
        for cell in cells[:4]:
            self.assertEqual(cell["texts_unlike_without_drafts"], 0)
            self.assertTrue(0.3 <= cell["acceptance"] <= 0.95, cell)
            self.assertIn("matrix --run-cell", cell["command"])
            self.assertEqual(cell["score_gap_without_drafts"], 0)
            self.assertGreater(cell["resident_bytes"], 1 << 20)
        self.assertIn("attention", cells[0]["ops"])
        self.assertEqual(cells[1]["texts_unlike_one_rank"], 0)
        self.assertIn("'nobody'", cells[4]["reason"])
        # compat knows no heads: the start refuses them.
        self.assertIn("--tensor-parallel-size 3", cells[5]["reason"])
        page = (self.folder / "matrix.html").read_text()
        self.assertNotIn("http", page.replace("http-equiv", ""))
        self.assertIn("| eagle | one rank | auto | none | FULL |", done.stdout)
        # The command of a cell runs that cell again.
        again = self.run_matrix("--rows", self.folder / "cells.json")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual([cell["seconds"] for cell in self.report()["cells"][:4]],
                         [cell["seconds"] for cell in cells[:4]], "results were not kept")
        # What was refused may be there by now.
        self.assertNotEqual(self.report()["cells"][5]["seconds"], cells[5]["seconds"])

    def test_a_size_is_of_the_models_that_have_it(self):
        done = self.run_file([{"drafter": "eagle"}], "--size", "r1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.report()["cells"][0]["status"], "green reduced")
        self.assertIn("checkpoints: r1", done.stdout)
        self.assertIn("--size", self.run_matrix("--size", "9b").stderr)

    def test_block_drafters_have_checkpoints(self):
        done = self.run_file([{"drafter": name} for name in ("dflash", "dspark", "pard", "p_eagle")])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_backend_with_a_bound_wrong_by_one_is_red_for_that(self):
        # Row 8 names flex; the others differ from it in their drafters.
        rows = [{}, {"drafter": "eagle"},
                {"row": 8, "drafter": "eagle", "tensor_parallel_size": 2}]
        done = self.run_file([{"attention_backend": f"flex(kv {bound} q; )", **row}
                              for bound in ("<=", "<") for row in rows])
        self.assertEqual(done.returncode, 1)
        cells = self.report()["cells"]
        self.assertEqual([cell["status"] for cell in cells],
                         ["green reduced"] * 3 + ["red"] * 3, done.stderr)
        for cell in cells[3:]:
            # Its tokens are right: a dialled checkpoint's hang on its weights alone.
            self.assertEqual(cell["texts_unlike_without_drafts"], 0)
            self.assertIn("from those of the CPU's own attention", cell["reason"])

    def test_a_row_whose_attention_the_start_refuses_has_another(self):
        # As FLASHMLA where the plug-in was built without its source.
        row = {"architecture": "DeepseekV3ForCausalLM", "attention_backend": "flex(kv <= q; )"}
        done = self.run_file([{"row": 5, **row}, row])
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = self.report()["cells"]
        self.assertEqual((first["status"], first["cell"]["attention_backend"],
                          first["cell"]["stands_in_for"]),
                         ("green reduced", "auto", row["attention_backend"]))
        self.assertIn("attention portable_mla (--attention-backend flex takes attention without "
                      "latents", first["evidence"])
        self.assertEqual(second["status"], "unsupported")
        self.run_file([{"row": 5, **row}])
        self.assertEqual(self.report()["cells"], [first], "it ran again")

    def test_rows_are_yaml(self):
        rows = self.folder / "rows.yaml"
        rows.write_text("# two rows\n- row: 3\n  tensor_parallel_size: 8\n  drafter: eagle\n"
                        "  attention_backend: FLASHMLA\n- cudagraph_mode: [FULL, NONE]\n"
                        "  drafter: none\n")
        done = self.run_matrix("--rows", rows, "--print-cells", "--max-ranks", "2")
        cells = json.loads(done.stdout)
        self.assertEqual([cell["cudagraph_mode"] for cell in cells],
                         ["FULL_AND_PIECEWISE", "FULL", "NONE"])
        self.assertEqual((cells[0]["tensor_parallel_size"], cells[0]["stands_in_for"]),
                         (2, "FLASHMLA"))
        self.assertEqual([cell["drafter"] for cell in cells], ["eagle", "", ""])
        for flags in (["--skip-rows"], ["--max-cells", "9"], ["--every-cell"]):
            self.assertIn("--rows is a list of its own",
                          self.run_matrix("--rows", rows, "--print-cells", *flags).stderr)
        for text, part in (("- row", "rows.yaml, line 1: "), ("- drafterr: a", "entry 1: cell: "),
                           ("- drafter: nope", "entry 1: cell: drafter 'nope' is unknown"),
                           ("- architecture: Llama", "architecture 'Llama' has no synthetic"),
                           ("- cudagraph_mode: FOO", "cudagraph_mode 'FOO' is unknown"),
                           ("", "must be a list of cells"),
                           ("- architecture: \udcff", "line 1: the line is not UTF-8"),
                           ('- {"drafter": ' + "[" * 50000 + "]" * 50000 + "}", "in braces")):
            rows.write_text(text, errors="surrogateescape")
            done = self.run_matrix("--rows", rows, "--print-cells")
            self.assertIn(part, done.stderr)

    def test_parts_are_all_cells_together(self):
        def printed(*flags):
            return json.loads(self.run_matrix("--print-cells", *flags).stdout)
        parts = [printed("--part", f"{i}/4") for i in (1, 2, 3, 4)]
        self.assertCountEqual([json.dumps(cell) for part in parts for cell in part],
                              [json.dumps(cell) for cell in printed()])
        for part in ("5/4", "1/99999999999", "1/4/", "1", "/4"):
            self.assertIn("must be I/N", self.run_matrix("--part", part).stderr, part)

    def test_only_named_cells_are_run(self):
        def rows(*names):
            flags = [word for name in names for word in ("--only", name)]
            return [cell["row"] for cell in
                    json.loads(self.run_matrix("--print-cells", *flags).stdout)]
        self.assertEqual(rows("row1", "row8"), [1, 8])
        self.assertEqual(rows("TP8-DCP8"), [17])
        # Heads are divided by powers of two.
        cells = json.loads(self.run_matrix("--print-cells", "--max-ranks", "7").stdout)
        self.assertEqual({cell["tensor_parallel_size"] for cell in cells}, {1, 2, 4})
        self.assertEqual(rows("row8/cpu/LlamaForCausalLM/eagle"), [8])
        done = self.run_matrix("--print-cells", "--only", "row8", "--only", "row99")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--only 'row99': no cell has that", done.stderr)

    def test_a_cell_that_takes_too_long_is_red(self):
        done = self.run_file([{"drafter": "eagle"}], "--time-limit", "1", num_prompts=900)
        self.assertEqual(done.returncode, 1)
        cell = self.report()["cells"][0]
        self.assertEqual(cell["status"], "red")
        self.assertIn("did not end within 1 s; it stood at: ", cell["reason"])

    def test_the_time_limit_is_of_the_cell_and_not_of_its_checkpoints(self):
        # The program beside a writer of checkpoints that takes longer than the limit.
        program = self.folder / "foretoken"
        shutil.copy2(sys.argv[1], program)
        slow = self.folder / "foretoken-dial"
        slow.write_text(f'#!/bin/sh\nsleep 6\nexec {pathlib.Path(sys.argv[1]).parent}/foretoken-dial "$@"\n')
        slow.chmod(0o755)
        done = self.run_file([{}], "--time-limit", "5", *self.own_models(), program=program)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_cells_that_share_a_process_have_results_of_their_own(self):
        cells = [{"drafter": name} for name in ("", "ngram", "eagle")]
        flags = ("--cells-per-process", "4")
        done = self.run_file(cells, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        shared = self.report()["cells"]
        self.assertEqual([cell["cell"]["drafter"] for cell in shared],
                         [cell["drafter"] for cell in cells])
        (self.folder / "matrix.jsonl").unlink()
        self.assertEqual(self.run_file(cells).returncode, 0)
        for one, other in zip(shared, self.report()["cells"]):
            for name in ("status", "num_tokens", "command", "acceptance", "ops"):
                self.assertEqual(one.get(name), other.get(name), name)
        # Those behind one that is late are run all the same.
        (self.folder / "matrix.jsonl").unlink()
        self.run_file(cells[1:], *flags, "--time-limit", "1", num_prompts=900)
        self.assertEqual(len([cell for cell in self.report()["cells"]
                              if "did not end within 1 s" in cell["reason"]]), 2)

    def test_every_cell_is_of_a_part_with_all_its_drafters(self):
        done = self.run_matrix("--skip-rows", "--every-cell", "--part", "1/300", "--print-cells")
        cells = json.loads(done.stdout)
        self.assertTrue(50 < len(cells) < 130, len(cells))
        counts = collections.Counter(cell["drafter"] for cell in cells)
        # It does not go with latents.
        self.assertTrue(0 < counts.pop("gemma4_assistant") <= min(counts.values()), counts)
        self.assertEqual(len(set(counts.values())), 1, counts)

    def test_all_rows_and_the_whole_product_are_decided(self):
        done = self.run_matrix("--print-cells", "--max-cells", "60")
        cells = json.loads(done.stdout)
        self.assertEqual({cell["row"] for cell in cells}, set(range(26)))
        for part in ("drafter", "cudagraph_mode", "kv_cache_dtype", "quantization"):
            self.assertGreater(len({cell[part] for cell in cells if cell["row"] == 0}), 1, part)

    def test_what_does_not_go_together_is_of_known_kinds(self):
        for device, kinds in (("cpu", CPU_KINDS), ("cuda", CUDA_KINDS)):
            done = self.run_matrix("--device", device, "--skip-rows")
            self.assertEqual(done.returncode, 0, done.stderr)
            report = self.report()
            for entry in report["unsupported"]:
                self.assertTrue(any(re.search(kind, entry["reason"]) for kind in kinds), entry)
            for kind in kinds:
                self.assertTrue(any(re.search(kind, entry["reason"])
                                    for entry in report["unsupported"]), f"nothing is of {kind}")
            self.assertNotIn("|---|", done.stdout, "a table without rows")
            count = sum(entry["cells"] for entry in report["unsupported"])
            self.assertIn(f"{count:,}", PAGE.read_text(), f"docs/support-matrix.md, {device}")
            self.assertIn(f"{count} of {report['combinations']} combinations", done.stdout)

    def test_a_run_that_was_killed_while_it_wrote_goes_on(self):
        cells = [{}, {"drafter": "eagle"}]
        self.assertEqual(self.run_file(cells).returncode, 0)
        results = self.folder / "matrix.jsonl"
        first, second = results.read_text().splitlines()
        results.write_text(first + "\n" + second[:-40])
        # What the next run adds stands on a line of its own, which the run behind it reads.
        seconds = []
        for _ in range(2):
            done = self.run_file(cells)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(results.read_text().splitlines()[0], first)
            seconds.append([cell["seconds"] for cell in self.report()["cells"]])
        self.assertEqual(len(results.read_text().splitlines()), 2)
        self.assertEqual(seconds[0], seconds[1])

    def test_a_run_that_is_interrupted_reports_what_ended(self):
        rows = self.folder / "cells.json"
        rows.write_text(json.dumps([{}, {"drafter": "ngram"}, {"drafter": "eagle"}]))
        with subprocess.Popen([sys.argv[1], "matrix", "--rows", rows, "--num-prompts", "6",
                               "--work-folder", self.models.name, "--output",
                               self.folder / "matrix"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            self.assertIn("1 of 3: ", process.stderr.readline())
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("running again goes on behind the last one", err)
        self.assertIn("green reduced", out)
        self.assertLess(0, len(self.report()["cells"]))
        self.assertLess(len(self.report()["cells"]), 3)

    def test_results_of_another_size_are_not_taken(self):
        self.run_file([{}])
        for flags, num_prompts in ((("--size", "r1"), 6), ((), 7)):
            done = self.run_file([{}], *flags, num_prompts=num_prompts)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.report()["cells"][0]["num_prompts"], num_prompts)
        self.assertEqual(len((self.folder / "matrix.jsonl").read_text().splitlines()), 3)

    def test_what_is_no_result_is_refused(self):
        results = self.folder / "matrix.jsonl"
        self.run_file([{"attention_backend": "portable"}])
        whole = json.loads(results.read_text())
        # What a GPU's cell has beside.
        results.write_text(json.dumps(dict(whole, score_gap_to_portable=0.0025)) + "\n")
        done = self.run_file([{"attention_backend": "portable"}])
        self.assertIn("of the CPU's own attention, within 0.0025 of its portable partner's",
                      done.stdout)
        for name, value in (("verdict", None), ("verdict", 7), ("verdict", "gold"), ("reason", 7),
                            ("attention", []), ("grown_bytes", None), ("num_prompts", "many"),
                            ("score_gap_to_portable", "none"),
                            ("cell", {"drafterr": ""}), ("cell", None)):
            broken = dict(whole, **{name: value})
            if value is None:
                del broken[name]
            results.write_text(json.dumps(broken) + "\n")
            done = self.run_file([{"attention_backend": "portable"}])
            self.assertEqual(done.returncode, 1, (name, value))
            self.assertIn("line 1 is no result of foretoken matrix", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        for path in (self.folder, "/dev/zero", self.folder / "nowhere" / "file"):
            done = self.run_file([{}], "--results", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(str(path), done.stderr)
        done = self.run_file([{}], "--results", "/dev/full")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)

    def test_reports_that_cannot_be_written_are_told_before(self):
        # Before the product is decided, too: a name that none of its cells has is found behind that.
        nowhere = self.folder / "no" / "where"
        kept = self.folder / "kept.jsonl"
        for flags, part in ((("--output", nowhere, "--results", kept), "cannot write"),
                            (("--results", nowhere), "cannot write"),
                            (("--rows", nowhere), "cannot read"), (("--part", "0/1"), "must be")):
            product = () if "--rows" in flags else ("--skip-rows", "--every-cell")
            done = self.run_matrix(*product, *flags, "--only", "no-such-part")
            self.assertEqual(done.returncode, 1)
            self.assertIn(part, done.stderr)
            self.assertNotIn("no-such-part", done.stderr)
        self.assertFalse(kept.exists(), "a cell ran")
        self.assertIn("no-such-part", self.run_file([{}], "--only", "no-such-part").stderr)

    def test_checkpoints_that_cannot_be_written_are_no_result(self):
        program = self.folder / "foretoken"
        shutil.copy2(sys.argv[1], program)
        broken = self.folder / "foretoken-dial"
        broken.write_text("#!/bin/sh\necho no space is left >&2\nexit 1\n")
        broken.chmod(0o755)
        done = self.run_file([{}, {"drafter": "ngram"}], *self.own_models(), program=program)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no space is left", done.stderr)
        self.assertEqual(done.stderr.strip().count("\n"), 0, done.stderr)
        # With room the same command runs the cells, as none has a result.
        self.assertEqual((self.folder / "matrix.jsonl").read_text(), "")

    def test_expressions_and_paths_are_escaped(self):
        mask = "kv <= q and ((kv < 4) | (q - kv < 4096))"
        folder = self.folder / "it's; $(here)"
        folder.mkdir()
        done = self.run_file([{"attention_backend": f"flex({mask}; )"}], "--work-folder", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
        self.assertEqual({len(re.findall(r"(?<!\\)\|", line)) for line in lines}, {11})
        cell = self.report()["cells"][0]
        words = shlex.split(cell["command"])
        self.assertEqual(words[words.index("--work-folder") + 1], str(folder))
        self.assertEqual(json.loads(words[words.index("--run-cell") + 1]), cell["cell"])

    def test_faults_are_told(self):
        for cells, part in (([{"drafterr": "eagle"}], "'drafterr' is unknown"),
                            ([{"tensor_parallel_size": 0}], "'tensor_parallel_size' must be"),
                            ({"drafter": "eagle"}, "must be a list of cells"),
                            ([{"device": "abacus"}], "must be cpu or cuda")):
            done = self.run_file(cells)
            self.assertEqual(done.returncode, 1)
            self.assertIn(part, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    door.main()
