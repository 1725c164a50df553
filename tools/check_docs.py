#!/usr/bin/env python3
"""Links of the documents lead to something, and what they name is there.

- A link without a scheme is a file of the tree, with `#heading` a heading of it.
- A path in backquotes or in a block of code that begins with one of FOLDERS is a file, a folder, or such without its suffix.
- Commands still run: commands of the program, flags of any program of the tree, folders for `./test`,
  presets of CMake, test programs and the names in their --gtest_filter are in the sources.
- Pages about the code (CODE_PAGES) name types, constants and files of src/ that exist.
- docs/ARCHITECTURE.md is short, and lines of CODE_PAGES can be read.

Exit code 1: a line for each fault.
"""

import functools
import pathlib
import re
import subprocess
import sys

from tree import ROOT

FOLDERS = ("tools", "tests", "bench", "examples", "deploy", "packaging", "models", "docs", "src", "apps", "include", "python",
           "cmake", "text-crate", r"\.ci")
LINK = re.compile(r"\[[^\]]*\]\(<?([^()\s>]+)>?(?: +\"[^\"]*\")?\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]^]+\]: +<?([^\s>]+)>?", re.M)
TAG_LINK = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"")
# One with < or $ in it, or a *, says a form; a = before it, what another program is given.
PATH = re.compile(rf"(?<![\w/.*$<>{{}}=-])(?:\./)?((?:{'|'.join(FOLDERS)})/[\w.@+-]+(?:/[\w.@+-]+)*)(?![\w*<${{(-]|\.\w|/[\w*<$.{{])")
# x, or name, stands for any: tests/doors/x_door.py.
ANY_NAME = re.compile(r"(?:^|/)(?:x|name)(?:[._/]|$)")
FORMS_OF_NAMES = {"PascalCase", "kPascalCase"}
SNAKE_NAME = re.compile(r"([a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?:\(\))?")
# Of other projects, and words that the glossary advises against.
FOREIGN_NAMES = {"bench_serving", "ollama_chat", "put_eof", "lora_rank"}
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
CODE_PAGES = ("docs/ARCHITECTURE.md", "docs/kernels.md", "docs/NOTES.md", "docs/internals/", "docs/decisions/",
              "docs/glossary.md", "CONTRIBUTING.md")
MAX_LINES = {"docs/ARCHITECTURE.md": 250}
MAX_LINE = 400
DECLARED_FLAG = re.compile(r'add_argument\(\s*(?:"-\w", *)?"--([a-z][a-z0-9_-]+)"')
# Flags of programs that are not in the tree.
FOREIGN_FLAGS = set("""
    all apply args branch build build-arg config device display-name editable env force format from gpus gres gtest_filter
    gtest_also_run_disabled_tests help hostfile index-url install ipc json map-by name network no-build-isolation
    no-cache-dir no-deps nodes now ntasks ntasks-per-node one-file-system output-on-failure oversubscribe
    parallel prefix preset publish pull remote-debugging-port rm rpc set since strict switch tag target upgrade
    user user-data-dir version volume wheel-dir recursive allow-run-as-root diff-filter name-only device-id
    """.split())


def anchors(text):
    """The names that a page's headings can be linked by, as GitHub makes them."""
    lines = re.findall(r"^#+ +(.*?) *$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def tracked(*patterns):
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT,
                           capture_output=True, text=True, check=False).stdout.split()
    return [name for name in names if (ROOT / name).is_file()]


@functools.cache
def sources():
    """Text of everything that is not a document, by the first folder of its path."""
    endings = (".h", ".cpp", ".cu", ".cuh", ".def", ".py", ".sh", ".cmake", ".rs", ".inc")
    files = [name for name in tracked() if name.endswith((*endings, "CMakeLists.txt")) or
             "." not in name.rsplit("/", 1)[-1]]
    found = {}
    for name in files:
        if name.startswith(("tests/golden/", "models/")) or name.startswith("tools/check_docs"):
            continue
        found.setdefault(name.split("/")[0], []).append((ROOT / name).read_text(errors="replace"))
    return {folder: "\n".join(texts) for folder, texts in found.items()}


@functools.cache
def all_paths():
    return "\n".join(tracked())


@functools.cache
def words():
    return set(re.findall(r"\w+", "\n".join(sources().values())))


@functools.cache
def flags():
    """Flags that some program of the tree reads or passes on; a field of a table is one, too. Of tests, which pass what
    nobody knows, those that a script declares."""
    text = "\n".join(texts for folder, texts in sources().items() if folder != "tests")
    declared = set(DECLARED_FLAG.findall(sources().get("tests", "")))
    fields = {name.replace("_", "-") for name in re.findall(r'"([a-z0-9_]+)"', sources().get("src", ""))}
    return set(re.findall(r"--([a-z][a-z0-9_-]+)", text)) | declared | fields | FOREIGN_FLAGS


@functools.cache
def commands():
    return set(re.findall(r'add_subcommand\(\s*"([\w-]+)"', sources().get("apps", "")))


@functools.cache
def tests_of(folder):
    texts = [path.read_text(errors="replace") for path in (ROOT / "tests" / folder).rglob("*.cpp")]
    texts += [path.read_text(errors="replace") for path in (ROOT / "tests" / folder).rglob("*.h")]
    return "\n".join(texts)


def command_faults(code):
    code = re.sub(r"(?m)(^|\s)# .*$", "", code)
    for word in re.findall(r"(?m)(?:^|`|/|\| )(?:foretoken|\$F) ([a-z][a-z-]+)\b(?![.=])", code):
        if word not in commands():
            yield f"foretoken has no command {word}"
    for flag in re.findall(r"(?<![\w-])--([a-z][a-z0-9_-]*[a-z0-9])(?![\w*-])", code):
        # --no-x is the other way of a flag --x, or a flag of its own.
        if not {flag, flag.removeprefix("no-")} & flags():
            yield f"no program of the tree knows --{flag}"
    for line in re.findall(r"(?m)(?:^|[`$=] ?|\d |&& )\./test((?: [a-z_0-9/]+)+)(?=`|\s|$)", code):
        for name in line.split():
            if not (ROOT / "tests" / name).is_dir() and name != "python":
                yield f"./test {name}: there is no tests/{name}"
    for name in re.findall(r"--preset[ =]([\w-]+)", code):
        if f'"{name}"' not in (ROOT / "CMakePresets.json").read_text():
            yield f"there is no preset {name}"
    for folder, pattern in re.findall(r"\btest_(\w+)(?: --gtest\w+)*? --gtest_filter='([^']+)'", code):
        if not (ROOT / "tests" / folder).is_dir():
            yield f"there is no test program test_{folder}"
            continue
        for piece in re.split(r"[*:./\-]+", pattern):
            if len(piece) > 3 and piece not in tests_of(folder):
                yield f"test_{folder} has no test that {piece} could mean"


def name_faults(code):
    """Types, constants and files of src/ in a page about the code."""
    inside = code.strip("`")
    if "\n" in inside or " " in inside:
        return
    for name in re.findall(r"^(?:k?[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+(?:::\w+)?|[A-Z]\w+(?:::\w+)+)$", inside):
        if name not in FORMS_OF_NAMES and not all(part in words() for part in name.split("::")):
            yield f"{name} is in no source"
    snake = SNAKE_NAME.fullmatch(inside)
    if snake and "x" not in snake[1].split("_") and snake[1] not in words() | FOREIGN_NAMES and \
            not (ROOT / "tests" / snake[1].removeprefix("test_")).is_dir():
        yield f"{inside} is in no source"
    if re.fullmatch(r"[a-z]\w*(?:/[a-z]\w*)+(?:\.(?:h|cpp|cuh?|def))?", inside) and not ANY_NAME.search(inside):
        if not re.search(rf"(?m)(?:^|/){re.escape(inside)}(?:$|[/.\w])", all_paths()) and inside.split("/")[0] != "doors":
            yield f"{inside} is no file or folder of the tree"


def is_there(path):
    """Whether a path is one of the tree, with or without its suffix; a build makes what lies below build/."""
    path = path.rstrip(".")
    return (ROOT / path).exists() or any((ROOT / path).parent.glob(pathlib.PurePath(path).name + ".*"))


def link_faults(page, text):
    plain = CODE.sub("", text)
    for link in LINK.findall(plain) + REFERENCE.findall(plain) + TAG_LINK.findall(plain):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists():
            yield f"the link to {link} leads nowhere"
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield f"{name or page.name} has no heading #{anchor}"


def faults_of(page):
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    yield from link_faults(page, text)
    measured = name.startswith("bench/results/")  # commands of the day that it was measured
    for code in CODE.findall(text):
        for path in [] if measured else PATH.findall(code):
            if not is_there(path) and not ANY_NAME.search(path):
                yield f"{path} is not there"
        yield from [] if measured else command_faults(code)
        yield from name_faults(code) if name.startswith(CODE_PAGES) else []
    lines = text.splitlines()
    if len(lines) > MAX_LINES.get(name, len(lines)):
        yield f"has {len(lines)} lines; {MAX_LINES[name]} are the most"
    if name.startswith(CODE_PAGES):
        yield from (f"line {number} has {len(line)} characters; {MAX_LINE} are the most"
                    for number, line in enumerate(lines, 1) if len(line) > MAX_LINE)


def main():
    names = tracked("*.md")
    # What the history names may be gone; a card's links are those of the model's folder.
    pages = [ROOT / name for name in names or ["README.md", "CONTRIBUTING.md"]
             if name != "CHANGELOG.md" and "/cards/" not in name and (ROOT / name).is_file()]
    faults = [f"{page.relative_to(ROOT)}: {fault}" for page in pages for fault in dict.fromkeys(faults_of(page))]
    print("\n".join(faults) or f"docs: {len(pages)} pages")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
