"""Check that imports in the Rust code are not circular and go down the floors of ARCHITECTURE.md.

    python3 tools/check/rust_imports.py

**Crates.** ARCHITECTURE.md puts each crate on a floor. A crate may depend on crates of lower
floors only. Dependencies for tests and builds do not count.

**Modules.** Every module, a file or a folder, is a node, and is compared with its siblings: an
import from `a::b::c` to `a::d::e` is an edge from `b` to `d` among the children of `a`. A parent
is not a node among its children. So a parent may declare, re-export and use its children, and the
children may use items that the parent defines. A name that a module only re-exports counts as an
import from the module that defines it.

An import is a path that begins with `crate`, `super` or `self`, in a `use` declaration or in code.
Items under `#[cfg(test)]`, visibilities, comments and strings do not count. Inline modules belong
to their file. Method calls need no import, so the check does not see them.

**Engine.** ARCHITECTURE.md groups modules of anabranch-proto in an order (see ENGINE). No module
may reach a later group, not even through other modules.
"""

import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

POLICIES = {"congestion", "scheduler", "remedy", "path_manager"}
ENGINE = [{"view", "rtt"}, POLICIES, {"subflow"}, {"connection"}, {"endpoint"}]

Module = tuple[str, ...]
Graph = dict[str, set[str]]

IGNORED = re.compile(  # comments, strings, characters, visibilities
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^']*|.)'|\(in [^)]*\)"""
    r"""|(?<=pub)\((?:crate|super|self)\)""",
    re.DOTALL,
)


def read(file: Path) -> str:
    """The code of a file without tests."""
    code = IGNORED.sub(" ", file.read_text(encoding="utf-8"))
    while (start := code.find("#[cfg(test)]")) >= 0:
        end = min(at for mark in ";{" if (at := code.find(mark, start)) >= 0) + 1
        while code[start:end].count("{") > code[start:end].count("}"):
            end = code.index("}", end) + 1
        code = code[:start] + code[end:]
    return code


def leaves(tree: str) -> list[tuple[str, Module]]:
    """Names that a `use` declaration imports, and their paths."""
    while found := re.search(r"([\w:\s]*)\{([^{}]*)\}", tree):
        items = ",".join(found[1] + item for item in found[2].split(",") if item.strip())
        tree = tree[: found.start()] + items + tree[found.end() :]
    pairs = [item.partition(" as ") for item in tree.split(",")]
    paths = [tuple(re.findall(r"\w+|\*", re.sub(r"::\s*self\b", "", pair[0]))) for pair in pairs]
    return [(pair[2].strip() or path[-1], path) for pair, path in zip(pairs, paths, strict=True)]


class Crate:
    """The modules of a library or program, and their imports."""

    def __init__(self, root: Path) -> None:
        self.names: dict[Module, dict[str, Module]] = {}
        self.paths: dict[Module, list[Module]] = {}
        self.add((), root, root.parent)

    def add(self, module: Module, file: Path, folder: Path) -> None:
        code, declaration = read(file), re.compile(r"\buse\s([^;]+);")
        uses = [leaf for tree in declaration.findall(code) for leaf in leaves(tree)]
        code = declaration.sub(";", code)
        inline = re.findall(r"(?<![\w$:])(?:crate|super|self)(?:\s*::\s*\w+)+", code)
        self.names[module] = dict(uses)
        self.paths[module] = [path for _, path in uses]
        self.paths[module] += [tuple(re.findall(r"\w+", path)) for path in inline]
        for child in re.findall(r"\bmod (\w+);", code):
            flat = folder / f"{child}.rs"
            deep = folder / child / "mod.rs"
            self.add((*module, child), flat if flat.exists() else deep, folder / child)

    def home(self, module: Module, path: Module) -> Module | None:
        """The module that defines the item `path` of `module`; None for another crate."""
        at = {"crate": (), "self": module, "super": module[:-1]}.get(path[0], (*module, path[0]))
        if at not in self.paths:
            return None
        for index, name in enumerate(path[1:], 1):
            if name == "super":
                at = at[:-1]
            elif (*at, name) in self.paths:
                at = (*at, name)
            elif name in self.names[at]:
                return self.home(at, self.names[at][name] + path[index + 1 :])
            else:
                break
        return at

    def graphs(self) -> dict[Module, Graph]:
        """The imports among the children of each parent."""
        graphs: dict[Module, Graph] = defaultdict(lambda: defaultdict(set))
        for module, paths in self.paths.items():
            for home in filter(None, (self.home(module, path) for path in paths)):
                pairs = list(zip(module, home, strict=False))
                if split := [index for index, (here, there) in enumerate(pairs) if here != there]:
                    graphs[module[: split[0]]][module[split[0]]].add(home[split[0]])
        return graphs


def chains(graph: Graph, start: str) -> dict[str, Module]:
    """The shortest chain of imports from `start` to each module that it reaches."""
    found: dict[str, Module] = {}
    todo: list[Module] = [(start,)]
    for chain in todo:
        for name in sorted(graph.get(chain[-1], set()) - found.keys()):
            found[name] = (*chain, name)
            todo.append(found[name])
    return found


def in_modules(crate: str, root: Path) -> set[str]:
    found = set[str]()
    graphs = Crate(root).graphs()
    for parent, graph in graphs.items():
        reached = {name: chains(graph, name).keys() for name in graph}
        for name in graph:
            circle = sorted(other for other in reached[name] if name in reached.get(other, ()))
            if circle:
                place = "::".join(("crate", *parent))
                found.add(f"{crate}: circular imports in {place}: {', '.join(circle)}")
    for number, group in enumerate(ENGINE if crate == "anabranch-proto" else []):
        above = set[str]().union(*ENGINE[number + 1 :])
        for name in group:
            if up := [chain for end, chain in chains(graphs[()], name).items() if end in above]:
                found.add(f"{crate}: import that goes up: {' -> '.join(up[0])}")
    return found


def in_manifests() -> set[str]:
    floors: dict[str, int] = {}
    drawing = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```")[1]
    for floor in drawing.split("\nfloor ")[1:]:
        floors |= dict.fromkeys(re.findall(r"\banabranch-\w+", floor), int(floor[0]))
    found = set[str]()
    for file in ROOT.glob("crates/*/Cargo.toml"):
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        name = data["package"]["name"]
        for table in [data, *data.get("target", {}).values()]:
            for other in table.get("dependencies", {}):
                if other.startswith("anabranch-") and floors[other] >= floors[name]:
                    found.add(
                        f"{name}: dependency on a crate that is not on a lower floor: {other}"
                    )
    return found


def main() -> int:
    found = in_manifests()
    for src in ROOT.glob("crates/*/src"):
        for root in [src / "lib.rs", *src.glob("bin/*.rs"), *src.glob("bin/*/main.rs")]:
            found |= in_modules(src.parent.name, root)
    for line in sorted(found):
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
