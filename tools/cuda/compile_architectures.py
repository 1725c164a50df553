#!/usr/bin/env python3
"""Compiles the plug-in's device code for each architecture, one file after another, and prints a table
of sizes and processor seconds. A file of results lets a run that was ended go on:
  tools/cuda/compile_architectures.py --nvcc build/cuda-toolkit/root/bin/nvcc --results archs.jsonl
  ... --archs 100a --only attention,latent     one architecture, some of the files"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ARCHS = "80,86,89,90a,100a,120"  # as FORETOKEN_CUDA_ARCHS=all
FLAGS = ["-std=c++20", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", "-lineinfo", "-Isrc", "-Iinclude",
         '-DFORETOKEN_CUDA_ARCHS="measured"', "-Xcompiler=-Wall,-Wextra,-Wshadow", "-fatbin"]


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compile_one(nvcc, file, arch):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "code.fatbin"
        begin = processor_seconds()
        done = subprocess.run(
            [nvcc, *FLAGS, f"-gencode=arch=compute_{arch},code=sm_{arch}", "-o", str(out), file],
            cwd=ROOT, capture_output=True, text=True, check=False)
        return {"file": file, "arch": arch, "rc": done.returncode,
                "seconds": round(processor_seconds() - begin, 2),
                "bytes": out.stat().st_size if out.exists() else 0, "said": done.stderr[-1500:]}


def table(results):
    print("| architecture | files | failed | device code, MB | processor seconds |")
    print("|---|---|---|---|---|")
    for arch in dict.fromkeys(result["arch"] for result in results):
        own = [result for result in results if result["arch"] == arch]
        size = sum(result["bytes"] for result in own) / 1e6
        print(f"| sm_{arch} | {len(own)} | {sum(result['rc'] != 0 for result in own)} | {size:.1f} | "
              f"{sum(result['seconds'] for result in own):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--archs", default=ARCHS)
    parser.add_argument("--only", default="", help="files whose path has one of these words")
    parser.add_argument("--results", required=True)
    given = parser.parse_args()
    path = pathlib.Path(given.results)
    known = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(result["file"], result["arch"]) for result in known}
    files = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "src").rglob("*.cu")
                   if not {"flashinfer", "flashmla"} & set(file.parts))
    files = [file for file in files if any(word in file for word in given.only.split(","))]
    for arch in given.archs.split(","):
        for file in files:
            if (file, arch) in done:
                continue
            known.append(compile_one(given.nvcc, file, arch))
            with path.open("a") as out:
                out.write(json.dumps(known[-1]) + "\n")
            if known[-1]["rc"] != 0:
                print(f"{file}, sm_{arch}: {known[-1]['said']}", file=sys.stderr)
    table(known)
    return any(result["rc"] != 0 for result in known)


if __name__ == "__main__":
    sys.exit(main())
