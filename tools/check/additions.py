"""Check that a part which users choose by name is known to at most two files of code.

    python3 tools/check/additions.py

A scheduler, a middlebox, a queue or a workload stands in its own file, and in the list of its
kind. All other code iterates the lists. So a new part touches two files (CONTRIBUTING.md,
"Additions"). The check takes the parts of each kind and searches the code of all crates and of the
Python package for their names: without comments and tests, without generated code, and without the
packages that choose parts as users do, such as gallery and twins.

More files may know a part that means more than itself: what explains Linux names its scheduler. So
the check asks of each kind that some part is within the two files, and prints how many are.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST = 2

KINDS = {
    "scheduler": "crates/anabranch-proto/src/scheduler",
    "congestion control": "crates/anabranch-proto/src/congestion",
    "path manager": "crates/anabranch-proto/src/path_manager",
    "remedy": "crates/anabranch-proto/src/remedy",
    "platform": "crates/anabranch-proto/src/platform",
    "queue": "crates/anabranch-net/src/queue",
    "middlebox": "crates/anabranch-net/src/middlebox",
    "workload": "crates/anabranch-sim/src/workload",
}
GENERATED = "python/anabranch/scenarios/classes.py"
CHOOSERS = re.compile(r"python/anabranch/(calibration|gallery|twins|advice|explanations)/|/bin/")
TEST_FILE = re.compile(r"^tests$|_tests$|^round_trip$")
COMMENT = re.compile(r"^\s*(//|#|\"\"\").*$", re.MULTILINE)
RUST_TESTS = re.compile(r"#\[cfg\(test\)\]\n(pub\S* )?(\S+ \S+ )?mod .*", re.DOTALL)


def sources() -> dict[Path, str]:
    """The code of every file, without comments and tests."""
    found = {}
    for file in [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/anabranch/**/*.py")]:
        name = str(file.relative_to(ROOT))
        is_test = "tests" in file.parts or TEST_FILE.search(file.stem)
        if name == GENERATED or CHOOSERS.search(name) or is_test:
            continue
        text = RUST_TESTS.sub("", file.read_text(encoding="utf-8"))
        found[file] = COMMENT.sub("", text)
    return found


def entries(folder: Path) -> dict[str, Path]:
    """The names of a kind's parts, as scenarios have them, with their files."""
    found = {}
    for file in sorted(folder.rglob("*.rs")):
        text = file.read_text(encoding="utf-8")
        if "impl Part for" in text or "part_without_parameters!" in text:
            for name in re.findall(r"\bNAME(?:: &'static str)? = \"(\w+)\";", text):
                found[name] = file
    return found


def users(kind: str, name: str, code: dict[Path, str]) -> list[Path]:
    """The files whose code has the name of a part, or that of its module or type."""
    camel = "".join(word.capitalize() for word in name.split("_"))
    # "rfc" and "linux" are also words.
    word = rf"\"{name}\"|\b{name}::" if kind == "platform" else rf"\b{name}\b|\b{camel}\b"
    known = re.compile(rf"{word}|\b{camel}Config\b")
    return [file for file, text in code.items() if known.search(text)]


def main() -> int:
    """Print for each kind the part that the fewest files know, and fail if these are too many."""
    code, failed = sources(), False
    for kind, folder in KINDS.items():
        counts = {name: users(kind, name, code) for name in entries(ROOT / folder)}
        least = min(counts, key=lambda name: len(counts[name]))
        files = sorted(str(file.relative_to(ROOT)) for file in counts[least])
        failed |= len(files) > MOST
        within = sum(len(each) <= MOST for each in counts.values())
        print(f"{kind}: {within} of {len(counts)} within {MOST} files; {least}: {', '.join(files)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
