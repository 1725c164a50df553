#!/usr/bin/env python3
"""Fails on functions of more than 50 lines, or with more than 6 parameters, in src/, include/ and apps/, on Python and
Rust of more than 50 lines anywhere, and on C++ of more than 80 lines in tests, tools and bench.

A function is counted from the first line of its declaration, below its comment, to its closing brace: lambdas
and types inside of it count within it, and a lambda that stands in a table or initialises a constant is a
function of its own. Tables in initialisers are data, and so are enumerations. A macro is counted like
a function.

Device code in folders cuda/ may have 60: what a kernel keeps in registers across its loops would become
arguments by reference of a function that is split off, and where the compiler does not inline that one they
go through local memory.

A decorator does not count, nor does the comment at the top of a Python function; functions inside of it do.

tools/function_exceptions.txt lists those that are larger all the same, each as "path: name: reason". One that
is no longer too large, or is gone, is an error.
"""

import ast
import pathlib
import re
import sys

from cpp_text import DIRECTIVE, code_of
from tree import ROOT, read_exceptions

EXCEPTIONS = ROOT / "tools" / "function_exceptions.txt"
FOLDERS = ("src", "include", "apps")
# What tests and measures, in which a scene may be long and has a number for each of its sizes; Python and Rust are held to
# the bound of all others.
TEST_FOLDERS = ("tests", "tools", "bench", "python", "examples", "packaging", "text-crate")
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".inc", ".hpp", ".inl", ".cc"}
SCRIPTS = {".py", ".rs"}
MAX_LINES, MAX_DEVICE_LINES, MAX_TEST_LINES, MAX_PARAMETERS = 50, 60, 80, 6
DEVICE = re.compile(r"\b__(?:global|device)__\b")

PAIRS = {"<>": re.compile(r"[<>]|\([^()]*\)"), "()": re.compile(r"[()]"), "{}": re.compile(r"[{}]")}
MARK = re.compile(r"[{}();]|(?<!:):(?!:)")
CONDITION = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b")
MACRO = re.compile(r"\s*#\s*define\s+(\w+)")
SPACE = re.compile(r"^(?:inline\s+)?namespace\b[^=(]*$|^extern\s*\"\"\s*$")
TYPE = re.compile(r"^(?:typedef\s+|friend\s+)?(class|struct|union|enum)\b")
ACCESS = re.compile(r"^(?:public|private|protected)\s*$")
OPERATOR = re.compile(r"\boperator\s*(?:\(\s*\)|\[\s*\]|\"\"\s*\w+|[^\s\w(]+|\w[\w:<>*& ]*(?=\())")
ATTRIBUTE = re.compile(r"\[\[.*?\]\]", re.S)
NOT_PARAMETERS = re.compile(r"\b(?:__launch_bounds__|alignas|decltype|noexcept|explicit)\s*\((?:[^()]|\([^()]*\))*\)")
CALLED_MACRO = re.compile(r"[A-Z][A-Z0-9_]+\s*\([^()]*\)\s*(?=template\b|[A-Za-z_]\w*)")
# What may stand between the parameters of a function and its body.
TAIL = re.compile(r"(?:\b(?:const|noexcept|override|final|mutable|try|volatile)\b|&&?|\s)*$")
LAMBDA = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\s*(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?"
                    r"\s*(?:(?:mutable|noexcept|constexpr|__device__|__host__)\s*)*(?:->\s*[\w:<>,*&\s]+)?$")


def past_brackets(text, at, pair):
    """Where the bracket at `at` is closed."""
    depth = 0
    for found in PAIRS[pair].finditer(text, at):
        depth += {pair[0]: 1, pair[1]: -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    return len(text)


def without_template(head):
    """What follows `template <...>`, `requires (...)`, attributes and calls of macros that need no semicolon."""
    head = ATTRIBUTE.sub(" ", head).strip()
    while match := CALLED_MACRO.match(head):
        head = head[match.end():]
    while match := re.match(r"\s*template\s*(?=<)", head):
        head = head[past_brackets(head, match.end(), "<>"):].lstrip()
    if match := re.match(r"requires\s*(?=\()", head):
        head = head[past_brackets(head, match.end(), "()"):].lstrip()
    return head


def outside_parentheses(head):
    """The head, and in place of what stands in parentheses "()"."""
    parts, depth = [], 0
    for piece in re.split(r"([()])", head):
        if piece == "(":
            parts += ["("] if depth == 0 else []
            depth += 1
        elif piece == ")":
            depth -= 1
            parts += [")"] if depth == 0 else []
        elif depth == 0:
            parts.append(piece)
    return "".join(parts)


def kind_of(head):
    """What a block behind `head` is at the scope of a namespace or class: "space", "type", "data" or "function"."""
    head = without_template(head)
    if SPACE.match(head):
        return "space"
    plain = outside_parentheses(OPERATOR.sub("operator_", head))
    found = TYPE.match(plain)
    after = plain.rpartition(")")[2]
    if found and not (")" in plain and TAIL.match(after)):
        return "data" if found[1] == "enum" else "type"
    if "=" in re.sub(r"[=!<>]=", "", plain) or "(" not in plain:
        return "data"
    if TAIL.match(after) or after.lstrip().startswith(("->", "requires", "const ->", "noexcept ->")):
        return "function"
    # A list of members behind the parameters: one in braces is no body.
    if re.search(r"\)[^()]*?(?<!:):(?!:)", plain):
        return "data" if re.search(r"[\w>]\s*$", plain) else "function"
    return "data"


def name_of(head):
    """The name of a function, with its class where the head has it."""
    head = without_template(head)
    plain = outside_parentheses(OPERATOR.sub(lambda found: re.sub(r"[\s(]", "", found[0]).replace(")", ""), head))
    plain = re.sub(r"\b(?:__launch_bounds__|alignas|decltype|__attribute__|explicit|noexcept)\s*\(\)", " ", plain)
    found = re.search(r"([~\w:<>, ]*?[~\w]+|operator\S+)\s*\(\)", plain)
    return re.sub(r"<.*>", "", found[1].split()[-1]) if found else plain.split()[-1] if plain.split() else "?"


def num_parameters(head):
    """How many parameters a function has, by its head."""
    plain = OPERATOR.sub("operator_", NOT_PARAMETERS.sub(" ", without_template(head)))
    begin = plain.find("(")
    if begin < 0:
        return 0
    parameters = plain[begin + 1:past_brackets(plain, begin, "()") - 1]
    if not parameters.strip():
        return 0
    depth, count = 0, 1
    for mark in re.findall(r"->|[(){}<>\[\],]", parameters):
        depth += 1 if mark in "({<[" else -1 if mark in ")}>]" else 0
        count += mark == "," and depth == 0
    return count


def balanced_branches(code):
    """Blanks the later branches of an #if whose first one opens braces that it does not close."""
    stack, blanks = [], []
    for found in DIRECTIVE.finditer(code):
        condition = CONDITION.match(found[0])
        if not condition:
            continue
        word = condition[1]
        if word.startswith("if"):
            stack.append([found.end(), False, None])
        elif stack:
            begin, open_first, blank_from = stack[-1]
            if blank_from is None and not open_first:
                part = DIRECTIVE.sub("", code[begin:found.start()])
                open_first = part.count("{") != part.count("}")
            if word == "endif":
                stack.pop()
                if blank_from is not None:
                    blanks.append((blank_from, found.start()))
            else:
                stack[-1] = [found.end(), open_first, found.end() if open_first and blank_from is None else blank_from]
    for begin, end in blanks:
        code = code[:begin] + re.sub(r"[^\n]", " ", code[begin:end]) + code[end:]
    return code


class Functions:
    """Goes over a source; `found` has (line, length, name, whether it runs on a device, parameters) of its functions."""

    def __init__(self, text):
        code = balanced_branches(code_of(text))
        self.found = [(self.line(code, match.start()), match[0].count("\n") + 1, macro[1], False, 0)
                      for match in DIRECTIVE.finditer(code) if (macro := MACRO.match(match[0]))]
        self.code = DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), code)
        self.scopes, self.start, self.parens, at = [], 0, 0, 0
        while match := MARK.search(self.code, at):
            at = self.at_mark(match)
        self.found.sort()

    @staticmethod
    def line(text, at):
        return text.count("\n", 0, at) + 1

    def at_mark(self, match):
        mark, at = match[0], match.end()
        inside_data = bool(self.scopes) and self.scopes[-1] == "data"
        if mark == "{":
            return self.open(match.start(), inside_data)
        if mark == "}":
            if self.scopes and self.scopes.pop() != "data":
                self.start, self.parens = at, 0
        elif mark == "(" and not inside_data:
            self.parens += 1
        elif mark == ")" and not inside_data:
            self.parens = max(0, self.parens - 1)
        elif mark == ";" and not inside_data and self.parens == 0:
            self.start = at
        elif mark == ":" and not inside_data and ACCESS.match(self.code[self.start:match.start()].strip()):
            self.start = at
        return at

    def open(self, at, inside_data):
        head = self.code[self.start:at]
        if inside_data or self.parens > 0:
            kind = "lambda" if LAMBDA.search(self.code[max(self.start, at - 2000):at]) else "data"
        else:
            kind = kind_of(head)
            if kind == "data" and LAMBDA.search(head):
                kind = "lambda"
        if kind not in ("function", "lambda"):
            self.scopes.append(kind)
            self.start = at + 1 if kind != "data" else self.start
            return at + 1
        end = past_brackets(self.code, at, "{}")
        begin = at - len(head.lstrip())
        while match := CALLED_MACRO.match(self.code, begin, at):
            begin = match.end()
        name = name_of(head)
        if kind == "lambda":
            begin = at - len(LAMBDA.search(self.code[max(self.start, at - 2000):at])[0])
            name = (re.findall(r"(\w+)\s*(?:\[\s*\w*\s*\]\s*)?[={(]", head) or ["?"])[-1] if inside_data or self.parens else \
                (re.findall(r"(\w+)\s*=", head) or ["?"])[0]
        else:
            self.start, self.parens = end, 0
        lines = self.code.count("\n", begin, end) + 1
        parameters = num_parameters(head) if kind == "function" else 0
        self.found.append((self.line(self.code, begin), lines, name, bool(DEVICE.search(head)), parameters))
        return end


RUST_APART = re.compile(r"//[^\n]*|/\*.*?\*/|\bb?r(#*)\".*?\"\1|b?\"(?:\\.|[^\"\\])*\"|b?'(?:\\[^']+|[^'\\])'", re.S)
RUST_FUNCTION = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))? +)?(?:(?:const|async|unsafe|extern) +(?:_+ +)?)*fn +(\w+)", re.M)


def functions_of_rust(text):
    code = RUST_APART.sub(lambda found: re.sub(r"[^\n]", "_", found[0]), text)
    for found in RUST_FUNCTION.finditer(code):
        begin, end = code.find("{", found.end()), code.find(";", found.end())
        if begin < 0 or 0 <= end < begin and "[" not in code[found.end():end]:
            continue
        yield code.count("\n", 0, found.start()) + 1, code.count("\n", found.start(), past_brackets(code, begin, "{}")) + 1, found[1], False, 0


def functions_of_python(text):
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        told = node.body[0].end_lineno - node.body[0].lineno + 1 if ast.get_docstring(node, False) else 0
        yield node.lineno, node.end_lineno - node.lineno + 1 - told, node.name, False, 0


def functions(text, suffix=".cpp"):
    """(line, number of lines, name, whether it runs on a device, parameters) of each function and macro of a source;
    no parameters are counted in Python, where they have names and usual values, nor in Rust."""
    if suffix == ".py":
        return sorted(functions_of_python(text))
    return sorted(functions_of_rust(text)) if suffix == ".rs" else Functions(text).found


def is_of_tests(path):
    """C++ alone: a script is held to one bound wherever it is, and python/src is a part of the library."""
    own = path.startswith("python/src/") or pathlib.PurePath(path).suffix in SCRIPTS
    return not own and path.split("/")[0] in TEST_FOLDERS


def max_lines_of(path, on_device):
    if is_of_tests(path):
        return MAX_TEST_LINES
    return MAX_DEVICE_LINES if on_device and "cuda" in path.split("/") else MAX_LINES


def faults(sources, exceptions):
    """The sentences about sources by their path."""
    unused = dict(exceptions)
    for path, text in sources.items():
        for line, lines, name, on_device, parameters in functions(text, pathlib.PurePath(path).suffix):
            most = max_lines_of(path, on_device)
            parameters = 0 if is_of_tests(path) else parameters
            if lines <= most and parameters <= MAX_PARAMETERS:
                continue
            unused.pop((path, name), None)
            if (path, name) in exceptions:
                continue
            if lines > most:
                yield f"{path}:{line}: {name} has {lines} lines, the limit is {most}; cut it by its steps"
            if parameters > MAX_PARAMETERS:
                yield f"{path}:{line}: {name} has {parameters} parameters, the limit is {MAX_PARAMETERS}; make a struct of them"
    for path, name in sorted(unused):
        yield f"tools/function_exceptions.txt: {path}: {name} is not too large any more, or is gone; delete the line"


def main():
    sources = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for folder in FOLDERS + TEST_FOLDERS
               for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES | SCRIPTS and "target" not in path.parts}
    exceptions = read_exceptions(EXCEPTIONS.read_text(encoding="utf-8").splitlines())
    found = list(faults(sources, exceptions))
    print("\n".join(found) or f"functions: {len(sources)} sources, none over {MAX_LINES} lines ({MAX_TEST_LINES} in tests) or {MAX_PARAMETERS} parameters but {len(exceptions)} exceptions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
