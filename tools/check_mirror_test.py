#!/usr/bin/env python3
"""What tools/check_mirror.py finds and what it lets pass, on paths and texts made up for it."""

import unittest

from check_mirror import faults, read_exceptions, test_of

INCLUDE = '#include "kernels/rows/a.h"\n'
HEADER, TEST = "src/kernels/rows/a.h", "tests/kernels/rows/a_test.cpp"


class Mirror(unittest.TestCase):
    def meet(self, tests, words, lines=(), headers=(HEADER,)):
        found = list(faults(headers, tests, read_exceptions(lines)))
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_a_header_without_test_is_found(self):
        self.meet({}, f"create {TEST}")
        self.meet({"tests/kernels/a_test.cpp": INCLUDE + "TEST(A, B) {}"}, f"create {TEST}")

    def test_a_file_that_tests_nothing_is_found(self):
        self.meet({TEST: INCLUDE}, "lacks a TEST")
        self.meet({TEST: INCLUDE + "// TEST(A, B) {}"}, "lacks a TEST")
        self.meet({TEST: "TEST(A, B) {}"}, "lacks an #include")
        self.meet({TEST: "// " + INCLUDE + "TEST(A, B) {}"}, "lacks an #include")

    def test_a_test_of_any_kind_passes(self):
        for kind in ("TEST(", "TEST_F(", "TEST_P(", "TYPED_TEST("):
            self.assertEqual(list(faults([HEADER], {TEST: INCLUDE + kind + "A, B) {}"}, {})), [])

    def test_parts_of_a_room_are_tested_in_it(self):
        for part in ("cpu", "cuda"):
            self.assertEqual(test_of(f"src/kernels/rows/{part}/a.h"), TEST)
        self.assertEqual(test_of("src/group/mpi/link.h"), "tests/group/link_test.cpp")

    def test_exceptions_are_exact(self):
        self.assertEqual(list(faults([HEADER], {}, read_exceptions(["# why", HEADER + ": plain data"]))), [])
        self.meet({}, "without a reason", [HEADER + ":"])
        self.meet({TEST: INCLUDE + "TEST(A, B) {}"}, "delete the line", [HEADER + ": plain data"])
        self.meet({}, "delete the line", [HEADER + ": plain data"], [])


if __name__ == "__main__":
    unittest.main()
