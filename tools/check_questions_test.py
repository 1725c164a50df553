#!/usr/bin/env python3
"""What tools/check_questions.py finds and what it lets pass, on lines made up for it."""

import unittest

from check_questions import REGISTRY, ROOT, faults, method_names, read_exceptions

METHODS = {"ngram", "draft_model", "eagle", "eagle3", "mtp", "suffix"}
DEVICES = (
    "if (device.type() == DeviceType::kCpu) return 0;", 'const bool cpu = config.device == "cpu";', 'if ("cuda" != name) return;',
    "const bool wide = is_cuda ? 1 : 0;", 'if (std::strcmp(name, "cuda") == 0) return;', 'if (name.starts_with("cuda")) return;',
    'if (name.starts_with("cud")) return;', 'if (name.compare("cpu") == 0) return;', 'constexpr std::string_view kName = "cuda";',
    'if (name == "cuda:0") return;', 'if (name.find("GPU") != npos) return;', 'return name == "cu" "da";',
    "if (device.type() == other) return;", "if (other == engine.device()->type()) return;", "switch (device_->type()) {}",
    "using enum DeviceType;", "using Kind = DeviceType;", "if (type == DeviceType{1}) return;",
    "if (static_cast<int>(device.type()) == 1) return;", "#if defined(__CUDACC__)", 'const std::set<std::string> kFast = {"cuda"};',
    'if (device.name() == "NVIDIA H200") return;', 'constexpr Known kKnown[] = {{"H100", 3.0e12}};', 'if (name.find("B200") != npos) return;',
    'if (config.device != "cpu") return;', 'if (name ==\n    "cuda") return;', 'if (find_device_type("cuda") == type) return;')
METHOD_LINES = (
    'if (method == "eagle3") return;', 'if (std::strcmp(entry.name, "ngram") == 0) return;', 'if (method.starts_with("eag")) return;',
    'if (method.starts_with("eagle")) return;', 'const std::map<std::string, int> kLengths = {{"draft_model", 3}};',
    'if (method == "draft-model") return;', "if (head == HeadKind::kMtp) return;", "using enum HeadKind;",
    'constexpr const char* kLookUp = "suffix";')
CLASSES = ("auto* x = dynamic_cast<const Families*>(&device);", "std::dynamic_pointer_cast<Families>(device);",
           "if (typeid(device) == typeid(other)) return;")
PASSED = (
    "open_device(traits.type, 0, 0);", "// Those of DeviceType::kCpu, of \"cuda\" and of HeadKind::kMtp.", 'config.device = "cpu";',
    'return invalid_argument("use cpu or cuda");', "dynamic_cast<const CLI::ValidationError*>(&error);",
    "const auto& traits = device_traits(device.type());", 'std::string device = "cpu";', "if (json.type() == value_t::null) return;",
    '{.device = find_device_type("cuda"), .uses_mpi = true}', 'return "the eagle head is " + name;', 'log("dynamic_cast<A*>(is_cuda)");',
    "// of an H200", 'needs("a GPU of compute capability 9.0 (H100, H200)");', 'add("A");', 'names.push_back("dr");', 'if (name.starts_with("model")) return;', "/* name == \"ngram\" */", "#ifdef FT_TRACE", 'add("draft");')

PYTHON = ('if device == "cuda":\n    pass', 'fast = {"cuda"}', 'if name.startswith("cud"):\n    pass', 'if "cud" in name:\n    pass', 'x = f"cuda:{i}"',
          'if method == "eagle3":\n    pass', 'if method == "draft-model":\n    pass', 'METHODS = ["ngram"]', 'if name.startswith("eag"):\n    pass',
          'if re.match("suff", name):\n    pass')
PYTHON_PASSED = ('"""cuda"""', "# ngram", 'device = "cpu"', 'open(device="cuda:1")', 'self.device: str = "cpu"', 'x = "the eagle head"', 'x = "eag"',
                 'def f():\n    "ngram"')


def found(path, line):
    return list(faults({path: ("" if path.endswith(".py") else "int x;\n") + line + "\n"}, METHODS, {}))


class Questions(unittest.TestCase):
    def test_each_is_found_with_its_remedy(self):
        for lines, remedy in ((DEVICES, "DeviceTraits"), (METHOD_LINES, "DrafterTraits"), (CLASSES, "virtual function")):
            for line in lines:
                for path in ("src/engine/a.cpp", "apps/a/b.cpp"):
                    told = found(path, line)
                    self.assertTrue(told, line)
                    self.assertRegex(told[0], rf"^{path}:[23]: .*; needed is .*{remedy}", line)

    def test_what_asks_nothing_passes(self):
        for line in PASSED:
            self.assertEqual(found("apps/a.cpp", line), [], line)

    def test_python_is_read(self):
        for line in PYTHON:
            self.assertEqual(len(found("bench/a.py", line)), 1, line)
        for line in PYTHON_PASSED:
            self.assertEqual(found("python/foretoken/a.py", line), [], line)

    def test_devices_may_ask_for_their_type(self):
        for path in ("src/device/a.cpp", "src/kernels/gemm/a.cpp"):
            for line in DEVICES:
                self.assertEqual(found(path, line), [], line)
            self.assertEqual(len(found(path, CLASSES[0])), 1)
            self.assertEqual(len(found(path, METHOD_LINES[0])), 1)
        self.assertEqual(found("src/attention/families.cpp", DEVICES[0]), [])
        self.assertEqual(len(found("src/attention/families.cpp", DEVICES[1])), 1)

    def test_a_method_is_named_where_it_is_made(self):
        for path in (REGISTRY, "src/draft/parts/method.cpp", "src/draft/ngram.cpp"):
            self.assertEqual(found(path, METHOD_LINES[1]), [])
        self.assertEqual(len(found("src/draft/ngram.cpp", METHOD_LINES[0])), 1)
        for path in ("src/model/draft_head.cpp", "src/draft/head_drafter.cpp", "src/model/head_kind.cpp"):
            self.assertRegex(found(path, "if (head == HeadKind::kMtp) return;")[0], "HeadTraits")
            self.assertEqual(len(found(path, "switch (kind) { case HeadKind::kMtp: return; }")), 1)
        for path in ("src/model/head_kind.h", REGISTRY):
            self.assertEqual(found(path, ".head = HeadKind::kMtp,"), [])
        self.assertEqual(found("src/model/draft_head_config.h", "HeadKind kind = HeadKind::kEagle;"), [])
        example = '{.drafter = "eagle", .drafter_behind = "ngram"}'
        self.assertEqual(found("src/compat/a.cpp", example), [])
        self.assertEqual(len(found("src/engine/a.cpp", example)), 2)

    def test_the_names_are_those_of_the_registry(self):
        names = method_names((ROOT / REGISTRY).read_text(encoding="utf-8"))
        self.assertGreaterEqual(names, {"ngram", "ngram_gpu", "draft_model", "eagle3", "mtp", "p_eagle", "peagle", "xpress"})
        self.assertFalse([name for name in names if not name.replace("_", "").isalnum()])

    def test_an_exception_has_a_reason_and_is_used(self):
        sources = {"src/x/a.cpp": METHOD_LINES[0], "src/x/b.cpp": DEVICES[1]}
        lines = ["# why", "src/x/a.cpp: *: a test", "src/x/b.cpp: cpu: a test"]
        self.assertEqual(list(faults(sources, METHODS, read_exceptions(lines))), [])
        self.assertEqual(len(list(faults(sources, METHODS, read_exceptions(["src/x/b.cpp: *: of methods alone"])))), 3)
        self.assertEqual(len(list(faults({}, METHODS, read_exceptions(lines)))), 2)
        with self.assertRaises(ValueError):
            read_exceptions(["src/x/a.cpp: *: "])


if __name__ == "__main__":
    unittest.main()
