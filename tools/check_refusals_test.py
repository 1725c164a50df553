#!/usr/bin/env python3
"""What tools/check_refusals.py finds and what it lets pass, on sources made up for it."""

import unittest

from check_refusals import faults, fields_of, never_asked, never_told, read_exceptions, refusals, sources


MET = (
    'return unsupported("--enable-dbo with --pipeline-parallel-size is not there; leave one out");',
    'return invalid_argument("--flex-mask " + text + " is not read by --attention-backend " + name);',
    'return unsupported(name + ": heads are not divided " +\n  "among ranks; lower it");',
    'return fault("a and b exclude each other (\\"c\\")" + f(x));', 'return unsupported("PARD is not built where " + whose + " keeps states");',
    'return unsupported("--enable-dbo needs more stages");', 'return unsupported("--flex-mask is refused while drafts are made");',
    'return Status(StatusCode::kUnsupported, "--enable-dbo without " + what);', 'throw std::runtime_error("--a conflicts with drafts");',
    'const std::string why = "prefix caching is not built for recurrent layers";\nreturn unsupported(why);',
    'fields.fail("a goes with b, not with c");', 'return unsupported("medusa cannot be combined with " + other);',
    'return invalid_argument("priority is " + n + ", but all are alike; start it with --scheduling-policy x");',
    'return invalid_argument(field + " does nothing with method " + method);', 'return unsupported("groups are not divided among " + n + " ranks");',
    'return invalid_argument(flag + ": the weights of " + m + " are quantised by " + name);',
    'return invalid_argument("the target" + x + " has no tokenizer.json; leave the field out or add the file");',
    'constexpr const char* kNone = "the model has no tokenizer.json; use token ids";', 'return unsupported("the model has no chat template; send a prompt");',
    'return fail("the engine runs without a drafter; begin again");', 'return invalid_argument(flag + " needs a drafter; add --speculative-config");',
    'return fail("nothing is drafted; start with --speculative-config");', 'fail(fmt::format("{} holds for the whole engine, but entries differ", x));',
    'return unsupported("this model has no tokens for gaps; use another");', 'return invalid_argument("-x does not read \'" + model + "\', a GGUF file");',
    'return invalid_argument(fmt::format("--one {} with {}", x, y));', 'return {StatusCode::kUnsupported, "drafts are not supported with adapters"};')
PASSED = (
    'return invalid_argument("--max-model-len " + n + " exceeds 5; lower it");',
    'return unsupported("--dtype x is not known; use --dtype auto, which takes what it needs");', 'return FT_CHECK("--one and --two together");',
    '// unsupported("--one with --two")', '#include "kernels/experts/combine_experts.h"', 'flag("--one", "What it is, with more");',
    'return unsupported("the file " + name + " is not known; use another");', 'x = "leave";\ny = "one out";')

FEATURES = ('return unsupported("recurrent layers keep no FP8 KV cache");', 'return Status(StatusCode::kUnsupported, "drafts of adapters are not made");',
            'return unsupported("the assistant attends to a layer of another stage");', 'return unsupported(name + ": grammars are not followed by lanes");', 'return {StatusCode::kUnsupported, "GGUF files of experts are not read"};')


class Refusals(unittest.TestCase):
    def test_parts_of_an_engine_meet(self):
        for text in MET:
            self.assertEqual(len(list(refusals(text))), 1, text)

    def test_one_value_passes(self):
        for text in PASSED:
            self.assertEqual(list(refusals(text)), [], text)

    def test_the_remedy_has_flags_too(self):
        for text in ('return unsupported("--one is refused; leave --two out of it");', 'return invalid_argument("x is wrong; lower --one or --two");'):
            self.assertEqual(len(list(refusals(text))), 1, text)

    def test_flags_may_be_named_when_the_program_runs(self):
        for text in ('return invalid_argument(std::string(given.flag) + " and a list in " + kFlag + " differ");',
                     'return unsupported(engine_flag(*field) + " is for --two");', 'return unsupported(flag + " needs a file");'):
            self.assertEqual(len(list(refusals(text))), 1, text)
        for text in ('return invalid_argument(flag + " must be at least 1");', "return invalid_argument(flags);", 'add_flag("a", flag + kFlag);'):
            self.assertEqual(list(refusals(text)), [], text)

    def test_two_features_meet_above_compat(self):
        for text in FEATURES:
            self.assertEqual(len(list(refusals(text, True, True))), 1, text)
            self.assertEqual(list(refusals(text)), [], text)
            for folder in ("src/engine", "src/serve", "src/sched", "src/draft", "src/model", "apps"):
                self.assertEqual(len(list(faults({folder + "/a.cpp": text}, {}))), 1, folder)
        for text in ('return unsupported("drafts of this kind are not made; use adapters");', 'log("recurrent layers keep no FP8 KV cache");',
                     'return invalid_argument("an adapter and a draft are missing");'):
            self.assertEqual(list(refusals(text, True, True)), [], text)

    def test_a_command_says_what_its_own_flag_needs(self):
        self.assertEqual(list(refusals('return invalid_argument("--matrix needs a file");', False)), [])
        self.assertEqual(len(list(refusals(MET[0], False))), 1)
        text = 'return invalid_argument("--matrix needs a file");'
        self.assertEqual(len(list(faults({"apps/a.cpp": text, "src/kv/a.cpp": text}, {}))), 1)

    def test_what_python_raises_is_read(self):
        for text in ('raise ValueError("there is no tokenizer: the engine was made with skip_tokenizer_init")', 'raise ValueError(f"--one {x} with --two")',
                     'if x:\n    raise NotImplementedError(\n        f"adapters {name!r} have no"\n        " states of layers"\n    ) from error'):
            self.assertEqual(len(list(faults({"python/foretoken/a.py": text}, {}))), 1, text)
        for text in ('raise ValueError("a LoRARequest needs lora_name")', "raise", "raise error", '"""the engine has no tokenizer"""',
                     'x = "has no tokenizer"'):
            self.assertEqual(list(faults({"python/foretoken/a.py": text}, {})), [], text)

    def test_all_folders_but_those_apart_are_read(self):
        read = {name.rpartition("/")[0] for name in sources()}
        for folder in ("src/config", "src/compat"):
            self.assertNotIn(folder, read)
        for folder in ("src/kv", "src/spec", "src/text", "src/serve/fields", "src/hub", "src/gguf", "apps/options", "apps", "apps/bench", "python/src", "python/foretoken"):
            self.assertIn(folder, read)
        self.assertFalse([name for name in sources() if name.startswith("apps/bench/bench_serve")])

    def test_what_no_one_tells_compat_is_named(self):
        fields = fields_of("struct Other {\n  int z = 0;\n};\nstruct Combination {\n  const T* a = nullptr;  // b = 1;\n"
                                       "  std::optional<int> c = {};  // of d\n  Fact e = {};\n  std::string f = {};\n  int g = 0;\n  Fact h = {};\n};\n", "Combination")
        self.assertEqual(fields, ["a", "c", "e", "f", "g", "h"])
        texts = ("compat({.a = x, .c = 1});", "parts->e = true; c.f.clear();", "if (c.g == 1 && c.h) return;")
        self.assertEqual(never_told(fields, texts), ["g", "h"])
        self.assertEqual(never_asked(fields, ["return c.a && (*c.c).*rule.need;", "{&LayerNeeds::e, c->f}", "g, h"]), ["g", "h"])

    def test_the_line_is_the_calls(self):
        self.assertEqual([line for line, _ in refusals('\n\nunsupported("--one with --two");')], [3])

    def test_an_exception_is_of_its_file_and_is_used(self):
        sources = {"src/x/a.cpp": 'unsupported("--one with --two");'}
        self.assertEqual(len(list(faults(sources, {}))), 1)
        self.assertEqual(list(faults(sources, read_exceptions(["# why", "src/x/a.cpp: with: a test"]))), [])
        self.assertEqual(len(list(faults(sources, read_exceptions(["src/x/b.cpp: with: a test"])))), 2)
        with self.assertRaises((AssertionError, ValueError)):
            read_exceptions(["src/x/a.cpp: with"])


if __name__ == "__main__":
    unittest.main()
