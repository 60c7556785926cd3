"""Reference pages: commands from the command line, keys from schemas, Python from docstrings."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from anabranch import _core
from anabranch.cli import main as command_line
from anabranch.sweeps.schema import PLAN

Schema = dict[str, Any]

_EXAMPLES = {
    "Duration": '"20ms"',
    "Rate": '"8Mbit/s"',
    "Size": '"200KiB"',
    "QueueLimit": '"54packets"',
    "Probability": '"1%"',
    "Factor": '"0.5"',
}
"""Values of the types that are texts with a unit."""


# ---- Rust -----------------------------------------------------------------------------------


def rust(root: Path) -> str:
    """The page of the crates. `make docs` puts their documentation next to it, in rust/."""
    parts = [
        "# Rust\n",
        "The crates are not on crates.io yet. A program names the folder of the repository:\n",
        "```toml\n[dependencies]",
        'anabranch-host = { path = "../anabranch/crates/anabranch-host" }\n```\n',
        "| crate | |\n|---|---|",
    ]
    for manifest in sorted(root.glob("crates/*/Cargo.toml")):
        package = tomllib.loads(manifest.read_text(encoding="utf-8"))["package"]
        if package.get("publish", True):
            name = package["name"]
            page = f"../rust/{name.replace('-', '_')}/index.html"
            parts.append(f'| <a href="{page}">{name}</a> | {package["description"]} |')
    parts.append(
        "\n[Streams in Rust](../streams.md) and "
        "[your own policy in Rust](../policies/your-own.md#in-rust) have whole programs.\n"
    )
    return "\n".join(parts)


# ---- commands -------------------------------------------------------------------------------


def commands() -> str:
    """The page of all commands."""
    group: Any = typer.main.get_command(command_line.app)
    parts = ["# Commands\n", f"{group.help}\n", _table_of_commands(group)]
    parts += [
        "Every command has `--help`. `anabranch --install-completion` installs completion for "
        "bash, zsh, or fish.\n",
        "Exit status: 0 if the command completed; 1 if a claim, a script or a capture failed a "
        "check that was asked for, or if a run broke a promise of the engine; 2 for bad input; 130 "
        "after Ctrl-C.\n",
    ]
    parts += [_command(name, command) for name, command in group.commands.items()]
    return "\n".join(parts)


def _table_of_commands(group: Any) -> str:
    rows = [
        f"| [`{name}`](#{name}) | {command.help.splitlines()[0]} |"
        for name, command in group.commands.items()
    ]
    return "\n".join(["| command | what it does |", "|---|---|", *rows, ""])


def _command(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join(["anabranch", name, *(_metavar(each) for each in arguments), "[OPTIONS]"])
    rows = [(f"`{_metavar(each)}`", each.help or "", "") for each in arguments]
    rows += [_option(each) for each in options if "--help" not in each.opts]
    table = ["| argument or option | meaning | default |", "|---|---|---|"]
    table += [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows]
    example = command.epilog.removeprefix("Example: ") if command.epilog else None
    parts = [f"## {name}\n", f"```text\n{usage}\n```\n", _paragraphs(command.help)]
    parts += ["\n".join(table), ""] if rows else []
    parts += [f"Example:\n\n```sh\n{example}\n```\n"] if example else []
    return "\n".join(parts)


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _option(option: Any) -> tuple[str, str, str]:
    value = "" if option.is_flag else f" {option.metavar or option.display_type}"
    names = ", ".join(f"`{name}{value}`" for name in option.opts)
    meaning = (option.help or "").split("  [default")
    default = meaning[1].strip(": ]") if len(meaning) > 1 else option.default
    shown = "" if option.is_flag or default in (None, ()) else f"`{default}`"
    return names, meaning[0], shown


def _paragraphs(text: str) -> str:
    return "\n\n".join(map(_paragraph, text.split("\n\n"))) + "\n"


def _paragraph(text: str) -> str:
    """One line, or code if the help keeps its line breaks (marked by a backspace)."""
    if text.strip(" ").startswith("\b\n"):
        return f"```text\n{text.replace(chr(8), '').strip()}\n```"
    return " ".join(text.split())


# ---- keys of files --------------------------------------------------------------------------


def scenarios() -> str:
    """The page of all keys of a scenario file."""
    schema: Schema = json.loads(_core.json_schema())
    editors = (
        "Editors complete and check scenario files with [the schema](scenario.schema.json). Print "
        "it once with `anabranch schema > scenario.schema.json`, and begin a scenario next to it "
        "with the line `#:schema ./scenario.schema.json`. The extension *Even Better TOML* for "
        "Visual Studio Code and the language server *taplo* understand this line."
    )
    return _page("Scenario files", schema, [editors])


def plans() -> str:
    """The page of all keys of a plan file."""
    editors = (
        "`anabranch schema plan > plan.schema.json` prints "
        "[the schema](plan.schema.json) for editors; begin a plan "
        "next to it with `#:schema ./plan.schema.json`. [Sweep and compare](../sweeps.md) explains "
        "plans."
    )
    return _page("Plan files", PLAN, [editors])


def _page(title: str, schema: Schema, notes: list[str]) -> str:
    definitions = schema.get("$defs", {})
    parts = [f"# {title}", schema["description"], *notes]
    parts += _table(title, "Top level", schema, definitions)
    for name, each in definitions.items():
        if "properties" in each:
            parts += _table(title, name, each, definitions)
        elif _is_choice_of_tables(each):
            parts += [f"## {name}", each.get("description", "")]
            for table in each["oneOf"]:
                kind = table["properties"]["kind"]["const"]
                parts += _table(title, f"{name}: {kind}", table, definitions, level=3)
    if title == "Plan files":
        parts += _table(title, "design", schema["properties"]["design"], definitions)
    return "\n\n".join(part for part in parts if part) + "\n"


def _is_choice_of_tables(schema: Schema) -> bool:
    choices = schema.get("oneOf", [])
    return bool(choices) and all("kind" in each.get("properties", {}) for each in choices)


def _table(
    page: str, name: str, schema: Schema, definitions: Schema, level: int = 2
) -> Iterator[str]:
    yield f"{'#' * level} {name}"
    if name != "Top level":
        yield " ".join(schema.get("description", "").split())
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    required = schema.get("required", [])
    for key, about in schema["properties"].items():
        default = "required" if key in required else _default(about)
        meaning = " ".join(about.get("description", "").split())
        bounds = _bounds(about, definitions)
        cells = (f"`{key}`", _type_of(about, definitions), default, f"{meaning} {bounds}".strip())
        rows.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    yield "\n".join(rows)


def _default(about: Schema) -> str:
    return f"`{json.dumps(about['default'], ensure_ascii=False)}`" if "default" in about else ""


def _bounds(about: Schema, definitions: Schema) -> str:
    """The bounds of a number, and an example of a quantity."""
    name = about.get("$ref", "").rsplit("/", 1)[-1]
    words = []
    if "minimum" in about:
        words.append(f"At least {about['minimum']}.")
    if "maximum" in about:
        words.append(f"At most {about['maximum']:,}.")
    if name in _EXAMPLES:
        words.append(f"Example: `{_EXAMPLES[name]}`.")
    return " ".join(words)


def _type_of(about: Schema, definitions: Schema) -> str:
    """The type of a value, with a link if it is a table."""
    if "$ref" in about:
        name = about["$ref"].rsplit("/", 1)[1]
        target = definitions[name]
        if "properties" in target or _is_choice_of_tables(target):
            return f"[{name}](#{name.lower()})"
        names = [each["const"] for each in target.get("oneOf", []) if "const" in each]
        return ", ".join(f"`{each}`" for each in names) or name.lower()
    if "enum" in about:
        return ", ".join(f"`{each}`" for each in about["enum"])
    if "const" in about:
        return f"`{about['const']}`"
    choices = about.get("oneOf") or about.get("anyOf")
    if choices:
        return " or ".join(dict.fromkeys(_type_of(each, definitions) for each in choices))
    kind = about.get("type", "value")
    if kind == "array":
        return f"list of {_type_of(about.get('items', {}), definitions)}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


# ---- Python ---------------------------------------------------------------------------------

_PYTHON = {
    "Runs": [
        "anabranch.api.run", "anabranch.api.run_many", "anabranch.api.Run",
        "anabranch.runs.run.Job",
    ],
    "Sweeps and experiments": [
        "anabranch.api.sweep", "anabranch.sweeps.plan.Plan", "anabranch.api.Sweep",
        "anabranch.api.reproduce",
        "anabranch.api.Reproduction", "anabranch.api.compare",
    ],
    "Explanations and advice": [
        "anabranch.answers.explain", "anabranch.answers.Explained", "anabranch.answers.advise",
        "anabranch.answers.Advised", "anabranch.answers.twin", "anabranch.answers.Twin",
    ],
    "Scripts for tc and Mininet": [
        "anabranch.api.export", "anabranch.exchange.export.Exported", "anabranch.api.from_mininet",
        "anabranch.exchange.importing.Imported",
    ],
    "Captures": ["anabranch.analyze.analysis.analyze", "anabranch.analyze.analysis.Analysis"],
    "Scenarios": ["anabranch.scenarios.scenario.Scenario", "anabranch.scenarios.classes"],
    "Own policies": ["anabranch.policy"],
    "Errors": ["anabranch.errors"],
}  # fmt: skip


def python() -> str:
    """The page of the Python interface, which mkdocstrings fills in."""
    parts = [
        "# Python",
        "Everything here can be imported from `anabranch`, but for the classes of "
        "`anabranch.policy` and `analyze`, which is in `anabranch.analyze`.",
    ]
    for title, names in _PYTHON.items():
        parts += [f"## {title}", *(f"::: {name}" for name in names)]
    return "\n\n".join(parts) + "\n"
