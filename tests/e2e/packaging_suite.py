#!/usr/bin/env python3
"""The systemd units under systemd-analyze, the Dockerfile under hadolint, the examples for clusters
under the shells and a YAML parser: packaging_suite.py PROGRAM. What lacks its tool is left out."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PACKAGING = pathlib.Path(__file__).resolve().parents[2] / "packaging"
MOST_EXPOSED = 20  # tenths, of 100


def run(words):
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    said = (result.stdout + result.stderr).strip()
    print(f"{' '.join(map(str, words))}: exit {result.returncode}\n{said}", flush=True)
    return result.returncode == 0, said


def check_unit(program):
    """The unit as installed, but for where the program is: that file must be there."""
    text = (PACKAGING / "systemd" / "foretoken.service").read_text(encoding="utf-8")
    assert "ExecStart=/usr/bin/foretoken " in text
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder) / "foretoken.service"
        unit.write_text(text.replace("/usr/bin/foretoken", program), encoding="utf-8")
        verified, said = run(["systemd-analyze", "verify", "--man=no", unit])
        # Warnings about other units of the machine are none of ours.
        ours = [line for line in said.splitlines() if "foretoken" in line]
        safe, _ = run(["systemd-analyze", "security", "--offline=true",
                       f"--threshold={MOST_EXPOSED}", unit])
        return verified and not ours and safe


def check_cluster(program):
    """The examples for several hosts: the unit, the scripts, the manifests."""
    folder = PACKAGING / "cluster"
    good = all(
        run([shell, "-n", folder / name])[0]
        for shell, name in (("bash", "foretoken.sbatch"), ("sh", "restart-mpirun.sh"))
    )
    if shutil.which("systemd-analyze"):
        text = (folder / "foretoken-rank@.service").read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as place:
            unit = pathlib.Path(place) / "foretoken-rank@1.service"
            unit.write_text(text.replace("/usr/bin/foretoken", program), encoding="utf-8")
            verified, said = run(["systemd-analyze", "verify", "--man=no", unit])
            good &= verified and "foretoken-rank" not in said.replace(place, "").split(".service:")[0]
    try:
        import yaml
    except ImportError:
        print("no yaml module: lws.yaml is not parsed")
        return good
    parts = list(yaml.safe_load_all((folder / "lws.yaml").read_text(encoding="utf-8")))
    template = parts[0]["spec"]["leaderWorkerTemplate"]
    commands = [
        template[which]["spec"]["containers"][0]["args"] for which in ("leaderTemplate", "workerTemplate")
    ]
    return good and parts[0]["kind"] == "LeaderWorkerSet" and commands[0] == commands[1]


def check_entrypoint():
    """What the program gets of the arguments of an image."""
    with tempfile.TemporaryDirectory() as place:
        fake = pathlib.Path(place) / "foretoken"
        fake.write_text("#!/bin/sh\necho \"$*\"\n", encoding="utf-8")
        fake.chmod(0o755)
        env = {"PATH": f"{place}:{os.environ['PATH']}", "FORETOKEN_IMAGE_DEVICE": "cuda"}

        def gets(*arguments):
            command = [PACKAGING / "docker" / "entrypoint", *arguments]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            return done.stdout.strip()

        served = "serve --device cuda m --port 1"
        return (
            gets("serve", "m", "--port", "1") == served
            and gets("vllm", "serve", "m", "--port", "1") == served
            and gets("org/m", "--port", "1") == served.replace("m ", "org/m ")
            and gets("--model", "m") == "serve --device cuda --model m"
            and gets("inspect", "m") == "inspect m"
            and gets("--version") == "--version"
        )


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    results = [check_cluster(program), check_entrypoint()]
    if shutil.which("systemd-analyze"):
        results.append(check_unit(program))
    if shutil.which("hadolint"):
        results.append(run(["hadolint", PACKAGING / "docker" / "Dockerfile"])[0])
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
