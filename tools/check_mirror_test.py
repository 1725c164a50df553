#!/usr/bin/env python3
"""What tools/check_mirror.py finds and what it lets pass, on paths and texts made up for it."""

import unittest

from check_mirror import declared, faults, read_exceptions, test_of

INCLUDE = '#include "kernels/rows/a.h"\n'
HEADER, TEST = "src/kernels/rows/a.h", "tests/kernels/rows/a_test.cpp"


DECLARES = """// struct Comment {};
struct Args { static constexpr int kOp = 1; };
using Row = int;
#define FT_ROW(x) x
void multiply(Queue& queue,
              const Args& args);
inline int half(int x) {
  other(x);
  std::function<Status(int)> call = nullptr;
  return third(x, Kind::kOther) / 2;
}
enum class Kind { kOne, kTwo };
"""


# A call at the begin of a line looks as a constructor does.
CALLED = {"other"}


class Mirror(unittest.TestCase):
    def meet(self, tests, words, lines=(), headers=(HEADER,)):
        found = list(faults(dict.fromkeys(headers, "void f();"), tests, read_exceptions(lines)))
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
            self.assertEqual(list(faults({HEADER: "void f();"}, {TEST: INCLUDE + kind + "A, B) { f(); }"}, {})), [])

    def test_it_names_what_the_header_declares(self):
        self.assertEqual(declared(DECLARES), {"Args", "kOp", "Row", "FT_ROW", "multiply", "half", "Kind", "kOne", "kTwo"} | CALLED)
        for body in ("", "multiply_other(1);", "// multiply(1);", 'call("multiply");', '\n#include "multiply"\n'):
            found = list(faults({HEADER: DECLARES}, {TEST: INCLUDE + "TEST(A, B) {" + body + "}"}, {}))
            self.assertEqual(len(found), 1, body)
            self.assertIn("names nothing", found[0])
        for name in ("multiply(1)", "Row x", "Args::kOp", "half(2)", "FT_ROW(x)"):
            self.assertEqual(list(faults({HEADER: DECLARES}, {TEST: INCLUDE + "TEST(A, B) {" + name + ";}"}, {})), [], name)

    def test_another_name_is_said(self):
        line = read_exceptions([HEADER + ": by /rows: its route"])
        test = INCLUDE + 'TEST(A, B) { get("/rows"); }'
        self.assertEqual(list(faults({HEADER: DECLARES}, {TEST: test}, line)), [])
        self.assertEqual(len(list(faults({HEADER: DECLARES}, {TEST: test.replace("/rows\")", "/others\")")}, line))), 1)
        self.assertIn("delete the line", next(faults({HEADER: DECLARES}, {TEST: test + " Row x;"}, line)))
        self.assertIn("create", next(faults({HEADER: DECLARES}, {}, line)))
        self.assertIn("lacks a TEST", next(faults({HEADER: DECLARES}, {TEST: INCLUDE + 'get("/rows");'}, line)))

    def test_parts_of_a_room_are_tested_in_it(self):
        for part in ("cpu", "cuda"):
            self.assertEqual(test_of(f"src/kernels/rows/{part}/a.h"), TEST)
        self.assertEqual(test_of("src/group/mpi/link.h"), "tests/group/link_test.cpp")

    def test_exceptions_are_exact(self):
        self.assertEqual(list(faults({HEADER: "void f();"}, {}, read_exceptions(["# why", HEADER + ": plain data"]))), [])
        self.meet({}, "without a reason", [HEADER + ":"])
        self.meet({TEST: INCLUDE + "TEST(A, B) { f(); }"}, "delete the line", [HEADER + ": plain data"])
        self.meet({}, "delete the line", [HEADER + ": plain data"], [])


if __name__ == "__main__":
    unittest.main()
