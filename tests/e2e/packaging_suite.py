#!/usr/bin/env python3
"""The systemd units under systemd-analyze, the Dockerfile under hadolint, the examples for clusters
under the shells and a YAML parser: packaging_suite.py PROGRAM. What lacks its tool is left out."""

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


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    results = [check_cluster(program)]
    if shutil.which("systemd-analyze"):
        results.append(check_unit(program))
    if shutil.which("hadolint"):
        results.append(run(["hadolint", PACKAGING / "docker" / "Dockerfile"])[0])
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
