#!/usr/bin/env python3
"""What tools/check_layers.py finds and what it lets pass, in trees made up for it."""

import pathlib
import tempfile
import unittest
import unittest.mock

import check_layers
from check_layers import ALLOWED, ROOMS, check_exists, check_public, check_python, check_rooms_page, check_source

HEADERS = ("serve/server.h", "sched/plan.h", "kv/pool.h", "base/check.h", "model/config/x.h", "model/arch/x.h", "model/x.h")


class Tree(unittest.TestCase):
    """A tree with HEADERS; `told` says what is found in a source of it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        patch = unittest.mock.patch.object(check_layers, "ROOT", self.root)
        patch.start()
        self.addCleanup(patch.stop)
        for name in HEADERS:
            self.write("src/" + name, "#include <vector>\n")
        self.write("apps/flags/x.h", "#include <vector>\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def told(self, name, text):
        parts = name.split("/")
        folder = parts[0] if parts[0] == "apps" else parts[1]
        return list(check_source(self.write(name, text), folder, ALLOWED[folder]))

    def meet(self, name, text, words):
        found = self.told(name, text)
        self.assertEqual(len(found), 1, (text, found))
        self.assertRegex(found[0], rf"^{name}:\d+: .*{words}")

    def test_an_include_that_points_up_is_found(self):
        for line in ('#include "serve/server.h"', '  #  include "serve/server.h"  // why', '#include/**/"serve/server.h"',
                     '#include "sched/plan.h"'):
            self.meet("src/kv/plant.cpp", "#include <vector>\n" + line + "\n", "must not include")
        self.meet("src/kv/plant.h", '#include "../serve/server.h"\n', "must not include")
        self.meet("src/serve/plant.cpp", '#include "model/x.h"\n', "must not include")

    def test_angle_brackets_and_macros_hide_no_layer(self):
        self.meet("src/kv/plant.cpp", "#include <serve/server.h>\n#include <vector>\n", "is a header of this project")
        self.meet("src/kv/plant.cpp", "#include SERVER_H\n", "hides its layer")

    def test_rooms_have_an_order(self):
        self.meet("src/model/config/plant.cpp", '#include "model/arch/x.h"\n', "must not include")
        self.meet("src/model/config/plant.cpp", '#include "model/x.h"\n', "must not include")
        self.meet("src/model/hall/plant.cpp", '#include "model/x.h"\n', "not in the table")
        self.assertEqual(self.told("src/model/arch/plant.cpp", '#include "model/config/x.h"\n'), [])

    def test_the_headers_of_cuda_stay_below_their_folder(self):
        self.meet("src/kernels/plant.cpp", "#include <cuda_runtime.h>\n", "below a cuda")
        self.assertEqual(self.told("src/kernels/cuda/plant.cu", "#include <cuda_runtime.h>\n"), [])

    def test_what_is_not_there_is_named(self):
        self.meet("src/kv/plant.cpp", '#include "kv/gone.h"\n', "does not exist")

    def test_what_points_down_passes(self):
        text = ('#include "kv/pool.h"\n#include "base/check.h"\n#include <foretoken/engine.h>\n#include <nlohmann/json.hpp>\n'
                '// #include "serve/server.h"\nconst char* kText = "include SERVER_H";\n')
        self.assertEqual(self.told("src/kv/plant.cpp", text), [])
        self.assertEqual(self.told("apps/plant.cpp", '#include "serve/server.h"\n#include "apps/flags/x.h"\n'), [])

    def test_public_headers_and_examples_show_no_insides(self):
        for line in ('#include "kv/pool.h"', "#include <nlohmann/json.hpp>", "#include SERVER_H"):
            self.assertEqual(len(list(check_public(self.write("include/foretoken/plant.h", line + "\n")))), 1, line)
        text = "#include <foretoken/engine.h>\n#include <vector>\n"
        self.assertEqual(list(check_public(self.write("examples/plant.cpp", text))), [])

    def test_tests_include_what_is_there(self):
        self.write("tests/cuda/check.h", "")
        self.assertEqual(len(list(check_exists(self.write("tests/cuda/plant.cpp", '#include "kv/moved.h"\n')))), 1)
        text = '#include "kv/pool.h"\n#include "check.h"\n#include "cuda/check.h"\n#include "apps/flags/x.h"\n#include <gtest/gtest.h>\n'
        self.assertEqual(list(check_exists(self.write("tests/cuda/plant.cpp", text))), [])

    def test_python_sees_the_engine_by_its_face(self):
        self.write("python/src/own.h", "")
        path = self.write("python/src/plant.cpp", '#include "own.h"\n#include "serve/server.h"\n#include <foretoken/engine.h>\n#include <vector>\n')
        self.assertEqual(list(check_python([path], {})), [])
        self.assertEqual(len(list(check_python([path], {"kv/pool.h": "a test"}))), 1)
        for line in ('#include "kv/pool.h"', '#include "apps/flags/x.h"', "#include <kv/pool.h>", "#include POOL_H", '#include "../../src/kv/pool.h"'):
            path = self.write("python/src/plant.cpp", line + "\n")
            self.assertEqual(len(list(check_python([path], {}))), 1, line)
        path = self.write("python/src/plant.cpp", '#include "kv/pool.h"\n')
        self.assertEqual(list(check_python([path], {"kv/pool.h": "a test"})), [])

    def test_commands_plan_no_steps(self):
        self.meet("apps/plant.cpp", '#include "sched/plan.h"\n', "must not include")
        self.assertEqual(self.told("apps/plant.cpp", '#include "model/x.h"\n'), [])

    def test_the_whole_of_it_ends_with_an_error(self):
        page = "".join(f"| `{folder}` | {', '.join(f'`{room}`' for room in rooms if room)} |\n" for folder, rooms in ROOMS.items())
        self.write("docs/ARCHITECTURE.md", page)
        with unittest.mock.patch("builtins.print"):
            with unittest.mock.patch.object(check_layers, "PYTHON_HEADERS", {}):
                self.assertEqual(check_layers.main(), 0)
                path = self.write("python/src/x.cpp", '#include "kv/pool.h"\n')
                self.assertEqual(check_layers.main(), 1)
                path.unlink()
                self.assertEqual(check_layers.main(), 0)
                self.write("src/hall/x.h", "")
                self.assertEqual(check_layers.main(), 1)


class Page(unittest.TestCase):
    def test_a_room_that_the_page_lacks_is_named(self):
        page = "| `draft` | `parts` and more |\n| `http` | `server` · `message` |\n"
        told = list(check_rooms_page(page))
        self.assertFalse([line for line in told if "`draft`" in line])
        self.assertEqual(len([line for line in told if "`http` | of message, server" in line]), 1)


if __name__ == "__main__":
    unittest.main()
