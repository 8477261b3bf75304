"""Commands made from signatures: an option is declared once, where the function is that it belongs to.

The source is read, not imported: importing takes a second or two, and help must not.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin

import typer

from evenrank import options as opt
from evenrank._command import arg, spelled

from ._help import HELP_ALL

SOURCE = Path(opt.__file__).parent
_TYPES: Mapping[str, object] = {"Literal": Literal, "Sequence": Sequence, "None": None} | {
    type_.__name__: type_ for type_ in (bool, float, int, list, str)
}
"""The types of what is typed, by the names that signatures use; whatever else they name is typed as text."""


@dataclass(frozen=True)
class Given:
    """An option of a function: its parameter, what is said of it, and whether it stands before the ``*``."""

    name: str
    type: object
    option: opt.Option
    default: object
    positional: bool

    @property
    def otherwise(self) -> object:
        """Its value where it is not given; None for one that has to be, unless another stands for it."""
        return None if self.default is inspect.Parameter.empty else self.default

    @property
    def typed(self) -> str:
        """What is typed for it."""
        if self.positional:
            return self.option.metavar or self.name.upper()
        return self.option.flag or f"--{self.name.replace('_', '-')}"

    def parameter(self) -> inspect.Parameter:
        """The same as Typer reads it."""
        typed, many = _typed(self.type, self.option)
        panel = self.option.panel or ("Input" if self.option.reads else "Method")
        metavar = self.option.metavar or _metavar(typed, file=self.option.reads or panel == "Output")
        about: dict[str, Any] = {"help": self.option.help, "metavar": metavar, "hidden": self.option.rare}
        if not self.positional:
            about["rich_help_panel"] = panel
        if get_origin(typed) is Literal:
            # The library checks values, so that Python users get the same messages.
            about["parser"] = str
        if not self.option.shown:
            about["show_default"] = False
        default = None if self.default == () else self.default
        info = typer.Argument(**about) if self.positional else typer.Option(self.typed, **about)
        wanted: Any = list[str] if many else typed
        if default is None:
            wanted = wanted | None
        return inspect.Parameter(
            self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[wanted, info]
        )


@dataclass(frozen=True)
class From:
    """Stands in the signature of a command for the options of a function or of a class; their values come as a dict.

    ``home``: its module; ``only``: some of them, else all but those ``without``.
    """

    home: str
    name: str
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def options(self) -> list[Given]:
        """The chosen ones, in the order of the signature."""
        options = _declared(self.home, self.name)
        if self.only:
            return [option for option in options if option.name in self.only]
        return [option for option in options if option.name not in self.without]


@cache
def _declared(home: str, name: str) -> tuple[Given, ...]:
    """The options of a function or a class."""
    tree = ast.parse(_source(home))
    kinds = ast.FunctionDef | ast.ClassDef
    definition = next(node for node in tree.body if isinstance(node, kinds) and node.name == name)
    return tuple(_fields(definition) if isinstance(definition, ast.ClassDef) else _arguments(definition.args))


def _source(home: str) -> str:
    return (SOURCE / f"{home.replace('.', '/')}.py").read_text(encoding="utf-8")


def about(function: Callable[..., None]) -> str:
    """What the command of a function is for: its docstring, or the first paragraph of that of its first ``From``."""
    if function.__doc__:
        return function.__doc__
    first = next(declared for _, declared in _annotations(function).values() if isinstance(declared, From))
    # Without parsing: the help of all commands says this of each.
    docstring = re.search(rf'^(?:def|class) {first.name}\b.*?"""(.*?)(?:\n\n|""")', _source(first.home), re.M | re.S)
    return " ".join(docstring[1].split()) if docstring else ""


def _annotations(function: Callable[..., None]) -> dict[str, tuple[object, Any]]:
    """The type and the declaration of each parameter of a function of this folder."""
    own = inspect.signature(function).parameters
    return {name: get_args(eval(parameter.annotation, function.__globals__)) for name, parameter in own.items()}


def _arguments(of: ast.arguments) -> list[Given]:
    options = list(_named(of))
    if of.kwarg is not None and isinstance(of.kwarg.annotation, ast.Subscript):
        # **groups: Unpack[opt.GroupOptions], each of which may be left out, stand behind the documents.
        place = next((n for n, option in enumerate(options, 1) if option.name == "collection"), len(options))
        kinds = _value(of.kwarg.annotation.slice).__annotations__
        options[place:place] = [
            Given(name, type_, option, None, positional=False)
            for name, (type_, option) in ((name, get_args(kind)) for name, kind in kinds.items())
        ]
    return options


def _named(of: ast.arguments) -> Iterator[Given]:
    defaults: list[ast.expr | None] = [None] * (len(of.args) - len(of.defaults))
    for argument, default in zip(of.args, [*defaults, *of.defaults], strict=True):
        yield from _option(argument.arg, argument.annotation, default, positional=True)
    for argument, default in zip(of.kwonlyargs, of.kw_defaults, strict=True):
        yield from _option(argument.arg, argument.annotation, default, positional=False)


def _fields(of: ast.ClassDef) -> Iterator[Given]:
    for field in of.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            yield from _option(field.target.id, field.annotation, field.value, positional=False)


def _option(name: str, annotation: ast.expr | None, default: ast.expr | None, *, positional: bool) -> Iterator[Given]:
    """The option, if the annotation is one of :mod:`evenrank.options` or ``Annotated[type, opt.Option(...)]``."""
    if isinstance(annotation, ast.Attribute) and ast.unparse(annotation.value) == "opt":
        type_, option = get_args(_value(annotation))
    elif isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
        assert isinstance(annotation.slice, ast.Tuple)
        type_, option = ast.unparse(annotation.slice.elts[0]), _value(annotation.slice.elts[1])
    else:
        return
    if isinstance(option, opt.Range):
        return
    yield Given(
        name, type_, option, inspect.Parameter.empty if default is None else ast.literal_eval(default), positional
    )


def _value(node: ast.expr) -> Any:
    """What an expression of our own source means, which names nothing but ``opt``."""
    return eval(compile(ast.Expression(node), "signature", "eval"), {"opt": opt})


def _typed(type_: object, option: opt.Option) -> tuple[Any, bool]:
    """What is typed for a parameter of this type, or source of a type, and whether it may be repeated."""
    if option.typed is not None:
        return option.typed, option.typed is list
    if isinstance(type_, ForwardRef):
        type_ = type_.__forward_arg__
    if isinstance(type_, str):
        try:
            type_ = eval(type_, {"__builtins__": {}}, dict(_TYPES))
        except NameError:
            return str, False
    several = get_args(type_) if get_origin(type_) in (Union, UnionType) else (type_,)
    kinds = [kind for kind in several if kind not in (None, type(None))]
    if len(kinds) == 1 and (kinds[0] in (bool, float, int, str) or get_origin(kinds[0]) is Literal):
        return kinds[0], False
    return str, False


def _metavar(typed: object, *, file: bool) -> str:
    """What stands for the value in the help."""
    if get_origin(typed) is Literal:
        return "|".join(get_args(typed))
    names: dict[object, str] = {bool: "", int: "N", float: "X"}
    return names.get(typed, "FILE" if file else "NAME")


class Values(dict[str, Any]):
    """The values of a function's options by name.

    ``read``: those that name files, which no output may replace; ``changed``: the options that differ from their
    defaults.
    """

    read: tuple[object, ...] = ()
    changed: tuple[str, ...] = ()


def _of_files(names: Set[str]) -> list[Given]:
    """The options that say where the files of a command with these parameters are, and what is in them."""
    whole = len(names & {"collection", "queries", "qrels"}) > 1 and "questions" not in names
    more = {"beir": opt.Beir} if whole else {}
    if "collection" in names:
        more |= {"id_column": opt.IdColumn, "text_column": opt.TextColumn}
    if "queries" in names:
        more |= {"query_id_column": opt.QueryIdColumn, "query_text_column": opt.QueryTextColumn}
    if names & {"run", "runs"}:
        more |= {"run_columns": opt.RunColumns}
    kinds = ((name, get_args(kind)) for name, kind in more.items())
    return [Given(name, type_, option, None, positional=False) for name, (type_, option) in kinds]


def _name_files(typed: dict[str, Any], options: Mapping[str, Given]) -> None:
    """Puts what ``--beir`` and the names of columns say into the values of the files that they are about."""
    folder = typed.pop("beir", None)
    if folder is not None:
        _take_beir(typed, folder, options)
    if typed.get("labels") and not typed.get("collection") and (column := typed.pop("id_column", None)):
        _name_columns(typed, "labels", {"id_column": column}, "")
    for name, option in (("collection", ""), ("queries", "query_")):
        columns = {kind: typed.pop(f"{option}{kind}", None) for kind in ("id_column", "text_column")}
        _name_columns(typed, name, {kind: column for kind, column in columns.items() if column}, option)


def _take_beir(typed: dict[str, Any], folder: str, options: Mapping[str, Given]) -> None:
    """Fills in the files of a folder in BEIR's form that are not given, and that the command uses."""
    from evenrank.files import InputError
    from evenrank.files.texts import BEIR, TextFile, beir_part

    excluded = {other for name, option in options.items() if typed[name] for other in option.option.excludes}
    for option in options.values():
        unused = option.option.needs and not any(typed.get(other) for other in option.option.needs)
        # Another retriever has a collection of its own.
        unused = unused or (option.name == "collection" and typed.get("source") is not None)
        if option.name not in BEIR or typed[option.name] not in (None, []) or unused or option.name in excluded:
            continue
        typed[option.name] = beir_part(folder, option.name)
        if option.name == "queries" and not typed.keys() & {"qrels", "run", "runs"}:
            # All that says which of them to rank.
            with suppress(InputError):
                typed["queries"] = TextFile(typed["queries"], judged=beir_part(folder, "qrels"))


def _name_columns(typed: dict[str, Any], name: str, columns: Mapping[str, str], option: str) -> None:
    """Has columns of these names read in the collection or the queries."""
    if not columns:
        return
    from evenrank.files import EvenrankError
    from evenrank.files.reading import is_index
    from evenrank.files.texts import TextFile

    if not typed.get(name) or is_index(typed[name]):
        raise EvenrankError(f"{arg(option + next(iter(columns)))} needs {arg(name)}")
    files = typed[name] if isinstance(typed[name], list) else [typed[name]]
    texts = [TextFile(path, judged=getattr(path, "judged", None), **columns) for path in files]
    typed[name] = texts if isinstance(typed[name], list) else texts[0]


def made(function: Callable[..., None]) -> Callable[..., None]:
    """The command of a function of this folder, as Typer reads it.

    Its parameters are options (before a ``*``: arguments), and those of each :class:`From` in its place. Its help is
    its docstring; without one, that of the first ``From``. Numbers are checked before anything is done.
    """
    parameters: list[inspect.Parameter] = []
    options: dict[str, list[Given]] = {}
    bundles = set()
    declarations = _annotations(function)
    for name, own in inspect.signature(function).parameters.items():
        type_, declaration = declarations[name]
        if isinstance(declaration, From):
            options[name] = declaration.options()
            bundles.add(name)
        else:
            positional = own.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            options[name] = [Given(name, type_, declaration, own.default, positional)]
        parameters += [option.parameter() for option in options[name]]
    declared = {option.name: option for chosen in options.values() for option in chosen}
    files = _of_files(declared.keys())
    parameters += [option.parameter() for option in files]
    spelling = {option.name: option.typed for option in (*declared.values(), *files)}

    @functools.wraps(function)
    def command(**typed: Any) -> None:
        with spelled(spelling):
            run(typed)

    def run(typed: dict[str, Any]) -> None:
        from evenrank.files.arguments import check_conditions, check_range

        for option in declared.values():
            check_range(option.name, typed[option.name], option.option.range)
        columns = typed.pop("run_columns", None)
        if files:
            _name_files(typed, declared)
        otherwise = {name: option.otherwise for name, option in declared.items()}
        given = typed | {name: default for name, default in otherwise.items() if typed[name] in (None, [])}
        check_conditions(given, otherwise, {name: option.option for name, option in declared.items()})
        values = {}
        for name, chosen in options.items():
            bundle = Values({option.name: given[option.name] for option in chosen})
            read = (bundle[option.name] for option in chosen if option.option.reads)
            bundle.read = tuple(path for value in read for path in (value if isinstance(value, list) else [value]))
            bundle.changed = tuple(option.name for option in chosen if bundle[option.name] != option.otherwise)
            values[name] = bundle if name in bundles else bundle[name]
        if columns is None and typed.get("queries") is None:
            function(**values)
            return
        from evenrank.files.runs import reading_runs

        with reading_runs(columns, typed.get("queries")):
            function(**values)

    command.__doc__ = about(function)
    parameters.append(HELP_ALL)
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
