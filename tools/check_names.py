#!/usr/bin/env python3
"""Fails when two sources of a room define the same name for themselves alone, or two headers the same one for all.

The presets compile several sources of a room in one compiler run (cmake/unity.cmake), so that unnamed
namespaces of one room are one. What is unique in a file must be unique in its folder: functions,
types, constants and aliases of unnamed namespaces, `static` and `constexpr` ones beside them, types
of named namespaces, tests, and macros that are not undefined again. A function of the same name with
other parameters counts, too: a call would take the one that fits better, whichever file it is in. So
does a function of one file beside a name that another file has for itself. Aliases may repeat where
they say the same.

As most of the tree is one namespace (docs/decisions/0041-one-namespace.md), a type, constant, alias or macro of a named namespace
stands in one header of src, include and apps alone; functions may be overloaded.

Two names in different namespaces do not meet. Sources that are always compiled alone (plug-ins,
instruction sets of their own, APART) are passed over.
"""

import collections
import pathlib
import re
import sys

from tree import ROOT

FOLDERS = ("src", "apps", "tests", "tools/dialled")
# As cmake/unity.cmake has them: folders whose sources are compiled one by one.
APART = ("tests/support", "tests/cuda", "tests/e2e", "tests/fuzz")
OWN_FLAGS = re.compile(r"_(avx2|avx512|avxvnni|avx512vnni|avx512bf16|amx)\.cpp$|^src/.*/(cuda|mpi)/")

MARK = re.compile(r"[\"'/#{}();]")
MARK_OF_A_BODY = re.compile(r"[\"'/#{}]")
RAW = re.compile(r'"([^()\s\\]*)\(.*?\)\1"', re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"', re.S)
CHARACTER = re.compile(r"'(?:\\.|[^'\\\n])+'")
DIRECTIVE = re.compile(r"#(?:\\\n|[^\n])*")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
NAMESPACE = re.compile(r"^(?:inline\s+)?namespace\b\s*([\w:]*)\s*$")
TYPE = re.compile(r"^(?:typedef\s+)?(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+"
                  r"(?:alignas\s*\([^)]*\)\s*)?(\w+)\s*(?:final\s*)?(?::[^:].*)?$", re.S)
UNSCOPED = re.compile(r"^enum\b(?!\s+(?:class|struct)\b)")
ENUMERATOR = re.compile(r"(?:^|,)\s*(\w+)")
ALIAS = re.compile(r"^(?:using\s+(\w+)|namespace\s+(\w+))\s*=\s*(.*)$", re.S)
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")
INSTANCES = re.compile(r"^(?:INSTANTIATE_\w+|REGISTER_\w+)\s*\(\s*(\w+)\s*,\s*(\w+)")
MATCHER = re.compile(r"^(?:MATCHER(?:_P\d*)?|ACTION(?:_P\d*)?)\s*\(\s*(\w+)")
MACRO = re.compile(r"\s*#\s*(define|undef)\s+(\w+)")
DROPPED = re.compile(r"\[\[.*?\]\]|\b(?:alignas|decltype|__attribute__|noexcept|explicit|requires)\s*\((?:[^()]|\([^()]*\))*\)"
                     r"|extern\s+\"C\"|\"(?:\\.|[^\"\\\n])*\"", re.S)
WORD = re.compile(r"operator\s*(?:\(\)|\[\]|\"\"\s*\w+|[^\s\w(]+|\w+)|\w+|::|[<>(=\[;]|\S")
MORE = re.compile(r"\s*[*&]*\s*(\w+)\s*(?=[=\[{(;,])")
LEADING = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.S)
MARK_OF_MORE = re.compile(r"[\"'/(){}\[\],]")
# Functions that are found by the type of what they are given: each file has its own, as of an operator.
BY_ARGUMENT = ("operator", "PrintTo", "missing_for")
IGNORED = ("using ", "static_assert", "template class", "template struct", "friend ", "extern template",
           "BENCHMARK", "TYPED_TEST_SUITE", "GTEST_ALLOW")


def without_template(head):
    """What follows `template <...>`."""
    while head.startswith("template"):
        begin = head.find("<")
        if begin < 0:
            break
        depth, i = 1, begin + 1
        while i < len(head) and depth:
            depth += {"<": 1, ">": -1}.get(head[i], 0)
            i += 1
        head = head[i:].lstrip()
    return head


def declared(head):
    """The name that a head of a function or variable declares, and whether it is a function; None
    where it belongs to a class or there is none."""
    depth, name, qualified = 0, None, False
    words = WORD.findall(head)
    for place, word in enumerate(words):
        if word == "<" and name:
            depth += 1
        elif word == ">" and depth:
            depth -= 1
        elif depth:
            continue
        elif word in "(=[;":
            break
        elif word == "::":
            qualified = True
        elif word[0].isalpha() or word[0] == "_":
            qualified = place > 0 and words[place - 1] in ("::", "~")
            name, num_words = word, place
    if not name or qualified or num_words == 0:
        return None, False
    rest = words[num_words + 1:num_words + 2]
    return name, rest == ["("]


def further_names(text):
    """Of `= 1, b = 2, c[3];`, what follows the first name of a declaration: b and c."""
    depth, at = 0, 0
    while match := MARK_OF_MORE.search(text, at):
        at = match.end()
        mark = match[0]
        if mark in "\"'/":
            at = past_literal(text, match.start())
        elif mark == ",":
            more = MORE.match(text, at)
            if depth == 0 and more:
                yield more[1]
        else:
            depth += 1 if mark in "({[" else -1


def names_of(head, block, local, whole):
    """(name, kind, text) of what a declaration at namespace scope defines; `head`: before its first
    block; `local`: in an unnamed namespace. The kind `function` is one that other files see."""
    head = DROPPED.sub(" ", COMMENT.sub("", head)).strip()
    head = without_template(head)
    if not head:
        return
    match = TEST.match(head) or INSTANCES.match(head)
    if match:
        yield f"{match[1]}.{match[2]}", "test", ""
        return
    match = MATCHER.match(head)
    if match:
        yield match[1], "type", ""
        return
    match = ALIAS.match(head)
    if match:
        yield match[1] or match[2], "alias", " ".join(match[3].split())
        return
    if UNSCOPED.match(head) and block is not None:
        for name in ENUMERATOR.findall(re.sub(r"\([^()]*\)", "", COMMENT.sub("", block))):
            yield name, "type", ""
    match = TYPE.match(head)
    if match:
        if block is not None:
            yield match[1], "type", ""
        return
    if head.startswith(IGNORED) or head.startswith("extern "):
        return
    name, is_function = declared(head)
    if name and not is_function and "," in whole:
        first = re.search(rf"\b{name}\b", whole)
        for more in further_names(whole[first.end():]):
            yield more, "own" if local or re.match(r"(?:static|const|constexpr)\b", head) else "function", ""
    if name:
        own = local or re.match(r"(?:static|constexpr|const|inline constexpr)\b", head)
        if name.startswith(BY_ARGUMENT):
            yield f"{name}({' '.join(head.partition(name)[2].split())}", "own" if own else "function", ""
        else:
            yield name, "own" if own else "function", ""


def past_literal(text, at):
    """Where a literal or comment that may begin at `at` ends."""
    mark = text[at]
    if mark == "/":
        if text.startswith("//", at):
            return text.find("\n", at) % (len(text) + 1)
        return text.index("*/", at) + 2 if text.startswith("/*", at) else at + 1
    if mark == "'":
        # One between digits separates them.
        match = None if text[at - 1].isalnum() and not text.startswith("u8", at - 2) else CHARACTER.match(text, at)
    else:
        match = (RAW if text[at - 1] == "R" else STRING).match(text, at)
    return match.end() if match else at + 1


class Source:
    """Goes over a source; `found` has (scope, name, kind, text) of all names that it defines at
    namespace scope."""

    def __init__(self, text):
        self.text, self.scopes, self.macros, self.found = text, [], set(), []
        self.start = self.parens = self.blocks = 0
        self.first = self.last = None  # where the first block of a declaration begins and the last ends
        at = 0
        while match := (MARK_OF_A_BODY if self.blocks else MARK).search(text, at):
            at = match.end()
            mark = match[0]
            if mark in "\"'/":
                at = past_literal(text, match.start())
            elif mark == "#":
                at = self.directive(match.start())
            elif mark == "{":
                self.open(match.start())
            elif mark == "}":
                self.close(match.start())
            elif mark == ";":
                if self.parens == 0:
                    self.end(at)
            else:
                self.parens = max(0, self.parens + (1 if mark == "(" else -1))
        self.found += [("", name, "macro", "") for name in self.macros]

    def directive(self, at):
        directive = DIRECTIVE.match(self.text, at)
        macro = MACRO.match(directive[0])
        if macro:
            (self.macros.add if macro[1] == "define" else self.macros.discard)(macro[2])
        if self.first is None and self.parens == 0:
            self.start = directive.end()
        return directive.end()

    def open(self, at):
        if self.blocks == 0 and self.parens == 0 and self.first is None:
            space = NAMESPACE.match(COMMENT.sub("", self.text[self.start:at]).strip())
            if space:
                self.scopes.append(space[1] or "{}")
                self.start = at + 1
                return
            self.first = at
        self.blocks += 1

    def close(self, at):
        if self.blocks == 0:
            self.scopes = self.scopes[:-1]
            self.start, self.first = at + 1, None
            return
        self.blocks -= 1
        if self.blocks or self.parens:
            return
        self.last = at
        # A semicolon, more of the declaration, or, as behind a function, nothing of it.
        if self.text[at + 1:at + 80].lstrip()[:1] not in (";", ",", "{", "="):
            self.end(at + 1)

    def end(self, at):
        """A declaration ends before `at`."""
        head = self.text[self.start:at - 1 if self.first is None else self.first]
        block = None if self.first is None else self.text[self.first + 1:self.last]
        scope = "::".join(self.scopes)
        whole = self.text[LEADING.match(self.text, self.start).end():at]
        self.found += [(scope, *name) for name in names_of(head, block, "{}" in self.scopes, whole)]
        self.start, self.first = at, None


def definitions(text):
    return Source(text).found


def faults(sources):
    """The sentences about a room: `sources` has the text by the path of its files."""
    rooms = collections.defaultdict(lambda: collections.defaultdict(dict))
    for path, text in sources.items():
        room = rooms[path.rpartition("/")[0]]
        for scope, name, kind, words in definitions(text):
            room[scope, name].setdefault(path, set()).add((kind, words))
            # What all see stands beside what a file has for itself in a namespace without name.
            if kind == "function":
                room[scope + "::{}" if scope else "{}", name].setdefault(path, set()).add((kind, words))
    for room in rooms.values():
        for (scope, name), found in sorted(room.items()):
            if len(found) < 2:
                continue
            all_kinds = set().union(*found.values())
            if all(kind == "function" for kind, _ in all_kinds):
                continue
            if all(kind == "alias" for kind, _ in all_kinds) and len(all_kinds) == 1:
                continue
            files = sorted(found)
            yield f"{files[0]}: '{name}' is defined in {', '.join(pathlib.PurePath(f).name for f in files[1:])}, too"


def header_faults(headers):
    """The sentences about headers, whose texts are given by their paths."""
    names = collections.defaultdict(lambda: collections.defaultdict(set))
    for path, text in headers.items():
        for scope, name, kind, _ in definitions(text):
            # What a header keeps for the kernels or the instruction set that includes it is declared with attributes.
            if "{}" not in scope and not name.startswith("__"):
                names[scope, name][path].add(kind)
    for (_, name), found in sorted(names.items()):
        if len(found) > 1 and set().union(*found.values()) != {"function"}:
            files = sorted(found)
            yield f"{files[0]}: '{name}' is defined in {', '.join(files[1:])}, too"


def headers():
    for folder in ("src", "include", "apps"):
        for path in sorted((ROOT / folder).rglob("*.h")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.cpp")):
            name = path.relative_to(ROOT).as_posix()
            if not OWN_FLAGS.search(name) and "/data/" not in name and path.parent.relative_to(ROOT).as_posix() not in APART:
                yield name, path.read_text(encoding="utf-8")


def main():
    files = dict(sources())
    problems = list(faults(files))
    for problem in problems:
        print(f"error: {problem}; sources of a room are compiled together, rename one")
    seen = dict(headers())
    twice = list(header_faults(seen))
    for problem in twice:
        print(f"error: {problem}; all that include both would mix them up, rename one")
    print(f"names: {len(files)} sources, {len(problems)} names that stand twice in a room; {len(seen)} headers, {len(twice)}")
    return 1 if problems or twice else 0


if __name__ == "__main__":
    sys.exit(main())
