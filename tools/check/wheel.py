"""Check wheels, install this machine's wheel in a bare environment, and run it.

    python tools/check/wheel.py WHEEL...

Every wheel must contain all files of the package, the licences, and a module for its processor. The
script installs the wheel for this machine, from wheels only and without a compiler on the path. The
installed package must reproduce an experiment with the digest in tests/digests.toml, and `uvx` must
start it. The script prints a line for each check, and exits with 1 at the first failure. It needs
uv next to this Python.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).parent / "uv"
ENTRY = "nsdi12-fig7"
MODULE = "anabranch/_core.abi3.so"
PROCESSORS = {"x86_64": 62, "aarch64": 183}
"""Numbers of processors in the header of an ELF file, at byte 18."""


def main() -> None:
    wheels = [Path(each).resolve() for each in sys.argv[1:]]
    for wheel in wheels:
        check_contents(wheel)
    glibc = re.compile(rf"-(many)?linux.*_{platform.machine()}")
    local = [each for each in wheels if glibc.search(each.stem)]
    if not local:
        sys.exit(f"there is no wheel with glibc for this machine ({platform.machine()})")
    with tempfile.TemporaryDirectory(prefix="anabranch-wheel-") as folder:
        use(local[0], Path(folder))


def check_contents(wheel: Path) -> None:
    """Compare the wheel's files with the sources, and its module with its name."""
    name, version, _, _, tag = wheel.stem.split("-")
    info = f"{name}-{version}.dist-info"
    with ZipFile(wheel) as archive:
        files = set(archive.namelist())
        header = archive.read(MODULE)[:20]
    licences = {f"{info}/licenses/LICENSE-{each}" for each in ("APACHE", "MIT")}
    if missing := (sources() | licences) - files:
        sys.exit(f"{wheel.name} lacks {', '.join(sorted(missing))}")
    if surplus := {each for each in files - sources() - {MODULE} if not each.startswith(info)}:
        sys.exit(f"{wheel.name} should not contain {', '.join(sorted(surplus))}")
    processor = next(each for each in PROCESSORS if tag.endswith(each))
    if int.from_bytes(header[18:20], "little") != PROCESSORS[processor]:
        sys.exit(f"{wheel.name} contains a module for another processor")
    print(f"{wheel.name}: {len(files)} files, a module for {processor}")


def sources() -> set[str]:
    """The files of the package, without those that Python and maturin create in the tree."""
    folder = ROOT / "python"
    files = (each for each in folder.rglob("*") if each.is_file())
    return {
        each.relative_to(folder).as_posix() for each in files if each.suffix not in (".pyc", ".so")
    }


def use(wheel: Path, folder: Path) -> None:
    """Install the wheel in a new environment in this folder, and run its command."""
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv/bin"
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # This path contains nothing else, in particular no compiler.
    bare = usual | {"PATH": str(programs)}

    def run(
        program: Path,
        *arguments: str | Path,
        environment: dict[str, str] = bare,
        statuses: tuple[int, ...] = (0,),
    ) -> str:
        command = [program, *arguments]
        done = subprocess.run(
            command, env=environment, cwd=folder, text=True, capture_output=True, check=False
        )
        said = done.stdout + done.stderr
        if done.returncode not in statuses:
            sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{said}")
        return said.strip()

    anabranch = programs / "anabranch"
    run(programs / "pip", "install", "--quiet", "--only-binary", ":all:", wheel)
    version = run(anabranch, "--version")
    if version.split() != wheel.name.split("-")[:2]:
        sys.exit(f"{wheel.name} reports version {version}")
    if run(programs / "python", "-m", "anabranch", "--version") != version:
        sys.exit("python -m anabranch is another version")
    print(f"installed without a compiler: {version}")

    run(anabranch, "reproduce", ENTRY, "--seeds", "1", "--out", "results")
    digest = tomllib.loads((ROOT / "tests/digests.toml").read_text())["gallery"][ENTRY]
    if digest not in (folder / "results/report.html").read_text():
        sys.exit(f"{ENTRY}: the report does not have the digest {digest} of tests/digests.toml")
    print(f"reproduced {ENTRY}: digest {digest}")

    # 1 and 2: this host does not support live runs.
    said = run(anabranch, "doctor", statuses=(0, 1, 2))
    says = re.search(r"^live runs are .*\nanabranch shell is .*\Z", said, re.MULTILINE)
    if not says and not said.startswith("anabranch: live runs need "):
        sys.exit(f"anabranch doctor does not say what this host supports:\n{said}")
    print(f"doctor: {said.splitlines()[-1]}")

    uvx = (UV, "tool", "run", "--no-build", "--python", programs / "python", "--from", wheel)
    # uv needs commands of the usual path, such as realpath.
    cache = usual | {"UV_CACHE_DIR": str(folder / "uv")}
    started = run(*uvx, "anabranch", "--version", environment=cache)
    if version not in started.splitlines():
        sys.exit(f"uvx anabranch --version prints: {started}")
    print("uvx starts it")


if __name__ == "__main__":
    main()
