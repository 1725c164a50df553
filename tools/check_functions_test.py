#!/usr/bin/env python3
"""What tools/check_functions.py finds and what it lets pass, on sources made up for it."""

import unittest

from check_functions import MAX_DEVICE_LINES, MAX_LINES, MAX_TEST_LINES, faults, functions, read_exceptions

CALL, ROW = "  f(a);\n", "  {1, \"x\"},\n"
BODY = "{\n" + CALL * MAX_LINES + "}"
HEADS = {
    "int f(int a) ": "f", "void A::f() const noexcept ": "A::f", "A::A(int a) : a_{1}, b_(2), c_{f({1})}\n": "A::A",
    "A::~A() ": "A::~A", "template <class T, int N = (1 > 0)>\nauto f(T (&a)[N]) -> std::vector<T> ": "f",
    "bool operator==(const A& a, const A& b) ": "operator==", "int A::operator()(int x) const ": "A::operator",
    "template <class T>\n  requires(N > 2)\nT f(A a = {}, B b = B{1, 2}) ": "f", "TEST(A, B) ": "TEST",
    "__global__ void __launch_bounds__(128) f(int a) ": "f", "static const auto kCall = [=](int a) mutable -> int ": "kCall",
    "FT_DECLARE(1, 2)\n\ntemplate <int N>\nint f() ": "f", "#define FT_X(a) \\\n  g(a)\n[[nodiscard]] int f() ": "f",
    "struct X* f(int a) ": "f", "A::operator bool() const ": "A::operator", "std::map<int, A<B>> f(int a) && ": "f",
    "// } { (\nint f(char c = '{', const char* s = \"}{(\", const char* r = R\"x( } )\" { )x\") ": "f",
}
PLACES = ("%s\n", "namespace a::b {\nnamespace {\nint x;\n%s\n}\n}\n", "extern \"C\" {\n%s\n}\n",
          "class alignas(16) B final : public A<int> {\n public:\n  int x = 3, y{4};\n  enum class K { kA, kB };\n\n private:\n%s\n};\n",
          "template <class T>\nstruct B {\n  struct C {\n%s\n  };\n};\n")
SHORT = (
    "constexpr Row kTable[] = {\n" + ROW * 90 + "};\n", "const std::array<int, 3> kTable{\n" + ROW * 90 + "};\n",
    "enum class A : uint8_t {\n" + "  kA,\n" * 90 + "};\n", "struct A {\n" + "  int f() { return 1; }\n" * 90 + "};\n",
    "namespace a {\n" + "int f() { return 1; }\n" * 90 + "}\n", "/* int f() {\n" + CALL * 90 + "} */\n",
    "const char* kText = R\"(int f() {\n" + CALL * 90 + "})\";\n",
    "#ifdef A\nint f(int a) {\n#else\nint f(long a) {\n#endif\n}\n" + "int g() { return 1; }\n" * 90,
    "int f(int a) {\n" + CALL * (MAX_LINES - 2) + "}\n",
    "const Rows kRows = {\n" + "  {[](int a) { return a; }},\n" * 90 + "};\n", "int x = 1'000'000;\nint f(int a);\n" * 90)


def found(text, path="src/x/a.cpp"):
    return list(faults({path: text}, {}))


class Functions(unittest.TestCase):
    def test_each_form_is_found_wherever_it_stands(self):
        for head, name in HEADS.items():
            for place in PLACES:
                text = place % (head + BODY)
                told = found(text)
                self.assertEqual(len(told), 1, (text, told))
                self.assertIn(f": {name}", told[0].partition(" has ")[0], text)

    def test_what_is_no_long_function_passes(self):
        for text in SHORT:
            self.assertEqual(found(text), [], text)
            self.assertEqual(found(text + "int f() " + BODY), found("\n" * text.count("\n") + "int f() " + BODY), text)

    def test_what_stands_inside_counts_within(self):
        part = "  const auto f = [&](int a) {\n" + CALL * 20 + "  };\n  struct A { int x; };\n  const T t = {\n" + ROW * 5 + "  };\n"
        self.assertEqual(found("int g() {\n" + part + "}\n"), [])
        told = found("int g() {\n" + part * 2 + "}\n")
        self.assertEqual(len(told), 1)
        self.assertIn("src/x/a.cpp:1: g has ", told[0])

    def test_lambdas_of_tables_and_macros_are_functions(self):
        table = "constexpr Row kTable[] = {\n    {.name = \"a\", .make = [](const Part& a) " + BODY + "},\n" + ROW * 9 + "};\n"
        self.assertEqual(len(found(table)), 1)
        self.assertIn("src/x/a.cpp:2: make has ", found(table)[0])
        self.assertEqual(len(found("#define FT_X(a) \\\n" + "  f(a); \\\n" * MAX_LINES + "\nint x;\n")), 1)
        self.assertEqual(len(found("const Call kCall(1, [](int a) " + BODY + ");\n")), 1)

    def test_the_first_line_is_below_the_comment(self):
        text = "int x;\n\n// Says\n// why.\ntemplate <class T>\nint f(int a) " + BODY + "\n"
        self.assertEqual([(line, lines) for line, lines, *_ in functions(text)], [(5, MAX_LINES + 3)])

    def test_many_parameters_are_found(self):
        for text in ("void f(int a, int b, int c, int d, int e, int f, %s) {}", "A::A(int a, int b, int c, int d, int e, int f, %s) : a_{1} {}",
                     "template <class A, class B>\n__global__ void __launch_bounds__(128, 2) f(int a, int b, int c, int d, int e, int f, %s) {}"):
            for last in ("int g", "std::map<int, int> g", "int g = f(1, 2)", "void (*g)(int, int)", "A g = {1, 2}"):
                self.assertEqual(len(found(text % last)), 1, text % last)
            self.assertEqual(found((text % "").replace(", )", ")")), [])
        for text in ("void f(std::map<int, int> a, A b = {1, 2, 3}, int c = g(1, 2, 3)) {}", "bool A::operator()(int a, int b) const {}",
                     "int x = f(1, 2, 3, 4, 5, 6, 7);\nint f() {}", "void f() { g(1, 2, 3, 4, 5, 6, 7, 8); }"):
            self.assertEqual(found(text), [], text)

    def test_device_code_has_a_bound_of_its_own(self):
        for lines, count in ((MAX_DEVICE_LINES - 2, 0), (MAX_DEVICE_LINES - 1, 1)):
            text = "template <int N>\n__global__ void f(int a) {\n" + CALL * (lines - 1) + "}\n"
            self.assertEqual(len(found(text, "src/kernels/x/cuda/a.cu")), count)
            self.assertEqual(len(found(text, "src/kernels/x/a.cpp")), 1)
            self.assertEqual(len(found(text.replace("__global__ ", ""), "src/kernels/x/cuda/a.cu")), 1)

    def test_what_tests_may_be_longer(self):
        for lines, count in ((MAX_TEST_LINES - 2, 0), (MAX_TEST_LINES - 1, 1)):
            text = "void f(int a, int b, int c, int d, int e, int g, int h) {\n" + CALL * lines + "}\n"
            for folder in ("tests", "tools", "bench"):
                self.assertEqual(len(found(text, folder + "/x/a.cpp")), count)
        self.assertEqual(len(found("void f(int a) {\n" + CALL * MAX_LINES + "}\n", "src/x/a.cpp")), 1)

    def test_scripts_are_held_to_the_bound_of_all(self):
        for lines, count in ((MAX_LINES - 1, 0), (MAX_LINES, 1)):
            for head in ("def f(a):\n", "async def f(a):\n", "class A:\n  @b\n  def f(a):\n"):
                for folder in ("tests", "tools", "bench", "python/foretoken"):
                    self.assertEqual(len(found(head + "    x = 1\n" * lines, folder + "/a.py")), count, head)
        told = 'def f(a):\n    """Says\n' + "    more\n" * 20 + '    """\n'
        self.assertEqual(found(told + "    x = 1\n" * (MAX_LINES - 1), "tools/a.py"), [])
        inside = "def f(a):\n" + "    def g():\n" + "        x = 1\n" * 30 + "    x = 1\n" * 25
        self.assertEqual([line.split(" has ")[0] for line in found(inside, "tools/a.py")], ["tools/a.py:1: f"])

    def test_rust_is_read(self):
        for lines, count in ((MAX_LINES - 2, 0), (MAX_LINES - 1, 1)):
            for head in ("fn f(a: &'a str) -> char {\n", "impl A {\n    pub(crate) fn f<'a>(a: [u8; 4]) -> Result<(), B> {\n",
                         'pub unsafe extern "C" fn f() {\n', "pub const fn f() -> [u8; 4] {\n"):
                body = "    let x = \"}\"; // }\n" + "    let y = '}';\n" * (lines - 1) + "}\n"
                self.assertEqual(len(found(head + body, "text-crate/src/a.rs")), count, head)
        self.assertEqual(found("trait A {\n    fn f(&self);\n}\nconst X: &str = \"\n" + "fn x\n" * 90 + "\";\n", "text-crate/src/a.rs"), [])

    def test_an_exception_has_a_reason_and_is_used(self):
        sources = {"src/x/a.cpp": "int f(int a) " + BODY + "\n"}
        self.assertEqual(list(faults(sources, read_exceptions(["# why", "src/x/a.cpp: f: a table"]))), [])
        self.assertEqual(len(list(faults(sources, read_exceptions(["src/x/a.cpp: g: a table"])))), 2)
        self.assertEqual(len(list(faults({"src/x/a.cpp": "int f();\n"}, read_exceptions(["src/x/a.cpp: f: a table"])))), 1)
        with self.assertRaises(ValueError):
            read_exceptions(["src/x/a.cpp: f: "])


if __name__ == "__main__":
    unittest.main()
