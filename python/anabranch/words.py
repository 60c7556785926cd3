"""Words for numbers of things."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number of things, such as ``"1 run"`` or ``"1,200 runs"``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
