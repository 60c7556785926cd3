"""The engine and the emulated network, compiled."""

import os

__all__ = ["ScenarioError", "__version__", "json_schema", "run", "validate"]

__version__: str

class ScenarioError(ValueError):
    """What is wrong with a scenario: one line with file, key, value and what would be right."""

def validate(toml: str, file: str, folder: str | os.PathLike[str] | None = None) -> str: ...
def json_schema() -> str: ...
def run(toml: str, file: str, seed: int, pcap: str | None = None) -> dict[str, object]: ...
