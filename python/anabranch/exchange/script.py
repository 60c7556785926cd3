"""Mininet scripts as data: the nodes, links and commands that a script creates.

The module evaluates a script's syntax tree, and never runs the script. It knows constants, loops,
functions and classes; `calls` knows Mininet's API. Everything else has the value `UNKNOWN`.
"""

from __future__ import annotations

import ast
import contextlib
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Symbol:
    """A value that is known by name only, such as a class of Mininet."""

    name: str


UNKNOWN = Symbol("?")


@dataclass(eq=False)
class Node:
    """A host, router or switch.

    Attributes:
        name: Its name.
        forwards: Whether it forwards packets, as switches and routers do.
        ip: Its address, if the script states it.
    """

    name: str
    forwards: bool
    ip: str | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Cable:
    """A link, with the parameters of the interfaces of its two ends, and its line in the script."""

    one: Node
    other: Node
    parameters: tuple[dict[str, Any], dict[str, Any]]
    line: int


@dataclass(frozen=True)
class Command:
    """A shell command of a node, or of the script itself, and its line in the script."""

    node: Node | None
    text: str
    line: int


@dataclass
class Script:
    """Everything that a script creates.

    Attributes:
        nodes: The nodes by name, in order.
        cables: The links, in order.
        commands: The commands, in order.
        tests: Client, server, duration in s and line of each call of Mininet's `iperf`.
        problems: Differences of the scenario from the script, each with its line.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    tests: list[tuple[Node, Node, float, int]] = field(default_factory=list)
    problems: list[tuple[int, str]] = field(default_factory=list)

    def problem(self, line: int, text: str) -> None:
        """Add a part of the script that was not understood."""
        self.note(line, f"not understood: {' '.join(text.split())}")

    def note(self, line: int, text: str) -> None:
        """Add a difference between the script and the scenario, once."""
        if (line, text) not in self.problems:
            self.problems.append((line, text))

    def node(self, value: Any) -> Node | None:
        """The value if it is a node, or the node of that name."""
        return value if isinstance(value, Node) else self.nodes.get(str(value))


@dataclass(eq=False)
class Instance:
    """An object of a class of the script, or a network or topology of Mininet."""

    cls: ast.ClassDef | None = None
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A function of the script, with the object that it belongs to."""

    function: ast.FunctionDef | ast.Lambda
    owner: Instance | None = None


class _Left(Exception):
    """A function or a loop was left."""


class _Returned(_Left):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _Broken(_Left):
    pass


class _Continued(_Left):
    pass


MOST_STEPS = 200_000
"""Largest number of statements that the reader evaluates."""

_DEPTH = 30
"""Calls within calls that the reader follows."""

_BUILTINS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        range, len, str, int, float, bool, enumerate, zip, list, tuple, dict, set, sorted,
        reversed, min, max, sum, abs, round,
    )
}  # fmt: skip
_BUILTINS["irange"] = lambda first, last: range(first, last + 1)  # of mininet.util

_METHODS = {
    "append", "extend", "insert", "pop", "update", "items", "keys", "values", "get", "copy",
    "index", "format", "join", "split", "splitlines", "strip", "lower", "upper", "replace",
    "startswith", "endswith", "zfill",
}  # fmt: skip
"""Methods of texts, lists and dictionaries that the reader calls."""

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}

_LARGEST = 100_000
"""Largest length or number that an operation may have, so that a script cannot fill the memory."""


class Reader:
    """The evaluation of a script."""

    def __init__(self, source: str, calls: Callable[[Reader, Call], Any]) -> None:
        self.source = source
        self.script = Script()
        self.scopes: list[dict[str, Any]] = [{"__name__": "__main__"}]
        self.steps = 0
        self.calls = calls

    def run(self, tree: ast.Module) -> Script:
        """Evaluate a whole script."""
        with contextlib.suppress(_Left):
            self.block(tree.body)
        topologies = self.scopes[0].get("topos")
        if not self.script.nodes and isinstance(topologies, dict):
            self.start(topologies)
        return self.script

    def start(self, topologies: dict[str, Any]) -> None:
        """Make the first topology that a script offers to ``mn --custom``."""
        for function in [*topologies.values()][:1]:
            node = ast.Call(ast.Name("topos"), [], [], lineno=1)
            self.apply(Call(node, function, None, "", [], {}))

    # ---- statements

    def block(self, statements: list[ast.stmt]) -> None:
        """Evaluate statements in order."""
        for each in statements:
            self.steps += 1
            if self.steps > MOST_STEPS:
                self.skip(each)
            else:
                self.statement(each)

    def statement(self, node: ast.stmt) -> None:
        """Evaluate a statement."""
        match node:
            case ast.Expr(value):
                self.value(value)
            case ast.Assign(targets, value):
                found = self.value(value)
                for each in targets:
                    self.assign(each, found)
            case ast.AnnAssign(target, _, ast.expr() as value):
                self.assign(target, self.value(value))
            case ast.AugAssign(target, how, value):
                self.assign(target, self.operate(how, self.value(target), self.value(value)))
            case ast.FunctionDef(name) | ast.ClassDef(name):
                found = Method(node) if isinstance(node, ast.FunctionDef) else node
                self.scopes[-1][name] = found
            case ast.For():
                self.loop(node)
            case ast.If(test, body, orelse):
                self.branch(node, self.value(test), body, orelse)
            case ast.With(items, body):
                for item in items:
                    found = self.value(item.context_expr)
                    if item.optional_vars is not None:
                        self.assign(item.optional_vars, found)
                self.block(body)
            case ast.Try(body, _, orelse, finalbody):
                self.attempt([*body, *orelse], finalbody)
            case ast.Return(value):
                raise _Returned(None if value is None else self.value(value))
            case ast.Break():
                raise _Broken
            case ast.Continue():
                raise _Continued
            case _:
                self.skip(node)

    def attempt(self, body: list[ast.stmt], after: list[ast.stmt]) -> None:
        """Evaluate the body of a try statement, and what follows in any case."""
        try:
            self.block(body)
        finally:
            self.block(after)

    def branch(
        self, node: ast.stmt, test: Any, body: list[ast.stmt], orelse: list[ast.stmt]
    ) -> None:
        """Evaluate a branch, or neither if the condition is unknown."""
        if isinstance(test, Symbol):
            self.skip(node)
        else:
            self.block(body if test else orelse)

    def loop(self, node: ast.For) -> None:
        """Evaluate a loop over known items."""
        items = self.value(node.iter)
        if not _is_iterable(items):
            self.skip(node)
            return
        for item in list(items):
            self.assign(node.target, item)
            try:
                self.block(node.body)
            except _Continued:
                continue
            except _Broken:
                return
        self.block(node.orelse)

    def skip(self, node: ast.AST) -> None:
        """Report a part of the script that is not evaluated, if it concerns the network."""
        names = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        if names & _CONCERNED:
            self.not_understood(node)

    def assign(self, target: ast.expr, value: Any) -> None:
        """Assign a value to a name, an attribute, an item, or several of them."""
        match target:
            case ast.Name(name):
                self.scopes[-1][name] = value
            case ast.Tuple(names) | ast.List(names):
                known = list(value) if _is_iterable(value) else []
                values = known if len(known) == len(names) else [UNKNOWN] * len(names)
                for each, known_value in zip(names, values, strict=True):
                    self.assign(each, known_value)
            case ast.Attribute(of, name):
                owner = self.value(of)
                if isinstance(owner, Instance):
                    owner.attributes[name] = value
            case ast.Subscript(of, key):
                owner, at = self.value(of), self.value(key)
                if isinstance(owner, dict) or (isinstance(owner, list) and at in range(len(owner))):
                    owner[at] = value

    def not_understood(self, node: ast.AST) -> None:
        """Report the first line of a part of the script."""
        text = ast.get_source_segment(self.source, node) or ""
        line: int = getattr(node, "lineno", 0)
        self.script.problem(line, text.splitlines()[0] if text else "")

    # ---- expressions

    def value(self, node: ast.expr) -> Any:
        """The value of an expression, which is a `Symbol` if it is unknown."""
        match node:
            case ast.Constant(found):
                return found
            case ast.Name(name):
                return self.lookup(name)
            case ast.List(items):
                return self.items(items)
            case ast.Tuple(items):
                return tuple(self.items(items))
            case ast.Dict(keys, values):
                return self.dictionary(keys, values)
            case ast.JoinedStr(parts):
                return _joined([self.value(each) for each in parts])
            case ast.FormattedValue(value):
                return self.formatted(node, self.value(value))
            case ast.BinOp(left, how, right):
                return self.operate(how, self.value(left), self.value(right))
            case ast.UnaryOp(how, operand):
                return self.operate(how, self.value(operand))
            case ast.Compare(left, [how], [right]):
                return self.operate(how, self.value(left), self.value(right))
            case ast.BoolOp(how, values):
                return self.decide(isinstance(how, ast.And), values)
            case ast.IfExp(test, body, orelse):
                found = self.value(test)
                if isinstance(found, Symbol):
                    return UNKNOWN
                return self.value(body if found else orelse)
            case ast.Attribute(of, name):
                return self.attribute(self.value(of), name)
            case ast.Subscript(of, key):
                return self.item(self.value(of), key)
            case ast.ListComp(element, [generator]):
                items = self.value(generator.iter)
                if _is_iterable(items):
                    return [*self.comprehended(element, generator, items)]
            case ast.Lambda():
                return Method(node)
            case ast.Call():
                return self.call(node)
        self.skip(node)
        return UNKNOWN

    def lookup(self, name: str) -> Any:
        """The value of a name."""
        for scope in (self.scopes[-1], self.scopes[0]):
            if name in scope:
                return scope[name]
        return _BUILTINS.get(name, _named(name))

    def items(self, nodes: list[ast.expr]) -> list[Any]:
        """The values of expressions, of which some may be starred."""
        found: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                several = self.value(each.value)
                found += several if _is_iterable(several) else [UNKNOWN]
            else:
                found.append(self.value(each))
        return found

    def dictionary(self, keys: list[ast.expr | None], values: list[ast.expr]) -> dict[Any, Any]:
        """The value of a dictionary. A missing key stands for another dictionary."""
        found: dict[Any, Any] = {}
        for key, value in zip(keys, values, strict=True):
            if key is None:
                more = self.value(value)
                found |= more if isinstance(more, dict) else {}
            else:
                named = self.value(key)
                found[named if _is_plain(named) else str(named)] = self.value(value)
        return found

    def formatted(self, node: ast.FormattedValue, value: Any) -> Any:
        """A value within a text."""
        if isinstance(value, Symbol):
            return UNKNOWN
        form = "" if node.format_spec is None else self.value(node.format_spec)
        return _tried(format, str(value) if isinstance(value, Node) else value, form)

    def operate(self, how: ast.AST, *values: Any) -> Any:
        """The result of an operator."""
        known = _OPERATORS.get(type(how))
        if known is None or any(_has_symbol(each) for each in values):
            return UNKNOWN
        if isinstance(how, (ast.Mult, ast.Pow)) and not all(map(_is_small, values)):
            return UNKNOWN
        return _tried(known, *map(_text_of_nodes, values))

    def decide(self, is_and: bool, nodes: list[ast.expr]) -> Any:
        """The result of ``and`` or ``or``."""
        found: Any = UNKNOWN
        for each in nodes:
            found = self.value(each)
            if isinstance(found, Symbol) or bool(found) != is_and:
                return found
        return found

    def attribute(self, owner: Any, name: str) -> Any:
        """An attribute of an object."""
        if isinstance(owner, Instance):
            if name in owner.attributes:
                return owner.attributes[name]
            method = _method(owner.cls, name)
            if method is not None:
                return Method(method, owner)
            if name in ("hosts", "switches"):
                nodes = self.script.nodes.values()
                return [each for each in nodes if each.forwards == (name == "switches")]
        if isinstance(owner, Node) and name == "name":
            return owner.name
        if isinstance(owner, Symbol):
            return _named(f"{owner.name}.{name}")
        return UNKNOWN

    def item(self, owner: Any, key: ast.expr) -> Any:
        """An item or a slice of a sequence, a dictionary or a network."""
        if isinstance(key, ast.Slice):
            ends = [None if each is None else self.value(each) for each in (key.lower, key.upper)]
            if isinstance(owner, (str, list, tuple)) and not any(map(_has_symbol, ends)):
                return owner[slice(*ends)]
            return UNKNOWN
        at = self.value(key)
        if isinstance(owner, Instance):
            return self.script.node(at) or UNKNOWN
        if isinstance(owner, (str, list, tuple, dict)) and _is_plain(at):
            return _tried(operator.getitem, owner, at)
        return UNKNOWN

    def comprehended(
        self, element: ast.expr, generator: ast.comprehension, items: Any
    ) -> Iterator[Any]:
        """The elements of a list comprehension over known items."""
        for item in list(items):
            self.assign(generator.target, item)
            if all(self.value(each) is True for each in generator.ifs):
                yield self.value(element)

    # ---- calls

    def call(self, node: ast.Call) -> Any:
        """The result of a call."""
        owner = name = None
        if isinstance(node.func, ast.Attribute):
            owner, name = self.value(node.func.value), node.func.attr
            function = self.attribute(owner, name)
        else:
            function = self.value(node.func)
        arguments = self.items(node.args)
        keywords: dict[str, Any] = {}
        for each in node.keywords:
            found = self.value(each.value)
            if each.arg is not None:
                keywords[each.arg] = found
            elif isinstance(found, dict):
                keywords |= found
        return self.apply(Call(node, function, owner, name or "", arguments, keywords))

    def apply(self, call: Call) -> Any:
        """The result of a call with known arguments."""
        function, owner = call.function, call.owner
        if isinstance(function, Method):
            return self.enter(function, call)
        if isinstance(function, ast.ClassDef):
            return self.create(function, call)
        if isinstance(owner, (str, list, dict, tuple)) and call.name in _METHODS:
            arguments = [*map(_text_of_nodes, call.arguments)]
            if isinstance(owner, str) and any(map(_has_symbol, arguments)):
                return UNKNOWN
            return _tried(getattr(owner, call.name), *arguments, **call.keywords)
        if function in _BUILTINS.values():
            if any(map(_has_symbol, call.arguments)) or not all(map(_is_small, call.arguments)):
                return UNKNOWN
            return _tried(function, *call.arguments, **call.keywords)
        return self.calls(self, call)

    def create(self, cls: ast.ClassDef, call: Call) -> Instance:
        """An object of a class of the script. Mininet's topologies call `build` when created."""
        instance = Instance(cls)
        for name in ("__init__", "build"):
            method = _method(cls, name)
            if method is not None:
                self.enter(Method(method, instance), call)
        return instance

    def enter(self, method: Method, call: Call) -> Any:
        """The result of a function of the script."""
        if len(self.scopes) > _DEPTH:
            self.not_understood(call.node)
            return UNKNOWN
        self.scopes.append({**self.scopes[-1], **self.parameters(method, call)})
        try:
            if isinstance(method.function, ast.Lambda):
                return self.value(method.function.body)
            self.block(method.function.body)
        except _Returned as returned:
            return returned.value
        finally:
            self.scopes.pop()
        return None

    def parameters(self, method: Method, call: Call) -> dict[str, Any]:
        """The parameters of a function, with the arguments of a call."""
        given = method.function.args
        names = [each.arg for each in (*given.posonlyargs, *given.args)]
        values: dict[str, Any] = dict.fromkeys([*names, *(each.arg for each in given.kwonlyargs)])
        for name, default in zip(reversed(names), reversed(given.defaults), strict=False):
            values[name] = self.value(default)
        for each, preset in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            values[each.arg] = None if preset is None else self.value(preset)
        arguments = call.arguments if method.owner is None else [method.owner, *call.arguments]
        values |= dict(zip(names, arguments, strict=False))
        values |= {key: value for key, value in call.keywords.items() if key in values}
        if given.vararg is not None:
            values[given.vararg.arg] = arguments[len(names) :]
        if given.kwarg is not None:
            rest = call.keywords.items()
            values[given.kwarg.arg] = {key: value for key, value in rest if key not in values}
        return values


@dataclass(frozen=True)
class Call:
    """A call with known arguments.

    Attributes:
        node: Its place in the script.
        function: The function, or a `Symbol`.
        owner: The object whose method it calls, if any.
        name: The name of the method.
        arguments: Positional arguments.
        keywords: Keyword arguments.
    """

    node: ast.Call
    function: Any
    owner: Any
    name: str
    arguments: list[Any]
    keywords: dict[str, Any]

    @property
    def line(self) -> int:
        """Line of the script."""
        return self.node.lineno


_CONCERNED = {
    "addHost", "addSwitch", "addNode", "addLink", "cmd", "cmdPrint", "sendCmd", "popen", "pexec",
    "iperf",
}  # fmt: skip
"""Methods of Mininet that create nodes, links and commands."""


def _named(name: str) -> Any:
    """A name that the script does not define. The script is read as if it had no arguments."""
    return ["script"] if name in ("argv", "sys.argv") else Symbol(name)


def _method(cls: ast.ClassDef | None, name: str) -> ast.FunctionDef | None:
    body = [] if cls is None else cls.body
    found = [each for each in body if isinstance(each, ast.FunctionDef) and each.name == name]
    return found[-1] if found else None


def _tried(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """The result of a function, or `UNKNOWN` if it does not take these values."""
    try:
        return function(*arguments, **keywords)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return UNKNOWN


def _joined(parts: list[Any]) -> Any:
    return UNKNOWN if any(map(_has_symbol, parts)) else "".join(map(str, parts))


def _text_of_nodes(value: Any) -> Any:
    """The value, with the names of nodes instead of nodes."""
    if isinstance(value, tuple):
        return tuple(map(_text_of_nodes, value))
    return value.name if isinstance(value, Node) else value


def _has_symbol(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_symbol, value))
    return isinstance(value, Symbol)


def _is_iterable(value: Any) -> bool:
    return isinstance(value, (list, tuple, dict, set, str, range, enumerate, zip)) or (
        type(value).__name__.startswith(("dict_", "list_reverseiterator", "reversed"))
    )


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool, type(None), tuple))


def _is_small(value: Any) -> bool:
    if isinstance(value, (int, float)):
        return abs(value) <= _LARGEST
    return not isinstance(value, (str, list, tuple)) or len(value) <= _LARGEST
