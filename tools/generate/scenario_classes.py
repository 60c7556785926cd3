"""Write the Python classes of scenarios from the JSON Schema that the core exports.

    python tools/generate/scenario_classes.py [--check]

With --check, the script leaves the file unchanged, and fails if it is out of date.
"""

from __future__ import annotations

import json
import keyword
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anabranch import _core

FILE = Path(__file__).resolve().parents[2] / "python/anabranch/scenarios/classes.py"

HEAD = '''\
"""The classes of scenarios, one for each table, with a field for each key.

`make scenario-classes` writes this file from the JSON Schema of scenarios, whose source is the Rust
module `anabranch_sim::scenario`. The objects here only hold values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from anabranch import policy

TomlTable = dict[str, Any]
"""A TOML table as plain Python values."""
'''

Schema = dict[str, Any]
SCHEMA: Schema = json.loads(_core.json_schema())
DEFINITIONS: dict[str, Schema] = SCHEMA["$defs"]

CLASSES = {"Path": "NetworkPath"}
"""Names of classes that differ from their definitions: `Path` would hide `pathlib.Path`."""

PLURALS = {"path": "paths", "connection": "connections"}
PLURALS |= {"middlebox": "middleboxes", "change": "changes"}
"""Names of fields that contain several tables."""

OWN = {
    "scheduler": "Callable[[], policy.Scheduler]",
    "congestion_control": "Callable[[policy.Start], policy.CongestionControl]",
    "path_manager": "Callable[[], policy.PathManager]",
}
"""Types of factories of the user's own policies, for the keys that accept them."""

TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
MANY = "DistributionOf"
"""Prefix of the definitions of one class whose values have several types."""


def main() -> int:
    new = formatted(source())
    if "--check" not in sys.argv:
        FILE.write_text(new)
        return 0
    if new == FILE.read_text():
        return 0
    print(f"{FILE.name} is out of date; run `make scenario-classes`", file=sys.stderr)
    return 1


def source() -> str:
    """The unformatted text of the file."""
    many = [schema for name, schema in DEFINITIONS.items() if name.startswith(MANY)]
    workloads = {camel(kind_of(each)): each for each in DEFINITIONS["Workload"]["oneOf"]}
    enumerations = [enumeration(name) for name in DEFINITIONS if is_enumeration(name)]
    parts = ["\n".join([HEAD, *enumerations]), class_of("Distribution", *many)]
    parts += [class_of(*workload) for workload in workloads.items()]
    about = DEFINITIONS["Workload"]["description"]
    parts += [f'Workload = {" | ".join(workloads)}\n"""{about}"""\n']
    parts += [
        class_of(CLASSES.get(name, name), schema)
        for name, schema in DEFINITIONS.items()
        if is_class(name)
    ]
    names = [
        "Distribution",
        *workloads,
        "Workload",
        "TomlTable",
        *(CLASSES.get(name, name) for name in filter(is_class, DEFINITIONS)),
    ]
    listed = f"__all__ = {json.dumps(sorted(names))}\n"
    return "\n\n".join([*parts, class_of("Scenario", SCHEMA), listed])


def formatted(code: str) -> str:
    """The code as formatted by ruff."""
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(FILE), "-"]
    return subprocess.run(ruff, input=code, stdout=subprocess.PIPE, text=True, check=True).stdout


def is_class(name: str) -> bool:
    """Whether the definition is a table with its own keys. Remedies have no class."""
    return "properties" in DEFINITIONS[name] and not name.startswith((MANY, "Remedies"))


def is_enumeration(name: str) -> bool:
    """Whether the definition is a list of names."""
    return all("const" in each for each in DEFINITIONS[name].get("oneOf", [{}]))


def enumeration(name: str) -> str:
    """The type of a value that is one of several names."""
    schema = DEFINITIONS[name]
    names = literal([each["const"] for each in schema["oneOf"]])
    return f'{name} = {names}\n"""{schema["description"]}"""'


def literal(names: list[str]) -> str:
    return f"Literal[{', '.join(map(json.dumps, names))}]"


def class_of(name: str, *tables: Schema) -> str:
    """The class of a table, or of several tables with the same keys."""
    keys: dict[str, list[Schema]] = {}
    for table in tables:
        for key in sorted(table["properties"], key=place(table)):
            keys.setdefault(key, []).append(table["properties"][key])
    required = tables[0].get("required", [])
    kind = kind_of(tables[0])
    if kind is not None:
        del keys["kind"]
    constant = [f'kind: ClassVar[str] = "{kind}"'] if kind is not None else []
    fields = [field_of(key, forms, key in required) for key, forms in keys.items()]
    body = [docstring(tables[0]["description"], keys), "", *fields, *constant]
    lines = textwrap.indent("\n".join(body), "    ")
    return f"@dataclass(frozen=True, kw_only=True)\nclass {name}:\n{lines}\n"


def place(table: Schema) -> Any:
    """Sort key that puts required keys first, in their order."""
    required = table.get("required", [])
    return lambda key: (required.index(key) if key in required else len(required), key)


def kind_of(table: Schema) -> str | None:
    """The name of the table's kind, if there is only one."""
    kind: str | None = table["properties"].get("kind", {}).get("const")
    return kind


def field_of(key: str, forms: list[Schema], is_required: bool) -> str:
    """A field with its type and default."""
    types = unique(each for form in forms for each in types_of(form))
    types += [OWN[key]] if key in OWN else []
    tables = is_array_of_tables(forms[0])
    default = "()" if tables else "None"
    types += [] if is_required or tables else ["None"]
    line = f"{name_of(key, forms[0])}: {' | '.join(types)}"
    if name_of(key, forms[0]) != key:
        default = f"default={default}, " if not is_required else ""
        return f'{line} = field({default}metadata={{"key": "{key}"}})'
    return line if is_required else f"{line} = {default}"


def name_of(key: str, form: Schema) -> str:
    """The name of a key in Python."""
    if is_array_of_tables(form):
        return PLURALS.get(key, key)
    return f"{key}_" if keyword.iskeyword(key) else key


def is_array_of_tables(form: Schema) -> bool:
    return "$ref" in form.get("items", {})


def types_of(form: Schema) -> list[str]:
    """The types of the values that a schema allows."""
    if "$ref" in form:
        name = form["$ref"].rsplit("/", 1)[1]
        if name.startswith(MANY):
            return ["Distribution"]
        known = is_class(name) or is_enumeration(name) or name == "Workload"
        return [CLASSES.get(name, name)] if known else types_of(DEFINITIONS[name])
    alternatives = form.get("oneOf") or form.get("anyOf") or []
    names = form.get("enum") or [each["const"] for each in alternatives if "const" in each]
    if names:
        return [literal(names)]
    if alternatives:
        return unique(each for alternative in alternatives for each in types_of(alternative))
    if form["type"] == "array":
        return [f"tuple[{' | '.join(types_of(form['items']))}, ...]"]
    if form["type"] == "object":
        values = form.get("additionalProperties")
        return [f"dict[str, {' | '.join(types_of(values))}]" if values else "TomlTable"]
    return [TYPES[form["type"]]]


def docstring(about: str, keys: dict[str, list[Schema]]) -> str:
    """The description of a table and of its keys."""
    first, _, rest = " ".join(about.split()).partition(". ")
    lines = [first + "." * (not first.endswith("."))]
    lines += ["", *textwrap.wrap(rest, 93)] if rest else []
    for number, (key, forms) in enumerate(keys.items()):
        lines += [""] * (number == 0)
        meaning = f"{name_of(key, forms[0])}: {meaning_of(forms[0])}"
        lines += textwrap.wrap(meaning, 93, subsequent_indent="    ")
    end = "\n" if len(lines) > 1 else ""
    return '"""' + "\n".join(lines).replace("\\", "\\\\") + f'{end}"""'


def meaning_of(form: Schema) -> str:
    """The meaning of a key with its default, or the meanings of all kinds."""
    if "description" not in form:
        return " ".join(f"`{each['const']}`: {each['description']}" for each in form["oneOf"])
    meaning = " ".join(form["description"].split())
    default = form.get("default")
    known = default in ("", None) or "default" in meaning.lower()
    if known or isinstance(default, (dict, list)):
        return meaning
    return f"{meaning.removesuffix('.')}. Default: `{json.dumps(default)}`."


def camel(name: str | None) -> str:
    return "".join(word.capitalize() for word in (name or "").split("_"))


def unique(types: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(types))


if __name__ == "__main__":
    sys.exit(main())
