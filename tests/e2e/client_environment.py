"""The virtual environment that holds the official clients, for tests that talk as users do."""

import fcntl
import os
import pathlib
import subprocess
import sys

REQUIREMENTS = pathlib.Path(__file__).resolve().parent / "requirements.txt"
SKIPPED = 77


def enter_environment(folder, packages=("openai", "anthropic")):
    """Runs the calling program again under the environment's Python, which `folder` holds.

    Makes the environment first where it is missing; several tests may ask for it at once. Ends the
    process with 77 (skipped) where pip cannot install the clients.
    """
    if os.environ.get("FORETOKEN_E2E_INSIDE") == "1":
        return
    folder = pathlib.Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        python = folder / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        probe = subprocess.run([python, "-c", "import " + ", ".join(packages)],
                               capture_output=True, check=False)
        if probe.returncode != 0:
            install = subprocess.run(
                [python, "-m", "pip", "install", "--quiet", "-r", str(REQUIREMENTS)],
                capture_output=True, text=True, check=False)
            if install.returncode != 0:
                print("skipped: pip cannot install the clients:", install.stderr[-500:])
                sys.exit(SKIPPED)
    os.environ["FORETOKEN_E2E_INSIDE"] = "1"
    os.execv(python, [str(python), *sys.argv])
