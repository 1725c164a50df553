#!/usr/bin/env python3
"""What tools/check_refusals.py finds and what it lets pass, on sources made up for it."""

import unittest

from check_refusals import faults, read_exceptions, refusals


class Refusals(unittest.TestCase):
    def meet(self, text):
        self.assertEqual(len(list(refusals(text))), 1, text)

    def pass_by(self, text):
        self.assertEqual(len(list(refusals(text))), 0, text)

    def test_two_parts_of_an_engine_meet(self):
        self.meet('return unsupported("--enable-dbo with --pipeline-parallel-size is not there; leave one out");')
        self.meet('return invalid_argument("--flex-mask " + text + " is not read by --attention-backend " + name);')
        self.meet('return unsupported(name + ": heads are not divided " +\n  "among ranks; lower it");')
        self.meet('return fault("a and b exclude each other (\\"c\\")" + f(x));')
        self.meet('return unsupported("PARD is not built where " + whose + " keeps states");')

    def test_one_value_passes(self):
        self.pass_by('return invalid_argument("--max-model-len " + n + " exceeds 5; lower it");')
        self.pass_by('return unsupported("--dtype x is not known; use --dtype auto, or --quantization fp8");')
        self.pass_by('return FT_CHECK("--one and --two together");')

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
