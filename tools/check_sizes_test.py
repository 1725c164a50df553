#!/usr/bin/env python3
"""What tools/check_sizes.py finds and what it lets pass, on trees made up for it."""

import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock

import tree
from check_sizes import MAX_FILES, MAX_LINES, MAX_MEDIAN, faults, room_of

LINE = "int x;\n"


def folder_of(count, name="src/x/a%d.cpp"):
    return {name % i: LINE for i in range(count)}


class Sizes(unittest.TestCase):
    def meet(self, files, *words):
        found = list(faults(files))
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_a_long_file_is_found_whatever_it_is(self):
        for name in ("src/x/a.cpp", "test", "packaging/debian/postinst", "packaging/docker/Dockerfile", "tools/check", "a.py"):
            self.meet({**folder_of(3), name: LINE * (MAX_LINES + 1)}, name + ": ", "split it")
            self.assertEqual(list(faults({**folder_of(3), name: LINE * MAX_LINES})), [])

    def test_a_full_folder_is_found(self):
        self.meet(folder_of(MAX_FILES + 1), "src/x: ", "make rooms")
        self.assertEqual(list(faults(folder_of(MAX_FILES))), [])
        self.assertEqual(list(faults({**folder_of(MAX_FILES), "src/x/y/a.cpp": LINE})), [])

    def test_files_that_are_long_by_the_median_are_found(self):
        self.meet({name: LINE * (MAX_MEDIAN + 1) for name in folder_of(5)}, "median")

    def test_rooms_that_include_each_other_are_found(self):
        for include in ('#include "b/b.h"', '  # include "b/b.h"', '#include "../b/b.h"'):
            files = {"src/a/a.h": include + "\n", "src/b/b.h": LINE, "src/b/b.cpp": '#include "a/a.h"\n'}
            self.meet(files, "src/a and src/b include each other", "b.cpp includes a.h")
        self.assertEqual(list(faults({"src/a/a.h": '#include "b/b.h"\n', "src/b/b.h": LINE, "src/b/b.cpp": '#include "b/b.h"\n'})), [])
        self.assertEqual(room_of("src/kernels/rows/cuda/a.cu"), room_of("src/kernels/rows/a.h"))


class Tree(unittest.TestCase):
    def test_scripts_without_suffix_and_packaging_count_and_data_does_not(self):
        written = {"test": "#!/bin/sh\n", "packaging/debian/postinst": "#!/bin/sh\n", "packaging/docker/Dockerfile": "FROM x\n",
                   "src/kv/a.cpp": LINE, "tools/check": "#!/usr/bin/env python3\n", "cmake/CMakeLists.txt": "x\n", "deploy/a.yaml": "a: 1\n"}
        others = {"LICENSE": "Apache\n", "docs/a.md": "# A\n", "tests/fuzz/corpus/http/get": "#!x\n", "tests/text/data/a.py": LINE,
                  "src/serve/page/vendor/a.js": LINE, "tests/golden/a/a.py": LINE, "build/a.cpp": LINE}
        for with_git in (True, False):
            with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(tree, "ROOT", pathlib.Path(folder)):
                for name, text in {**written, **others}.items():
                    path = pathlib.Path(folder) / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text)
                if with_git:
                    subprocess.run(["git", "init", "-q", folder], check=True)
                    (pathlib.Path(folder) / ".gitignore").write_text("build/\n")
                self.assertEqual(sorted(tree.written_sources()), sorted(written), with_git)


if __name__ == "__main__":
    unittest.main()
