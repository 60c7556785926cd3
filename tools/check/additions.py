"""Check that a part which users choose by name is known to at most two files of code.

    python3 tools/check/additions.py

A scheduler, a middlebox, a queue or a workload stands in its own file, and in the list of its
kind. All other code iterates the lists. So a new part touches two files (CONTRIBUTING.md,
"Additions"). The check takes the parts of each kind and searches the code of all crates and of the
Python package for their names: without comments and tests, without generated code, and without the
packages that choose parts as users do, such as gallery and twins, or translate them into the words
of other programs, which have words for some parts only.

More files may know a part that means more than itself: what explains Linux names its scheduler. So
the check asks of each kind that some part is within the two files, and prints how many are. Of
platforms it asks this of every one, because the engine never asks which platform it is. The files
of `platform/` may call the functions of Linux's folder, which has the numbers of Linux's platforms.

A metric of a run is computed in `metrics/` of anabranch-sim, and has its words and unit in
`gallery/metrics.py`. Metrics that the engine counts are known to more files.
"""

import re
import sys
from functools import cache
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
    "shaper": "crates/anabranch-net/src/shaper",
    "middlebox": "crates/anabranch-net/src/middlebox",
    "workload": "crates/anabranch-sim/src/workload",
}
METRICS = "python/anabranch/gallery/metrics.py"
EVERY = {"platform"}
"""The kinds of which every part must be known to few files."""
GENERATED = "python/anabranch/scenarios/classes.py"
CHOOSERS = re.compile(
    r"python/anabranch/(calibration|exchange|gallery|twins|advice|explanations)/|/bin/"
)
TEST_FILE = re.compile(r"^tests$|_tests$|^round_trip$")
COMMENT = re.compile(r"^\s*(//|#|\"\"\").*$", re.MULTILINE)
RUST_TESTS = re.compile(r"#\[cfg\(test\)\]\n(pub\S* )?(\S+ \S+ )?mod .*", re.DOTALL)


def sources() -> dict[Path, str]:
    """The code of every file, without comments and tests."""
    found = {}
    for file in [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/anabranch/**/*.py")]:
        name = str(file.relative_to(ROOT))
        is_test = "tests" in file.parts or TEST_FILE.search(file.stem)
        is_chooser = CHOOSERS.search(name) and name != METRICS
        if name == GENERATED or is_chooser or is_test:
            continue
        text = RUST_TESTS.sub("", file.read_text(encoding="utf-8"))
        found[file] = COMMENT.sub("", text)
    return found


@cache
def entries(folder: Path) -> dict[str, Path]:
    """The names of a kind's parts, as scenarios have them, with their files."""
    found = {}
    for file in sorted(folder.rglob("*.rs")):
        text = file.read_text(encoding="utf-8")
        if "impl Part for" in text or "part_without_parameters!" in text:
            for name in re.findall(r"\bNAME(?:: &'static str)? = \"([\w.-]+)\";", text):
                found[name] = file
    return found


def metrics() -> set[str]:
    """The columns of the registry of metrics."""
    text = (ROOT / METRICS).read_text(encoding="utf-8")
    return {*re.findall(r"\bMetric\(\s*\"(\w+)\"", text)}


def namesakes(kind: str, name: str) -> set[Path]:
    """The files of the parts of other kinds that have this name."""
    folders = [ROOT / folder for other, folder in KINDS.items() if other != kind]
    found = {entries(folder)[name]: folder for folder in folders if name in entries(folder)}
    return {*found, *(folder / "mod.rs" for folder in found.values())}


def users(kind: str, name: str, code: dict[Path, str]) -> list[Path]:
    """The files whose code has the name of a part, or that of its module or type.

    They do not include the two files of a part of another kind that has the same name.
    """
    elsewhere = namesakes(kind, name)
    camel = "".join(word.capitalize() for word in name.split("_"))
    # "rfc" and "linux" are also words: of an operating system, of a group in a pattern.
    word = rf"\b{name}\b|\b{camel}\b"
    if kind == "platform":
        word = rf"(?<!target_os = )(?<!sys\.platform != )(?<!\[)\"{name}\""
    known = re.compile(rf"{word}|\b{camel}Config\b")
    return [file for file, text in code.items() if file not in elsewhere and known.search(text)]


def main() -> int:
    """Print for each kind the part that decides, with its files, and fail if these are too many."""
    code, failed = sources(), False
    names = {kind: {*entries(ROOT / folder)} for kind, folder in KINDS.items()}
    for kind, parts in {**names, "metric": metrics()}.items():
        counts = {name: users(kind, name, code) for name in sorted(parts)}
        pick = max if kind in EVERY else min
        decides = pick(counts, key=lambda name: len(counts[name]))
        files = sorted(str(file.relative_to(ROOT)) for file in counts[decides])
        failed |= len(files) > MOST
        within = sum(len(each) <= MOST for each in counts.values())
        print(
            f"{kind}: {within} of {len(counts)} within {MOST} files; {decides}: {', '.join(files)}"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
