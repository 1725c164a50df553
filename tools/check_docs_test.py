#!/usr/bin/env python3
"""What tools/check_docs.py finds and what it lets pass, on pages made up for it that speak of this tree."""

import pathlib
import tempfile
import unittest
import unittest.mock

import check_docs
from check_docs import MAX_LINE, MAX_LINES, command_faults, link_faults, name_faults

WRONG_CODE = {
    "`tools/no_such_tool.py`": "is not there", "`tools/no_such_tool`": "is not there", "`src/kv/no_such.h`": "is not there",
    "`include/foretoken/no_such.h`": "is not there", "`./cmake/no_such.cmake`": "is not there", "`src/no_such/`": "is not there",
    "`.ci/no_such`": "is not there", "```\ntools/no_such.sh --help\n```": "is not there", "`python/no_such/a.py`": "is not there",
    "`foretoken no-such`": "has no command", "`foretoken serve --no-such-flag-at-all`": "no program of the tree knows",
    "`foretoken serve --no-such-flag`": "no program of the tree knows", "`foretoken serve --such-flag`": "no program of the tree knows",
    "`./test no_such`": "there is no tests/no_such", "```\n./test kv no_such\n```": "there is no tests/no_such",
    "`./test kernels/no_such`": "there is no tests/kernels/no_such", "`FORETOKEN_TEST_TURN=3 ./test no_such`": "there is no tests/no_such",
    "`cmake --preset no-such`": "there is no preset", "`test_no_such --gtest_filter='A.B'`": "no test program",
    "`test_kv --gtest_filter='*NoSuchSuite*'`": "has no test that NoSuchSuite"}
RIGHT_CODE = (
    "`tools/check --all`", "`src/kv/block_pool`", "`src/kv/`", "`tests/doors/x_door.py`", "`src/<folder>/<room>/x.h`", "`tests/*/x_test.cpp`",
    "`include/foretoken/config.h`", "`foretoken serve --help`", "`./test kv sched`", "`./test kernels/rows`", "`./test python`", "`./test doors -R wire`", "`$OUT/tools/a`",
    "`cmake --preset cpu-release`", "`https://x.org/src/no_such`", "`--out=tests/no_such`", "`foretoken`")
WRONG_NAMES = ("`NoSuchClassAtAll`", "`BlockPool::no_such_member`", "`kv/no_such`", "`kv/no_such.h`", "`cuda/no_such.cu`", "`kNoSuchConstant`", "`no_such_function`", "`no_such_function()`", "`test_no_such`")
RIGHT_NAMES = ("`BlockPool`", "`kv/block_pool`", "`kv/block_pool.h`", "`kernels/rows`", "`cpu/softcap.cpp`", "`PascalCase`", "`cuda/x.cu`", "`launch_x`", "`count_accepted`", "`find_drafter()`", "`test_kv`",
               "`two words`", "`a = b`")
HERE = "# A Heading, of `kinds`\n\n## Two\n"


def faults(text, name="docs/page.md"):
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.md"
        page.write_text(text, encoding="utf-8")
        with unittest.mock.patch.object(pathlib.PurePath, "relative_to", lambda self, _: pathlib.PurePosixPath(name)):
            return list(check_docs.faults_of(page))


class Docs(unittest.TestCase):
    def test_what_is_not_there_is_found(self):
        for code, words in WRONG_CODE.items():
            found = faults(f"See {code} there.\n") if "\n" not in code else faults(code + "\n")
            self.assertEqual(len(found), 1, (code, found))
            self.assertIn(words, found[0], code)

    def test_what_is_there_passes(self):
        for code in RIGHT_CODE:
            self.assertEqual(faults(f"See {code} there.\n"), [], code)

    def test_names_of_pages_about_the_code(self):
        for name in WRONG_NAMES:
            self.assertEqual(len(list(name_faults(name))), 1, name)
            self.assertEqual(len(faults(f"See {name}.\n", "docs/internals/page.md")), 1, name)
        for name in RIGHT_NAMES:
            self.assertEqual(list(name_faults(name)), [], name)

    def test_commands_after_a_comment_are_read(self):
        self.assertEqual(len(list(command_faults("# runs it\nforetoken no-such\n"))), 1)
        self.assertEqual(list(command_faults("# foretoken no-such --nothing-knows-this\n")), [])

    def test_links_lead_somewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            (pathlib.Path(folder) / "b.md").write_text(HERE)
            page.write_text(HERE)
            for link in ("[a](gone.md)", "[a](b.md#no-heading)", "[a](#gone)", "![a](gone.png)", "[a]: gone.md", "[a](gone.md \"A\")",
                         '<a href="gone.md">a</a>', '<img width="3" src="gone.png">'):
                self.assertEqual(len(list(link_faults(page, HERE + link + "\n"))), 1, link)
            for link in ("[a](b.md)", "[a](b.md#two)", "[a](#a-heading-of-kinds)", "[a](https://x.org/gone)", "`[a](gone.md)`", "[a]: b.md",
                         "```\n[a](gone.md)\n```", '<a href="b.md">a</a>'):
                self.assertEqual(list(link_faults(page, HERE + link + "\n")), [], link)

    def test_pages_have_bounds(self):
        page, most = next(iter(MAX_LINES.items()))
        self.assertEqual(len(faults("a\n" * (most + 1), page)), 1)
        self.assertEqual(faults("a\n" * most, page), [])
        self.assertEqual(len(faults("a" * (MAX_LINE + 1), "docs/NOTES.md")), 1)
        self.assertEqual(faults("a" * (MAX_LINE + 1), "docs/serving.md"), [])


if __name__ == "__main__":
    unittest.main()
