#!/usr/bin/env python3
"""Fails when a refusal of a combination is written outside src/compat, the one place that decides them.

A refusal is a call that makes a Status (unsupported, invalid_argument, fault, rule_fault, Status), fails a reader or throws,
and in src/ any statement, as a sentence may be made before it is returned. It is taken for one of a combination
where its literals name two flags, or one flag and a word that brings another part in ("needs", "without", ...), or
say what such sentences say ("leave one of the two out", "not divided among ranks", "goes with", ...), that a part is
missing ("has no tokenizer", "needs a drafter"), or what to start with it ("add --x"). What says
kUnsupported above src/compat (ABOVE_COMPAT) is one, too, where it names two of FEATURES. The commands of
apps/ have flags of their own; there two flags or such a sentence count. What loads a server as its client (bench serve)
is no part of an engine. In Python what is raised is a refusal where its literals say so: it is the program's to say. And what no one tells compat refuses nothing: each field of Combination is set outside of the rules.

tools/refusal_exceptions.txt lists what looks so and is none, each as "path: words of the sentence: reason".
"""

import ast
import re
import sys

from cpp_text import DIRECTIVE, line_of, literals, without_comments
from tree import ROOT, read_exceptions

EXCEPTIONS = ROOT / "tools" / "refusal_exceptions.txt"
COMPAT = ROOT / "src" / "compat"
FOLDERS = ("src", "apps", "include", "python")
SUFFIXES = {".h", ".hpp", ".inl", ".inc", ".cpp", ".cc", ".cu", ".cuh", ".py"}
# The rules themselves, clients of a server, tables of fields with their help, and pages that are printed.
APART = ("src/compat/", "src/bench/", "apps/bench/bench_serve", "src/config/", "apps/manual/", "apps/flags/", "python/tests/")
MAKERS = re.compile(r"\b(?:unsupported|invalid_argument|fault|rule_fault|Status|fail|\w*[Ee]rror|runtime_error|return(?=\s*\{))\s*[({]")
STATEMENT_END = re.compile(r"[;{}]")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
# What only says what else would do: "; use --load-format auto". A flag in it is the second of a sentence, but none that
# asks for another part alone.
REMEDY = re.compile(r";.*", re.S)
ANOTHER = re.compile(r"\b(?:needs?|requires?|without|with|under|beside|while|where|both)\b")
# A part that an engine, a model or a server may lack.
PART = r"(?:tokenizers?|drafters?|(?:chat )?templates?|adapters?|grammars?|parsers?|tokens for|draft models?|prefix cache|mixtures?)\b"
PHRASES = re.compile(
    rf"\b(?:has|have|having|runs?|leaves|there is|there are|needs?|wants?|requires?|lacks?|without|with no) (?:an?|no|neither|any)? ?{PART}"
    r"|\b(?:add|start (?:it |the engine |the server )?(?:with|without)) --[a-z]|holds? for the whole engine|does not read '"
    r"|leave one (?:of (?:them|the two) )?out|among ranks|stages do not have|lanes do not have|not shared by engines"
    r"|exclude (?:each other|one another)|cannot be (?:used|combined) with|\btogether\b|\bcombin(?:e|ed|ation)\b"
    r"|not (?:available|built|there|read|allowed|supported|possible|known) (?:with|where|for|when|while|under|beside)\b"
    r"|divided among|start (?:it|the engine) with\b|does nothing with|does not keep|\bare (?:not )?quantised\b"
    r"|\bgo(?:es)? (?:not )?with\b|mutually exclusive|incompatible|\bconflicts? with|at the same time|leave --[a-z-]+ out")
ABOVE_COMPAT = ("src/engine/", "src/serve/", "src/sched/", "src/draft/", "src/model/", "apps/")
FEATURES = [re.compile(words, re.I) for words in (
    r"\bdraft|\bspeculat|\bn-gram|\bMTP\b|\bassistant attends", r"\badapters?\b|\bLoRA\b", r"\branks?\b|-parallel-size", r"\bstages?\b", r"\bFP8 KV\b|\bKV cache",
    r"\bquantis", r"\brecurrent\b|\bstates\b|linear attention|\bconvolution", r"\bexperts?\b|\bmixtures?\b", r"\blatents?\b",
    r"\bwindows?\b|\bsliding", r"\bindexers?\b", r"\bgrammars?\b|\bstructured\b", r"\bGGUF\b", r"\bprefix cach", r"\boffload",
    r"\bgraphs?\b", r"attention backend|--attention-backend", r"\bpool(?:s|ed|ing)\b|\bembeddings?\b", r"\blanes?\b|--enable-dbo",
    r"--tensor-parallel|--data-parallel")]
SAYS_UNSUPPORTED = re.compile(r"^unsupported\b|^\w+\s*[({]\s*StatusCode::kUnsupported")
# A flag that a variable or a function names: "given.flag", "kGraphFlag", "engine_flag(field)".
NAMED_LATER = re.compile(r"\b(?:\w+(?:\.|->))*\w*[fF]lag\b")
BRACKET = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|[(){}]")
TEXT = re.compile(r"\"(?:\\.|[^\"\\\n])*\"")
WORD_OF_ANY = re.compile(f"--[a-z]|{PHRASES.pattern}")


def call_text(text, begin):
    """What stands between the brackets of a call, of which the first ends at `begin`."""
    depth = 1
    for found in BRACKET.finditer(text, begin):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return text[begin:found.start()]
    return text[begin:]


def is_of_parts(sentence, in_source):
    asked = REMEDY.sub("", sentence)
    return len(set(FLAG.findall(sentence))) > 1 or in_source and FLAG.search(asked) and ANOTHER.search(asked) or \
        PHRASES.search(sentence)


def names_two_features(sentence):
    """Whether what says why, without the remedy, speaks of two features."""
    return sum(bool(feature.search(REMEDY.sub("", sentence))) for feature in FEATURES) > 1


def statements(text):
    """(begin, text) of what stands between semicolons and braces, those in literals aside."""
    begin = 0
    blank = TEXT.sub(lambda found: "_" * len(found[0]), text)
    for found in STATEMENT_END.finditer(blank):
        yield begin, text[begin:found.start()]
        begin = found.end()


def refusals(text, in_source=True, above_compat=False):
    """(line, sentence) of each call or statement that looks like the refusal of a combination."""
    if not WORD_OF_ANY.search(text) and not NAMED_LATER.search(text) and not (above_compat and "nsupported" in text):
        return
    text = DIRECTIVE.sub(lambda found: "\n" * found[0].count("\n"), without_comments(text))
    told = set()
    for found in MAKERS.finditer(text):
        call = call_text(text, found.end())
        sentence = "".join(contents for _, contents in literals(call))
        if found[0].startswith("return") and not SAYS_UNSUPPORTED.search(found[0] + call):
            continue
        # Flags that are named when the program runs stand where its sentence begins.
        later = len(set(NAMED_LATER.findall(TEXT.sub("", call))))
        flags = " ".join(f"--named-later-{i}" for i in range(later))
        features = above_compat and SAYS_UNSUPPORTED.search(found[0] + call)
        if is_of_parts(f"{flags} {sentence}", in_source) or features and names_two_features(sentence):
            told.add(sentence)
            yield line_of(text, found.start()), sentence
    if not in_source:
        return
    for begin, statement in statements(text):
        sentence = "".join(contents for _, contents in literals(statement))
        if "FT_CHECK(" not in statement and PHRASES.search(sentence) and not any(sentence in one or one in sentence for one in told):
            yield line_of(text, begin + len(statement) - len(statement.lstrip())), sentence


def raised(text):
    """(line, sentence) of each exception of a Python source that looks like the refusal of a combination."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Raise) or node.exc is None:
            continue
        words = [part for part in ast.walk(node.exc) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        sentence = "".join(part.value for part in sorted(words, key=lambda part: (part.lineno, part.col_offset)))
        if is_of_parts(sentence, True) or names_two_features(sentence):
            yield node.lineno, sentence


def faults(files, exceptions):
    """The sentences about sources by their path."""
    unused = set(exceptions)
    for path, text in files.items():
        found = raised(text) if path.endswith(".py") else \
            refusals(text, not path.startswith("apps/"), path.startswith(ABOVE_COMPAT))
        for line, sentence in found:
            allowed = {(of, words) for of, words in exceptions if of == path and words in sentence}
            unused -= allowed
            if not allowed:
                yield (f'{path}:{line}: "{sentence[:70]}..." refuses a combination: make it a rule of src/compat '
                       "and ask compat here, or say in tools/refusal_exceptions.txt what else it is")
    for path, words in sorted(unused):
        yield f"tools/refusal_exceptions.txt: {path} has no such sentence any more: {words}"


def fields_of(header, struct):
    """The names of the members of a structure that compat is asked about."""
    body = header[header.index(f"struct {struct} {{"):]
    body = without_comments(body[:body.index("\n};")])
    return re.findall(r"^  [\w:<>* ,]+?\b(\w+) = (?!\=)[^;]*;", body, re.M)


def never_told(fields, texts):
    """Those that no text sets, by name in braces or as a member."""
    told = set()
    for text in texts:
        told |= set(re.findall(r"(?:\.|->)(\w+)(?:\s*\|?=(?!=)|\.reset\(|\.clear\()", text))
    return [field for field in fields if field not in told]


def never_asked(fields, rules):
    """Those that no rule reads."""
    asked = {field for rule in rules for field in re.findall(r"(?:\.|->|::)(\w+)", rule)}
    return [field for field in fields if field not in asked]


def faults_of_fields(files):
    """The sentences about members that no one sets, or no rule goes by."""
    header = (COMPAT / "compat.h").read_text(encoding="utf-8")
    rules = [path.read_text(encoding="utf-8") for path in sorted(COMPAT.glob("*_rules.cpp"))]
    told_by = [*(text for path, text in files.items() if not path.endswith(".py")), (COMPAT / "combination.cpp").read_text(encoding="utf-8")]
    for struct in ("Combination", "LayerNeeds"):
        fields = fields_of(header, struct)
        for field in never_told(fields, told_by):
            yield f"src/compat/compat.h: no one sets {struct}::{field}, so that no rule about it is ever broken: set it or remove it"
        for field in never_asked(fields, rules):
            yield f"src/compat/compat.h: no rule goes by {struct}::{field}: write one or remove it"


def sources():
    """The text by path of all that is looked at."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in SUFFIXES and not name.startswith(APART):
                found[name] = path.read_text(encoding="utf-8")
    return found


def main():
    files = sources()
    found = list(faults_of_fields(files))
    found += list(faults(files, read_exceptions(EXCEPTIONS.read_text(encoding="utf-8").splitlines())))
    print("\n".join(found) or f"refusals: {len(files)} sources, combinations are refused by src/compat alone")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
