#!/usr/bin/env python3
"""What tools/check_unused.py finds and what it lets pass, on sources made up for it."""

import unittest

from check_unused import Names, faults, read_exceptions

DECLARED = ("void lost(int a);", "std::span<const int> lost();", "class A {\n public:\n  int lost() const { return x_; }\n};", "const A& lost(A* b);",
            "template <class T, int N = 2>\nT lost(const std::vector<T>& in) { return {}; }", "[[nodiscard]] static Result<A> lost(std::function<void(int)> f);",
            "struct A {\n  virtual int lost() const = 0;\n};", "FT_HD inline int32_t lost(int32_t a, int32_t b) { return a; }",
            "__attribute__((noinline)) float lost(float a);", "A::B<int>::C lost();", "int x = 1;\nstd::unique_ptr<A> lost(int b);")
CALLS = ("int f() { return lost(1); }", "void f() { if (a && lost(1)) return; }", "const int x = 2 * lost(1);", "void f() { g(*lost(1)); }", "void f() { a.lost(); }",
         "void f() { a->lost(); }", "const A* const kAll[] = {&lost(), &lost()};", "constexpr Row kRows[] = {{\"a\", lost}};", "void f() { visit(&A::lost); }",
         "void f() { return x ? 0 : ~lost(1); }", "void f() { V::template lost<2>(1); }", "void f() { lost(1); }", "int f(int a = lost());",
         "#define FT_X(a) lost(a)", "void f() { for (const int a : lost()) g(a); }", "A::A() : x_(1), y_(lost()) {}", "void f() { throw lost(1); }")
NO_CALLS = ("// lost(1)", 'const char* kText = "lost(1)";', "int A::lost() const { return 1; }", "void lost(int a) { g(a); }",
            "std::span<const A> b::lost() { return kRows; }")


def found(header, other, path="src/x/b.cpp"):
    return list(faults({"src/x/a.h": header + "\n", path: other + "\n"}, {}))


class Unused(unittest.TestCase):
    def test_what_nothing_calls_is_found(self):
        for header in DECLARED:
            self.assertEqual(len(found(header, "int other;")), 1, header)
            self.assertIn("calls lost", found(header, "int other;")[0])
        for other in NO_CALLS:
            self.assertEqual(len(found(DECLARED[0], other)), 1, other)

    def test_each_call_counts(self):
        for other in CALLS:
            for path in ("src/x/b.cpp", "apps/b.cpp", "python/src/b.cpp", "src/x/cuda/b.cu", "src/x/b.def"):
                self.assertEqual(found(DECLARED[0], other, path), [], other)

    def test_the_line_is_the_declarations(self):
        self.assertTrue(found("int x;\n\n// Says.\nint lost(\n    int a);", "")[0].startswith("src/x/a.h:4: "))

    def test_headers_of_the_public_api_are_for_others(self):
        self.assertEqual(list(faults({"include/foretoken/a.h": "void lost();\n"}, {})), [])

    def test_names_of_no_functions_pass(self):
        self.assertEqual(Names("int f(int a) { if (a) return sizeof(a); }\n").declared, {"f": 1})

    def test_an_exception_has_a_reason_and_is_used(self):
        sources = {"src/x/a.h": "void lost();\n"}
        self.assertEqual(list(faults(sources, read_exceptions(["# why", "src/x/a.h: lost: a library's"]))), [])
        self.assertEqual(len(list(faults(sources, read_exceptions(["src/x/a.h: found: a library's"])))), 2)
        self.assertEqual(len(list(faults({"src/x/a.h": "int x;\n"}, read_exceptions(["src/x/a.h: lost: a library's"])))), 1)
        with self.assertRaises(ValueError):
            read_exceptions(["src/x/a.h: lost: "])


if __name__ == "__main__":
    unittest.main()
