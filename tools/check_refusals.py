#!/usr/bin/env python3
"""Fails when a refusal of a combination is written outside src/compat, the one place that decides them.

A refusal is a call that makes a Status (unsupported, invalid_argument, fault, rule_fault). It is taken for
one of a combination where its literals name two flags, or say what such sentences say ("leave one of the
two out", "not divided among ranks", ...). tools/refusal_exceptions.txt lists what looks so and is none,
each as "path: words of the sentence: reason".
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXCEPTIONS = ROOT / "tools" / "refusal_exceptions.txt"
FOLDERS = ("attention", "device", "draft", "engine", "group", "kernels", "model", "sched")
MAKERS = re.compile(r"\b(?:unsupported|invalid_argument|fault|rule_fault)\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
# Flags that only say what else would do: "; use --load-format auto".
REMEDY = re.compile(r";.*", re.S)
PHRASES = re.compile(r"leave one of (?:them|the two) out|among ranks|stages do not have|lanes do not have"
                     r"|not shared by engines|exclude (?:each other|one another)|cannot be used with"
                     r"| together\b| not built (?:where|for)|leave --[a-z-]+ out")


def call_text(text, begin):
    """What stands between the parentheses of a call, whose "(" ends at `begin`."""
    depth, at = 1, begin
    while at < len(text) and depth > 0:
        if text[at] == '"':
            found = LITERAL.match(text, at)
            at = found.end() if found else at + 1
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[begin:at]


def refusals(text):
    """(line, sentence) of each call that looks like the refusal of a combination."""
    for found in MAKERS.finditer(text):
        sentence = "".join(LITERAL.findall(call_text(text, found.end())))
        flags = set(FLAG.findall(REMEDY.sub("", sentence)))
        if len(flags) > 1 or PHRASES.search(sentence):
            yield text.count("\n", 0, found.start()) + 1, sentence


def read_exceptions(lines):
    """path -> words that a sentence of it may hold."""
    exceptions = {}
    for line in lines:
        if line.strip() and not line.startswith("#"):
            path, words, reason = (part.strip() for part in line.split(": ", 2))
            assert reason, line
            exceptions.setdefault(path, []).append(words)
    return exceptions


def faults(sources, exceptions):
    """Of sources by path."""
    unused = {(path, words) for path, all_words in exceptions.items() for words in all_words}
    for path, text in sources.items():
        for line, sentence in refusals(text):
            allowed = [words for words in exceptions.get(path, ()) if words in sentence]
            unused -= {(path, words) for words in allowed}
            if not allowed:
                yield (f'{path}:{line}: "{sentence[:70]}..." refuses a combination: make it a rule of src/compat '
                       "and ask compat here, or say in tools/refusal_exceptions.txt what else it is")
    for path, words in sorted(unused):
        yield f"tools/refusal_exceptions.txt: {path} has no such sentence any more: {words}"


def main():
    sources = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / "src" / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".cuh"):
                sources[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    found = list(faults(sources, read_exceptions(EXCEPTIONS.read_text(encoding="utf-8").splitlines())))
    print("\n".join(found) or f"refusals: {len(sources)} sources, combinations are refused by src/compat alone")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
