"""Words for numbers of things and for lists."""

from collections.abc import Sequence


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number of things, such as ``"1 run"`` or ``"1,200 runs"``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def listed(names: Sequence[str]) -> str:
    """Names as in a sentence, such as ``"a"``, ``"a and b"`` or ``"a, b and c"``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
