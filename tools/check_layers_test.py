#!/usr/bin/env python3
"""What tools/check_layers.py says of questions that a source asks, on lines made up for it."""

import pathlib
import tempfile
import unittest
import unittest.mock

import check_layers
from check_layers import check_questions, check_rooms_page, check_source

ASKED = ("if (device.type() == DeviceType::kCpu) return 0;", 'const bool cpu = config.device == "cpu";',
         'if ("cuda" != name) return;', "const bool wide = is_cuda ? 1 : 0;",
         "auto* x = dynamic_cast<const Families*>(&device);", "std::dynamic_pointer_cast<Families>(device);")
PASSED = ("open_device(traits.type, 0, 0);", "// Those of DeviceType::kCpu.", 'config.device = "cpu";',
          'return invalid_argument("use cpu or cuda");', "dynamic_cast<const CLI::ValidationError*>(&error);")


class Questions(unittest.TestCase):
    def test_each_is_found_with_its_remedy(self):
        for line in ASKED:
            found = list(check_questions("src/engine/a.cpp", "int x;\n" + line))
            self.assertEqual(len(found), 1, line)
            self.assertRegex(found[0], r"^src/engine/a.cpp:2: .*; needed is a ")

    def test_what_asks_nothing_passes(self):
        for line in PASSED:
            self.assertEqual(list(check_questions("apps/a.cpp", line)), [], line)

    def test_devices_may_ask_for_their_type(self):
        for path in ("src/device/a.cpp", "src/kernels/gemm/a.cpp", "src/attention/families.cpp"):
            self.assertEqual(list(check_questions(path, ASKED[0])), [])
            self.assertEqual(len(list(check_questions(path, ASKED[4]))), 1)

    def test_a_room_that_the_page_lacks_is_named(self):
        page = "| `draft` | `parts` and more |\n| `http` | `server` · `message` |\n"
        told = list(check_rooms_page(page))
        self.assertFalse([line for line in told if "`draft`" in line])
        self.assertEqual(len([line for line in told if "`http` | of message, server" in line]), 1)


class Includes(unittest.TestCase):
    def test_angle_brackets_hide_no_layer(self):
        with tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch.object(check_layers, "ROOT", pathlib.Path(folder)):
            for name in ("serve/server.h", "kv/plant.cpp"):
                path = pathlib.Path(folder) / "src" / name
                path.parent.mkdir(parents=True)
                path.write_text("#include <serve/server.h>\n#include <vector>\n")
            found = list(check_source(path, "kv", {"base"}))
            self.assertEqual(len(found), 1, found)
            self.assertIn("is a header of this project", found[0])


if __name__ == "__main__":
    unittest.main()
