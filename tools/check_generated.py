#!/usr/bin/env python3
"""Fails when a file that is made differs from what it is made of, and when a made file is not listed.

tools/generated_files.txt lists them, each with its maker and with what compares it: a function of COMPARED here for those that
sources make without a build, a test for those that only the program can make. A test that is listed exists; a page with a mark of
made parts, and a source that says not to edit it, are listed; what compares nothing gives its reason. With --write the files of
COMPARED that have a writer are written."""

import fnmatch
import hashlib
import json
import pathlib
import re
import sys

from tree import ROOT, tracked

LIST = "tools/generated_files.txt"
PEER = "vLLM 0.26.0"
MARK = re.compile(r"^(<!-- (?:foretoken (?:fields|inspect|matrix) .*|.*made from .*) -->)$", re.M)
# What says of itself that it is made.
SAYS_SO = re.compile(r"(?i)\A[^\n]*\bdo not edit\b")
NOT_READ = ("tools/", "tests/golden/", "tests/text/data/", "models/", "src/serve/page/vendor/", "bench/prompts/")
READ = {".md", ".py", ".h", ".cpp", ".cu", ".def", ".dict", ".json", ".rs"}


def read_list(text):
    """(path, mark, maker, what compares) of each line."""
    entries = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        parts = re.split(r": ", line, maxsplit=2) if "<!--" not in line else re.split(r": (?=tools/)|: (?=test_|nothing)", line, maxsplit=2)
        if len(parts) != 3:
            raise ValueError(f"{LIST}: '{line}' is not 'path [mark]: maker: what compares'")
        path, _, mark = parts[0].partition(" ")
        entries.append((path, mark, parts[1], parts[2]))
    return entries


def test_exists(name, texts):
    """Whether sources of a folder of tests, by their paths, define "test_x Suite.Name"."""
    program, _, test = name.partition(" ")
    suite, _, case = test.partition(".")
    folder = f"tests/{program.removeprefix('test_')}/"
    defined = re.compile(rf"\bTEST(?:_[FP])?\(\s*{re.escape(suite)}\s*,\s*{re.escape(case)}\s*\)")
    return any(path.startswith(folder) and defined.search(text) for path, text in texts.items())


def list_faults(entries, texts, names, compared):
    """Sentences about the list: `texts` has the files that are read by their paths, `names` are all of the tree."""
    for path, mark, maker, how in entries:
        found = fnmatch.filter(names, path)
        where = f"{LIST}: {path}"
        if not found:
            yield f"{where} is not there; take the line out"
        elif mark and not any(mark in texts.get(name, "") for name in found):
            yield f"{where} has no part that begins with '{mark}'"
        if maker not in names:
            yield f"{where}: its maker {maker} is not there"
        if how.startswith("test_"):
            if not test_exists(how, texts):
                yield f"{where}: there is no test {how}"
        elif how.startswith("nothing"):
            if not how.startswith("nothing, "):
                yield f"{where}: 'nothing' needs a reason"
        elif how not in compared:
            yield f"{where}: '{how}' is no function of tools/check_generated.py; there are {', '.join(sorted(compared))}"


def unlisted(entries, texts):
    """Sentences about files that say they are made, and are not in the list."""
    for name, text in texts.items():
        if name.startswith(NOT_READ):
            continue
        own = [(mark, path) for path, mark, _, _ in entries if fnmatch.fnmatch(name, path)]
        for mark in MARK.findall(text):
            if not any(listed and mark.startswith(listed) for listed, _ in own):
                yield f"{name}: the part behind '{mark}' is made, and {LIST} does not say by what; add a line"
        if SAYS_SO.match(text) and not own:
            yield f"{name}: is made, as it says, and {LIST} does not say by what; add a line"


def charts(root=ROOT, write=False):
    """Charts of results, of their raw lines."""
    sys.path.insert(0, str(ROOT / "bench"))
    import chart  # pylint: disable=import-outside-toplevel
    import gpu_table  # pylint: disable=import-outside-toplevel
    for path in sorted((root / "bench/results").glob("h200-cuda-*.svg")):
        lines = path.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
        series = gpu_table.series([json.loads(line) for line in lines], PEER)
        made = chart.svg("Llama-3-8B shape, ms per output token of a sequence", "sequences", series)
        yield from differing(path, made, root, write)


def decisions(root=ROOT, write=False):
    """The index of decisions, of the titles of their pages."""
    index = root / "docs/decisions/README.md"
    text = index.read_text(encoding="utf-8")
    lines = []
    for page in sorted((root / "docs/decisions").glob("[0-9]*.md")):
        title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        lines.append(f"- [{page.name[:4]}]({page.name}) {title}")
    yield from differing(index, text.partition("- [")[0] + "\n".join(lines) + "\n", root, write)


def vendored(root=ROOT, write=False):  # pylint: disable=unused-argument
    """Files of others, by the hashes that their page has."""
    folder = root / "src/serve/page/vendor"
    rows = re.findall(r"^\| (\S+) \|.*\| ([0-9a-f]{64}) \|$", (folder / "README.md").read_text(encoding="utf-8"), re.M)
    known = dict(rows)
    for path in sorted(folder.glob("*.js")):
        if hashlib.sha256(path.read_bytes()).hexdigest() != known.pop(path.name, ""):
            yield f"{path.relative_to(root)}: is not the file whose hash README.md beside it has"
    for name in known:
        yield f"src/serve/page/vendor/{name}: is in README.md and not there"


def crate_header(root=ROOT, write=False):  # pylint: disable=unused-argument
    """The functions of the text crate's header, of its Rust sources, with as many arguments."""
    def arguments(text):
        return len([part for part in text.split(",") if part.strip() not in ("", "void")])

    sources = "".join(path.read_text(encoding="utf-8") for path in sorted((root / "text-crate/src").rglob("*.rs")))
    exported = {name: arguments(given) for name, given in re.findall(r'extern "C" fn (\w+)\(([^)]*)\)', sources)}
    header = re.sub(r"//[^\n]*", "", (root / "text-crate/foretoken_text.h").read_text(encoding="utf-8"))
    declared = {name: arguments(given) for name, given in re.findall(r"\b(ft_\w+)\(([^)]*)\);", header)}
    for name in sorted(exported.keys() | declared.keys()):
        if exported.get(name) != declared.get(name):
            yield (f"text-crate/foretoken_text.h: {name} has {declared.get(name, 'no declaration')} and the crate "
                   f"{exported.get(name, 'no function')} (arguments)")


def differing(path, made, root, write):
    if path.read_text(encoding="utf-8") == made:
        return
    if write:
        path.write_text(made, encoding="utf-8")
    else:
        yield f"{path.relative_to(root)}: is not what its sources make; run tools/check_generated.py --write"


COMPARED = {"charts": charts, "decisions": decisions, "vendored": vendored, "crate_header": crate_header}


def main():
    names = tracked()
    texts = {name: (ROOT / name).read_text(encoding="utf-8", errors="replace") for name in names
             if pathlib.PurePath(name).suffix in READ and not name.startswith(NOT_READ)}
    entries = read_list((ROOT / LIST).read_text(encoding="utf-8"))
    problems = [*list_faults(entries, texts, names, COMPARED), *unlisted(entries, texts)]
    for compare in COMPARED.values():
        problems += compare(write="--write" in sys.argv)
    print("\n".join(problems) if problems else f"generated: {len(entries)} kinds of files, {len(COMPARED)} compared here")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
