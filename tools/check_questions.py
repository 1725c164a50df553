#!/usr/bin/env python3
"""Fails when a source above device/ and kernels/ asks which device or product it has, when one asks which method of speculation or
kind of draft heads, and when one asks an object for its class.

What differs between devices is a field of DeviceTraits, between methods one of DrafterTraits, between heads one of HeadTraits. As a name that nobody
compares is not needed either, the names themselves are looked for, however they are compared: a literal that is
the name of a device ("cuda", "cpu:0") or of a method (those of src/draft/registry.cpp), and a part of one that is given
to starts_with, find, strcmp and the like. A device's name may be set (`device = "cpu"`) and stand in the rows of examples
(`.device = ...`, and `.drafter = ...` in src/compat). A method may be named by its row, by the source that has its name
and by draft/parts/method.cpp, which tells files. Python files of python/ and bench/ are read, too, but for tests, which name what they try.

tools/question_exceptions.txt lists what else may say a name, each as "path: name: reason", where * is all names of methods.
One that is not there any more is an error.
"""

import ast
import pathlib
import re
import sys

from cpp_text import code_of, line_of, literals, without_comments
from tree import ROOT, read_exceptions

EXCEPTIONS = ROOT / "tools" / "question_exceptions.txt"
REGISTRY = "src/draft/registry.cpp"
FOLDERS = ("src", "apps", "include", "python", "bench", "tools/dialled")
SUFFIXES = {".h", ".hpp", ".inl", ".inc", ".cpp", ".cc", ".cu", ".cuh", ".def", ".py"}
# Tests name what they try; what is built for one device alone asks for none.
NOT_READ = ("python/tests/", "bench/cuda/", "bench/results/")
BELOW_DEVICES = ("src/device/", "src/kernels/")
# Rows of a table by type of device are data: no code asks there.
TABLES_BY_DEVICE = {"src/attention/families.cpp"}
# Where kinds of heads are named: their table, the rows of drafters that have one, and the kind that a value begins with.
OF_HEADS = {"src/model/head_kind.h", REGISTRY}
FIRST_KIND = re.compile(r"\bHeadKind kind = HeadKind::k\w+;")

DEVICE_NAMES = ("cpu", "cuda", "gpu")
# A product by itself or behind its vendor: sentences may name one, and a row of vLLM's list says where it ran.
PRODUCT_LITERAL = re.compile(r"(?:(?:NVIDIA|AMD|Intel|Apple)\b.{0,30}|(?:RTX |GTX |GeForce )?(?:GB|GH|[ABHLVTM]|MI)\d{1,4}[A-Z]{0,2})")
DEVICE_LITERAL = re.compile(r"(?i)(?:cpu|cuda|gpu)(?::\d*)?")
# What comes before a device's name that is set, or that an example has.
DEVICE_SET = re.compile(r"\bdevice\s*(?<![=!<>])=(?!=)\s*(?:(?:\w+::)*(?:find_device_type|example_device|string|string_view)"
                        r"\s*[({]\s*)?$")
METHOD_SET = re.compile(r"\.drafter\w*\s*=\s*$")
COMPARED = re.compile(r"\b(?:starts_with|ends_with|contains|r?find\w*|compare|str\w*cmp|strstr|equal\w*|search|match\w*)"
                      r"\s*\((?:[^();]|\([^();]*\))*$")
DEVICE_TYPE = re.compile(
    r"\bDeviceType::k\w+|\bis_(?:cpu|cuda|gpu)\b|\busing\s+enum\s+(?:\w+::)*DeviceType\b|\busing\s+\w+\s*=\s*(?:\w+::)*DeviceType\s*;"
    r"|\bDeviceType\s*[({]\s*\d|_cast<\s*(?:\w+::)*DeviceType\s*>|\b\w*device\w*_?(?:\(\s*\))?\s*(?:\.|->)\s*type\s*\(\s*\)\s*[!=]="
    r"|[!=]=\s*(?:\*?\w+(?:\.|->))*\w*device\w*_?(?:\(\s*\))?\s*(?:\.|->)\s*type\s*\(\s*\)"
    r"|\bswitch\s*\([^)]*\bdevice\w*_?(?:\(\s*\))?\s*(?:\.|->)\s*type\s*\(|_cast<[^<>]*>\s*\([^;]*\bdevice\w*_?(?:\.|->)type\s*\("
    r"|^\s*#\s*(?:if|ifdef|ifndef|elif)\b[^\n]*\b(?:\w*_)?(?:CUDA|CUDACC|CPU|GPU)(?:_\w*)?\b", re.M)
# Without which none of it can be there.
DEVICE_WORD = re.compile(r"DeviceType|\bis_(?:cpu|cuda|gpu)\b|\btype\s*\(|#[^\n]*(?:CUDA|CPU|GPU)")
HEAD_KIND = re.compile(r"\bHeadKind\s*(?:::\s*k\w+|[({]\s*\d)|\busing\s+enum\s+(?:\w+::)*HeadKind\b")
# CLI11 tells its faults apart by their classes alone.
CLASS = re.compile(r"\b(?:dynamic_(?:pointer_)?cast\s*<\s*(?!const\s+CLI::)|typeid\s*\()")

DEVICE_REMEDY = ("a field of DeviceTraits (src/device/device_traits.h) that says what is asked, as "
                 "uses_host_memory, and device_traits(device.type()) or find_device_type(name) here")
METHOD_REMEDY = ("a field of DrafterTraits or of DrafterEntry (src/draft/registry.cpp) that says what is asked, as looks_up, and "
                 "find_drafter(name) here")
HEAD_REMEDY = ("a field of HeadTraits (src/model/head_kind.h), beside DrafterTraits a kind's own, that says what is asked, as "
               "learns_masks, and head_traits(kind) here")
CLASS_REMEDY = "a virtual function of the interface, or a field of its traits"


def method_names(registry):
    """All names that rows of the registry have, without its wildcards."""
    rows = re.findall(r'\{\s*\.name = "([^"]+)",\s*\.aliases = "([^"]*)"', registry)
    names = {name for name, _ in rows} | {re.sub(r"[*\[\]]", "", alias).strip("_")
                                          for _, aliases in rows for alias in aliases.split()}
    unbuilt = re.search(r"kUnbuilt\[\] = \{(.*?)\n\};", registry, re.S)
    names |= set(re.findall(r'\{"(\w+)"', unbuilt[1])) if unbuilt else set()
    return names


def normal(text):
    return text.lower().replace("-", "_")


def owns_method(path, name):
    return path in (REGISTRY, "src/draft/parts/method.cpp") or \
        path.startswith("src/draft/") and pathlib.PurePath(path).stem == name


def device_name(contents, before):
    """The name of a device that a literal says, behind the text before it; None: none, or it is set."""
    if PRODUCT_LITERAL.fullmatch(contents):
        return contents
    if DEVICE_LITERAL.fullmatch(contents):
        return None if DEVICE_SET.search(before) else contents
    part = len(contents) > 2 and any(contents.lower() in name for name in DEVICE_NAMES)
    return contents if part and COMPARED.search(before) else None


def method_name(path, contents, before, methods):
    """The name of a method that a literal says, or of which it is a part that something is compared with."""
    name = normal(contents)
    if name in methods:
        own = owns_method(path, name) or path.startswith("src/compat/") and METHOD_SET.search(before)
        return None if own else contents
    part = len(name) > 2 and any(method.startswith(name) for method in methods)
    return contents if part and not owns_method(path, name) and COMPARED.search(before) else None


def asked_by_names(path, text, methods):
    """(line, name, needed) of each literal that names a device or a method."""
    above_devices = not path.startswith(BELOW_DEVICES)
    for begin, contents in literals(text):
        if not 2 < len(contents) < 40:
            continue
        before = text[max(0, begin - 200):begin]
        name = device_name(contents, before) if above_devices else None
        if name:
            yield line_of(text, begin), name, DEVICE_REMEDY
        name = method_name(path, contents, before, methods)
        if name:
            yield line_of(text, begin), name, METHOD_REMEDY


COMPARISONS = {"startswith", "endswith", "find", "rfind", "index", "search", "match", "fullmatch", "removeprefix", "count"}


def set_and_compared(tree):
    """Ids of literals of a Python file that are a device which is set, of those that are no code, and of compared ones."""
    is_set, no_code, compared = set(), set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            no_code.add(id(node.value))
        elif isinstance(node, ast.keyword) and node.arg == "device":
            is_set.add(id(node.value))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(getattr(target, "id", getattr(target, "attr", "")) == "device" for target in targets):
                is_set.add(id(node.value))
        elif isinstance(node, ast.Compare):
            compared |= {id(side) for side in (node.left, *node.comparators)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in COMPARISONS:
            compared |= {id(inner) for argument in node.args for inner in ast.walk(argument)}
    return is_set, no_code, compared


def asked_in_python(path, text, methods):
    """(line, name, needed) of each literal of a Python file that names a device or a method."""
    tree = ast.parse(text)
    is_set, no_code, compared = set_and_compared(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in no_code:
            continue
        name, is_compared = normal(node.value), id(node) in compared and 2 < len(node.value)
        if DEVICE_LITERAL.fullmatch(node.value):
            if id(node) not in is_set:
                yield node.lineno, node.value, DEVICE_REMEDY
        elif is_compared and any(node.value.lower() in device for device in DEVICE_NAMES):
            yield node.lineno, node.value, DEVICE_REMEDY
        elif name in methods or is_compared and any(method.startswith(name) for method in methods):
            yield node.lineno, node.value, METHOD_REMEDY


def asked_by_types(path, text):
    """(line, what, needed) of each question for a type of device, a kind of heads or a class."""
    below = path.startswith(BELOW_DEVICES) or path in TABLES_BY_DEVICE or path == "src/base/host_device.h"
    if not below and DEVICE_WORD.search(text):
        yield from ((line_of(text, found.start()), found[0].strip(), DEVICE_REMEDY) for found in DEVICE_TYPE.finditer(text))
    if path not in OF_HEADS:
        others = FIRST_KIND.sub(lambda found: " " * len(found[0]), text)
        yield from ((line_of(text, found.start()), found[0], HEAD_REMEDY) for found in HEAD_KIND.finditer(others))
    yield from ((line_of(text, found.start()), found[0], CLASS_REMEDY) for found in CLASS.finditer(text))


def asked(path, source, methods):
    """(line, what, needed) of each question of a file."""
    if path.endswith(".py"):
        yield from asked_in_python(path, source, methods)
        return
    text = without_comments(source)
    # Literals ask for no type; few sources need to be looked at without them.
    if any(asked_by_types(path, text)):
        yield from asked_by_types(path, code_of(text))
    yield from asked_by_names(path, text, methods)


def faults(sources, methods, exceptions):
    """The sentences about sources by their path."""
    unused = set(exceptions)
    for path, source in sources.items():
        for line, what, needed in asked(path, source, methods):
            excepted = {(path, what), (path, "*" if needed == METHOD_REMEDY else what)} & exceptions.keys()
            unused -= excepted
            if not excepted:
                yield f"{path}:{line}: {what} asks which one it is; needed is {needed}"
    for path, name in sorted(unused):
        yield f"tools/question_exceptions.txt: {path} does not say {name} any more; delete the line"


def main():
    sources = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for folder in FOLDERS
               for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES and not path.relative_to(ROOT).as_posix().startswith(NOT_READ)}
    methods = method_names(sources[REGISTRY])
    exceptions = read_exceptions(EXCEPTIONS.read_text(encoding="utf-8").splitlines())
    found = list(faults(sources, methods, exceptions))
    if len(methods) < 10:
        found.append(f"{REGISTRY}: tools/check_questions.py finds no names in its rows; teach it their form")
    print("\n".join(found) or f"questions: {len(sources)} sources, none asks which device, method or class it has")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
