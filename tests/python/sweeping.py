"""Helpers of the sweep tests: a small plan, and the contents of a folder."""

import hashlib
import json
from pathlib import Path
from typing import Any

from anabranch.results.folder import TABLES
from conftest import scenario

PLAN = """
name = "small"
scenario = "base.toml"
seeds = [1, 2, 3]

[factors]
"connection.main.scheduler" = ["min_rtt", "ecf"]
"path.wifi.rate" = ["4Mbit/s", "8Mbit/s"]
"""


def write_plan(folder: Path, text: str = PLAN, duration: str = "2s") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "base.toml").write_text(scenario(duration).to_toml())
    file = folder / "plan.toml"
    file.write_text(text)
    return file


def tables(folder: Path) -> dict[str, str]:
    """The SHA-256 of every table and scenario of a results folder."""
    files = [*(folder / f"{name}.parquet" for name in TABLES), *folder.glob("scenarios/*.toml")]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def provenance(folder: Path) -> dict[str, Any]:
    about: dict[str, Any] = json.loads((folder / "provenance.json").read_text())
    return about
