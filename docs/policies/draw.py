"""Draw the pictures of the policy pages, from runs.

python docs/policies/draw.py                  draw all pictures into docs/policies/img
python docs/policies/draw.py blest            draw one picture, and print its numbers
python docs/policies/draw.py blest --out DIR  draw it into another folder
"""

from __future__ import annotations

import argparse
import io
import re
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

import matplotlib

from pictures import common, congestion_controls, path_managers, remedies, schedulers

MODULES = (schedulers, remedies, congestion_controls, path_managers)
"""The modules with pictures. Their import registers the pictures."""

HERE = Path(__file__).parent


def main() -> None:
    """Draw the pictures that the command line names, or all pictures."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the policy pages.")
    names = [each.name for each in common.ALL]
    parser.add_argument("names", nargs="*", choices=[[], *names], metavar="NAME")
    parser.add_argument("--out", type=Path, default=HERE / "img", help="folder for the pictures")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    to_draw = [name for name in names if name in chosen.names or not chosen.names]
    with ProcessPoolExecutor() as pool:
        for lines in pool.map(draw, to_draw, repeat(chosen.out)):
            print(*lines, sep="\n", flush=True)


def draw(name: str, out: Path) -> list[str]:
    """Draw one picture. Returns lines with the numbers behind it."""
    (each,) = (picture for picture in common.ALL if picture.name == name)
    started = time.perf_counter()
    with matplotlib.rc_context(common.style()):
        figure, caption = common.compose(each)
        svg = io.StringIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    file = out / f"{each.name}.svg"
    file.write_text(rounded(svg.getvalue()), encoding="utf-8")
    return [
        f"{name} ({time.perf_counter() - started:.1f} s): {caption.title}",
        f"  {one_line(caption.runs)}",
        *(f"  {one_line(what)}: {value:.4g}" for what, value in caption.numbers.items()),
    ]


def one_line(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(text.split())


def rounded(svg: str) -> str:
    """The picture with coordinates rounded to two decimal places. Its text is unchanged."""
    svg = re.sub(r"<[a-z][^<>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


if __name__ == "__main__":
    main()
