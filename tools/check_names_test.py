#!/usr/bin/env python3
"""What tools/check_names.py finds and what it lets pass, on sources made up for it."""

import unittest

from check_names import definitions, faults, header_faults

INSIDE = "namespace foretoken {\nnamespace {\n%s\n}  // namespace\n}  // namespace foretoken\n"
BESIDE = "namespace foretoken {\n%s\n}\n"


def found(a, b, place="src/x/"):
    return len(list(faults({place + "a.cpp": a, place + "b.cpp": b})))


class Names(unittest.TestCase):
    def meet(self, one, other, inside=INSIDE):
        self.assertEqual(found(inside % one, INSIDE % other), 1, (one, other))

    def pass_by(self, one, other, inside=INSIDE):
        self.assertEqual(found(inside % one, INSIDE % other), 0, (one, other))

    def test_equal_names_meet_whatever_they_are(self):
        self.meet("std::string dump(const json& value) { return {}; }", "std::string dump(int x) { return {}; }")
        self.meet("template <class T, int N = (1 > 0)>\nstd::map<int, T> f(T (*a)[N]) noexcept(true) { return {}; }",
                  "[[nodiscard]] int f();\nint f() { return 1; }")
        self.meet("constexpr int kSize = 3;", "const std::array<int, 2> kSize = {1, 2};")
        self.meet("struct Part {\n  int dump;\n};", "class Part final : public Base<int> {};")
        self.meet("enum class Kind { kA };", "using Kind = int;")
        self.meet("enum Kind { kA, kB = 2 };", "constexpr int kB = 1;")
        self.meet("using Row = std::vector<int>;", "using Row = std::vector<float>;")
        self.meet("TEST(Suite, Test) {}", "TEST_F(Suite, Test) {}")
        self.meet("thread_local int counter{0};", "void counter(int) {}")
        self.meet("constexpr int kA = f(1, 2), kB = 2;", "const std::array<int, 2> kB = {1, 2};")
        self.meet("// A kA, c = 1 of the room's.\nconstexpr int kA = 1, kB = 2;", "constexpr int kB = 2, c = 1;")
        self.meet("int a[] = {1, 2}, *b = nullptr, c{3};", "int c = 1, d;")

    def test_what_the_whole_namespace_sees_counts(self):
        self.meet("int f(int x) { return x; }", "int f(float x) { return 1; }", BESIDE)
        self.meet("static int f(int x) { return x; }", "int f(float x) { return 1; }", INSIDE)
        self.assertEqual(found(BESIDE % "static int f() { return 1; }", BESIDE % "int f(int) { return 1; }"), 1)
        self.assertEqual(found(BESIDE % "struct Part { int x; };", BESIDE % "struct Part { int x; };"), 1)
        self.assertEqual(found(BESIDE % "int f(int) { return 1; }", BESIDE % "int f(char) { return 1; }"), 0)
        self.assertEqual(found("#define SIZE 3\n", "#define SIZE 4\n"), 1)
        self.assertEqual(found("#define SIZE 3\n#undef SIZE\n", "#define SIZE 4\n"), 0)

    def test_what_does_not_meet(self):
        self.pass_by("using json = nlohmann::json;", "using json =\n    nlohmann::json;")
        self.pass_by("namespace fs = std::filesystem;", "namespace fs = std::filesystem;")
        self.pass_by("using std::max;", "using std::max;")
        self.pass_by("struct A;\nclass B;", "struct A;\nclass B;")
        self.pass_by("void A::f() {}\nA::A() : a_{1}, b_(2) {}", "void B::f() {}\nB::~B() = default;")
        self.pass_by("bool operator==(const A& a, const A& b) { return true; }",
                     "bool operator==(const B& a, const B& b) { return true; }")
        self.pass_by("void PrintTo(const A& a, std::ostream* out) {}",
                     "void PrintTo(const B& a, std::ostream* out) {}")
        self.pass_by("void f() {\n  int dump = 1;\n  struct Part {};\n}", "void dump() {}\nstruct Part {};")
        self.pass_by("const auto kA = f<int, B>(1, b = 2), kC = [](int x, int b = 1) { return b; };", "int b, B;")
        self.pass_by("// int f() {\n/* int f(); { */", "int f() { return '}' + '{' + 1'000; }")
        self.assertEqual(found(INSIDE % "int f() { return 1; }", INSIDE.replace("foretoken", "other") % "int f();"), 0)

    def test_texts_do_not_confuse(self):
        text = INSIDE % ('const char* kText = R"x(\n} { "a" // )x";\nint f(const S& s = {1, {2}}) { return "}{"[0]; }\n'
                         "const auto kCall = [](int a) { return a; };\nint kList[] = {1, 2}, kMore;\nvoid g() {}")
        self.assertEqual([name for _, name, _, _ in definitions(text)], ["kText", "f", "kCall", "kMore", "kList", "g"])
        self.assertEqual({scope for scope, _, _, _ in definitions(text)}, {"foretoken::{}"})

    def test_rooms_are_apart(self):
        self.assertEqual(len(list(faults({"src/x/a.cpp": INSIDE % "int f() { return 1; }",
                                          "src/y/a.cpp": INSIDE % "int f() { return 1; }"}))), 0)

    def test_a_name_of_a_namespace_stands_in_one_header(self):
        def told(one, other, inside=BESIDE):
            return list(header_faults({"src/x/a.h": inside % one, "src/y/b.h": BESIDE % other}))

        for one, other in (("struct Row {};", "class Row : public A {};"), ("enum class Kind { kA };", "using Kind = int;"),
                           ("inline constexpr int kSize = 1;", "inline constexpr int kSize = 2;"), ("struct part {};", "int part(int x);"),
                           ("using Row = int;", "using Row = int;")):
            self.assertEqual(len(told(one, other)), 1, one)
            self.assertEqual(told(one, other, BESIDE.replace("foretoken", "foretoken::http")), [])
        self.assertEqual(len(list(header_faults({"src/x/a.h": "#define FT_A 1\n", "apps/b.h": "#define FT_A 2\n"}))), 1)
        for one, other in (("int f(int x);", "int f(float x);"), ("struct Row;", "struct Row {};"), ("class Row;", "class Row;")):
            self.assertEqual(told(one, other), [], one)


if __name__ == "__main__":
    unittest.main()
