"""Words for numbers of things and for lists."""

from collections.abc import Iterable


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number of things, such as ``"1 run"`` or ``"1,200 runs"``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def listed(names: Iterable[object], last: str = "and") -> str:
    """Names as in a sentence, such as ``"a"``, ``"a and b"`` or ``"a, b and c"``."""
    *others, end = [str(name) for name in names] or [""]
    return f"{', '.join(others)} {last} {end}" if others else end
