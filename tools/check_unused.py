#!/usr/bin/env python3
"""Fails on functions that headers of src/ and apps/ declare and nothing but tests calls.

A library ships what its programs run. A function that a test alone needs stands in tests/support; an accessor that a test
alone reads shows what the test could see by what follows from it. Calls are looked for by name in src, apps, include,
python/src, tools/dialled, bench and examples: a name that has calls anywhere there passes, whichever class it is of. Calls that a
macro makes by pasting names together are none of a header's functions. tools/unused_exceptions.txt lists what is there for
tests alone, each as "path: name: reason". One that is called now, or is gone, is an error.
"""

import collections
import re
import sys

from cpp_text import DIRECTIVE, code_of
from tree import ROOT, read_exceptions

EXCEPTIONS = ROOT / "tools" / "unused_exceptions.txt"
FOLDERS = ("src", "apps", "include", "python/src", "tools/dialled", "bench", "examples")
SUFFIXES = {".h", ".hpp", ".inl", ".inc", ".cpp", ".cc", ".cu", ".cuh", ".def"}
OWN = ("src/", "apps/")

CALL = re.compile(r"\b([a-z_]\w*)\s*(?:<[^<>;(){}]*>\s*)?\(")
# A name that is handed on instead of called: "&Type::name", "{..., name}", "= name;".
NAMED = re.compile(r"\b([a-z_]\w*)\b(?!\s*(?:<[^<>;(){}]*>\s*)?\()")
NO_NAMES = {"if", "for", "while", "switch", "return", "sizeof", "decltype", "alignas", "alignof", "noexcept", "requires", "catch", "defined",
            "static_assert", "co_return", "co_await", "throw", "explicit", "typeid", "operator", "__attribute__", "__launch_bounds__"}
STATEMENT = re.compile(r"[;{}]|(?<!:):(?!:)")
TEMPLATE = re.compile(r"\btemplate\s*<(?:[^<>]|<[^<>]*>)*>")
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|\b(?:__attribute__|alignas|__launch_bounds__|explicit|decltype|requires)\s*\((?:[^()]|\([^()]*\))*\)")
# What a declaration does not have before its name.
OF_CALLS = re.compile(r"[=?!|+/%~.]|&&|->|\b(?:return|co_return|co_await|throw|else|case|do|new|delete|goto|not|and|or|if|while|for|switch|using)\b|\btemplate\s*$")
TYPE = re.compile(r"[A-Za-z_](?:[\w:<>,*&\s()]*[\w>*&])?$")


def is_declared(code, begin, starts):
    """Whether the name that begins there is declared or defined there; `starts`: where statements begin, ascending."""
    low, high = 0, len(starts)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if starts[middle] <= begin else (low, middle)
    head = code[starts[low - 1] if low else 0:begin]
    head = ATTRIBUTE.sub(" ", TEMPLATE.sub(" ", head))
    # The class of a member that is defined apart.
    while True:
        head = head.rstrip()
        if not head.endswith("::"):
            break
        head = re.sub(r"[\w]*(?:<(?:[^<>]|<[^<>]*>)*>)?::$", "", head)
    if head.count("(") != head.count(")") or OF_CALLS.search(head) or head.endswith(")"):
        return False
    return bool(TYPE.match(head.strip()))


class Names:
    """Of a source: the functions that it declares, and the names that it calls or hands on."""

    def __init__(self, text):
        code = DIRECTIVE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), code_of(text))
        starts = [found.end() for found in STATEMENT.finditer(code)]
        self.declared, self.used = {}, set()
        for found in CALL.finditer(code):
            if found[1] in NO_NAMES:
                continue
            if is_declared(code, found.start(1), starts):
                self.declared.setdefault(found[1], code.count("\n", 0, found.start()) + 1)
            else:
                self.used.add(found[1])
        self.used |= set(NAMED.findall(code))
        # A macro may call what it names.
        for found in DIRECTIVE.finditer(text):
            self.used |= set(re.findall(r"\b[a-z_]\w*\b", found[0]))


def faults(sources, exceptions):
    """The sentences about sources by their path."""
    names = {path: Names(text) for path, text in sources.items()}
    used = collections.Counter(name for each in names.values() for name in each.used)
    unused = set(exceptions)
    for path, each in names.items():
        if not path.endswith(".h") or not path.startswith(OWN):
            continue
        for name, line in each.declared.items():
            if used[name]:
                continue
            unused.discard((path, name))
            if (path, name) not in exceptions:
                yield (f"{path}:{line}: nothing but tests calls {name}: remove it, or move it to tests/support, or say in "
                       "tools/unused_exceptions.txt who does")
    for path, name in sorted(unused):
        yield f"tools/unused_exceptions.txt: {path}: {name} is called now, or is gone; delete the line"


def main():
    sources = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for folder in FOLDERS
               for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES}
    exceptions = read_exceptions(EXCEPTIONS.read_text(encoding="utf-8").splitlines())
    found = list(faults(sources, exceptions))
    print("\n".join(found) or f"unused: {len(sources)} sources, no function is called by tests alone but {len(exceptions)} exceptions")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
