"""The virtual environments of the peers: made once, in an ignored folder, from pinned files."""

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOLDER = ROOT / ".bench"
"""Environments, databases and logs of the benchmark."""


def python_of(name: str) -> Path:
    """Return an environment's interpreter; make the environment when it is not up to date.

    `name` is that of its `requirements-….txt`.
    """
    requirements = HERE / f"requirements-{name}.txt"
    folder = FOLDER / name
    python = folder / "bin" / "python"
    stamp = folder / "installed.txt"
    if stamp.exists() and stamp.read_text() == requirements.read_text():
        return python
    sys.stderr.write(f"making the environment {name} …\n")
    venv.create(folder, with_pip=True, clear=True)
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check",
         "--no-deps", "-r", requirements],
        check=True,
    )  # fmt: skip
    stamp.write_text(requirements.read_text())
    return python
