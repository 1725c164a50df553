#!/usr/bin/env python3
"""What tools/check_generated.py finds and what it lets pass, on lists and trees made up for it."""

import hashlib
import pathlib
import shutil
import tempfile
import unittest

from check_generated import COMPARED, ROOT, charts, crate_header, decisions, list_faults, read_list, unlisted, vendored

NAMES = ["docs/a.md", "tools/write", "tests/config/a_test.cpp"]
TEXTS = {"docs/a.md": "<!-- foretoken inspect --a -->\n", "tests/config/a_test.cpp": "TEST(Pages, Hold) {}\n"}
MARK = "<!-- foretoken inspect --a -->"


def told(lines, texts=None):
    return list(list_faults(read_list("\n".join(["# why", *lines])), texts or TEXTS, NAMES, COMPARED))


class Tree(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


class Generated(Tree):
    def test_the_list_passes_and_its_faults_are_found(self):
        self.assertEqual(told([f"docs/a.md {MARK}: tools/write: test_config Pages.Hold", "docs/*.md: tools/write: decisions",
                               "docs/a.md: tools/write: nothing, a picture"]), [])
        for line, words in ((f"docs/a.md {MARK}: tools/write: test_config Pages.Gone", "no test"),
                            (f"docs/a.md {MARK}: tools/write: test_apps Pages.Hold", "no test"),
                            ("docs/b.md: tools/write: decisions", "is not there"), ("docs/a.md: tools/gone: decisions", "its maker"),
                            ("docs/a.md: tools/write: guesses", "is no function"), ("docs/a.md: tools/write: nothing", "needs a reason"),
                            ("docs/a.md <!-- foretoken inspect --b -->: tools/write: test_config Pages.Hold", "has no part")):
            self.assertRegex("\n".join(told([line])), words, line)
            self.assertEqual(len(told([line])), 1, line)
        with self.assertRaises(ValueError):
            read_list("docs/a.md: tools/write")

    def test_what_says_that_it_is_made_is_listed(self):
        entries = read_list(f"docs/a.md {MARK}: tools/write: test_config Pages.Hold")
        self.assertEqual(list(unlisted(entries, TEXTS)), [])
        for name, text in (("docs/b.md", MARK + "\n"), ("docs/a.md", "<!-- foretoken inspect --b -->\n"),
                           ("docs/b.md", "<!-- rows, made from src/config -->\n"), ("python/a.py", '"""Fields: do not edit it."""\n'),
                           ("src/a.h", "// Made of a table. DO NOT EDIT\n")):
            self.assertEqual(len(list(unlisted(entries, {name: text}))), 1, text)
        for text in ("<!-- end -->\n", "<!-- a remark -->\n", "int x;\n// do not edit while it runs\n"):
            self.assertEqual(list(unlisted(entries, {"docs/b.md": text})), [], text)

    def test_the_index_of_decisions(self):
        self.write("docs/decisions/0001-a.md", "# A is so\n")
        index = self.write("docs/decisions/README.md", "# Decisions\n\n- [0001](0001-a.md) A is so\n")
        self.assertEqual(list(decisions(self.root)), [])
        self.write("docs/decisions/0002-b.md", "# B, too\n")
        self.assertEqual(len(list(decisions(self.root))), 1)
        self.assertEqual(list(decisions(self.root, write=True)), [])
        self.assertTrue(index.read_text().endswith("- [0002](0002-b.md) B, too\n"))
        self.assertEqual(list(decisions(self.root)), [])

    def test_a_chart_is_of_its_lines(self):
        for name in ("h200-cuda-p.svg", "h200-cuda-p.jsonl"):
            self.write("bench/results/" + name, (ROOT / "bench/results" / name).read_text(encoding="utf-8"))
        self.assertEqual(list(charts(self.root)), [])
        raw = self.root / "bench/results/h200-cuda-p.jsonl"
        raw.write_text(raw.read_text().replace('"ms_per_token": 3.95', '"ms_per_token": 7.95'))
        self.assertEqual(len(list(charts(self.root))), 1)

    def test_files_of_others_are_unchanged(self):
        code = "let x;\n"
        page = "| a.js | a 1 | dist | MIT | " + hashlib.sha256(code.encode()).hexdigest() + " |\n"
        path = self.write("src/serve/page/vendor/a.js", code)
        self.write("src/serve/page/vendor/README.md", page)
        self.assertEqual(list(vendored(self.root)), [])
        path.write_text("let y;\n")
        self.assertEqual(len(list(vendored(self.root))), 1)
        path.unlink()
        self.assertEqual(len(list(vendored(self.root))), 1)

    def test_the_header_of_the_crate(self):
        self.write("text-crate/src/a.rs", 'pub unsafe extern "C" fn ft_a(\n    x: i32,\n    y: *mut u8,\n) -> i32 {}\n')
        header = self.write("text-crate/foretoken_text.h", "int32_t ft_a(int32_t x,  // one, two\n             char* y);\n")
        self.assertEqual(list(crate_header(self.root)), [])
        for text in ("int32_t ft_a(int32_t x);\n", "", "int32_t ft_a(int32_t x, char* y);\nvoid ft_b(void);\n"):
            header.write_text(text)
            self.assertEqual(len(list(crate_header(self.root))), 1, text)


if __name__ == "__main__":
    unittest.main()
