"""Generated pages: from the changelog, the commands' help, and the docstrings of measures and methods."""

from __future__ import annotations

import ast
import functools
import html
import inspect
import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from mkdocs.structure.files import File

from evenrank.results.page import CITATIONS
from evenrank.results.terms import Explanation, explanations, sentence, terms_in

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Subject:
    """A page generated from docstrings: that of a module ("") and those of names in it, in this order."""

    slug: str
    title: str
    module: str
    names: tuple[str, ...]
    use: str


EFFECTIVENESS = (
    Subject(
        "sdcg",
        "SDCG",
        "measures/utility.py",
        ("ScaledDCG",),
        '`--measures "SDCG(max_rel=3)@10"`.',
    ),
    Subject(
        "rbp",
        "RBP",
        "measures/utility.py",
        ("RankBiasedPrecision",),
        '`--measures "RBP(rel=1,p=0.8)"`.',
    ),
)
POSITION = (
    Subject(
        "answer-positions",
        "Answer positions",
        "probes/answers.py",
        ("", "AnswerPositions"),
        "`evenrank position answers SQUAD.json`, `evenrank.position_answers` in Python.",
    ),
    Subject(
        "term-similarity",
        "ATS and MATS",
        "probes/similarity.py",
        ("TermSimilarity", "term_similarity"),
        "`evenrank position similarity MODEL --collection C`, `evenrank.position_similarity` in Python.",
    ),
    Subject(
        "moved-answers",
        "Moved answers",
        "probes/sensitivity.py",
        ("PositionCurve", "position_curve"),
        "`evenrank position sensitivity MODEL --squad FILE`, `evenrank.position_sensitivity` in Python.",
    ),
)
PROBES = (
    Subject(
        "probe-effect",
        "Effect of a probe",
        "probes/effects.py",
        ("", "preference"),
        "`evenrank probe MODEL --variants FILE …`, `evenrank.probe` in Python.",
    ),
)
MITIGATIONS = (
    Subject(
        "ibbr-pd",
        "IBBR, pairwise differences",
        "mitigation/ibbr.py",
        ("pairwise_difference", ""),
        '`[fairness]` with `name = "ibbr-pd"` in a recipe; `WithFairness(loss, IBBR("ibbr-pd"))` in'
        " sentence-transformers.",
    ),
    Subject(
        "ibbr-ts",
        "IBBR, T-statistics",
        "mitigation/ibbr.py",
        ("t_statistics", ""),
        '`[fairness]` with `name = "ibbr-ts"` in a recipe; `WithFairness(loss, IBBR())` in sentence-transformers.',
    ),
    Subject(
        "bias-aware-negatives",
        "Bias-aware negatives",
        "mitigation/negatives.py",
        ("", "beta", "candidates", "sample"),
        "`evenrank negatives RUN …`, then `groups` under `[data]` in a recipe.",
    ),
    Subject(
        "advbert",
        "AdvBert",
        "training/adversarial.py",
        ("", "gendered", "attack"),
        "an `[adversary]` table in a recipe (cat and dot); the last checkpoint is kept.",
    ),
    Subject(
        "blind",
        "Blind",
        "mitigation/blind.py",
        ("", "mask_texts"),
        '`blind = "gender-en"` under `[data]` in a recipe; `evenrank rerank --blind gender-en`.',
    ),
    Subject(
        "neutral",
        "Neutral",
        "mitigation/reorderings.py",
        ("Neutral",),
        "`evenrank rebalance RUN --method neutral`.",
    ),
    Subject(
        "fair",
        "FA*IR",
        "mitigation/reorderings.py",
        ("Fair", "m_table"),
        "`evenrank rebalance RUN --method fair`.",
    ),
    Subject(
        "detconstsort",
        "DetConstSort",
        "mitigation/reorderings.py",
        ("DetConstSort",),
        "`evenrank rebalance RUN --method detconstsort`.",
    ),
    Subject(
        "shift",
        "Shift",
        "mitigation/reorderings.py",
        ("Shift", "lean_offsets"),
        "`evenrank rebalance RUN --method shift`.",
    ),
    Subject(
        "rotation",
        "Rotation",
        "mitigation/rotation.py",
        ("", "moved_span"),
        '`evenrank rotate COLLECTION --out C2`; `rotate = "word"` under `[data]` in a recipe.',
    ),
    Subject(
        "hard-debiasing",
        "Hard debiasing",
        "search/debias.py",
        ("", "bias_subspace", "hard_debias"),
        "`evenrank embeddings debias IN --out OUT`.",
    ),
)


# --- mkdocs -----------------------------------------------------------------------------------------------------------


def on_config(config: Any, **_: Any) -> Any:
    """Adds the generated pages to the navigation, after the page that introduces them."""
    pages: dict[str, list[Any]] = {"Findings": [], "Measures": [], "Mitigations": [], "Commands": []}
    pages["Findings"] = [{finding.keys[0]: f"findings/{_finding_slug(finding)}.md"} for finding in explanations()]
    for measure in _measures():
        pages["Measures"].append({measure.NAME: f"measures/{_slug(measure)}.md"})
    pages["Measures"] += [
        {subject.title: f"measures/{subject.slug}.md"} for subject in (*EFFECTIVENESS, *POSITION, *PROBES)
    ]
    pages["Mitigations"] += [{subject.title: f"mitigations/{subject.slug}.md"} for subject in MITIGATIONS]
    pages["Commands"] = [{name: f"commands/{_command_slug(name)}.md"} for name, _ in _commands()]
    for entry in config.nav or ():
        for name, listed in entry.items():
            if name in pages and isinstance(listed, list):
                listed += pages[name]
    return config


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Adds a page for each finding, each measure, each mitigation and each command."""
    for finding in explanations():
        files.append(File.generated(config, f"findings/{_finding_slug(finding)}.md", content=_finding_page(finding)))
    for measure in _measures():
        files.append(File.generated(config, f"measures/{_slug(measure)}.md", content=_measure_page(measure)))
    for folder, subjects in (("measures", (*EFFECTIVENESS, *POSITION, *PROBES)), ("mitigations", MITIGATIONS)):
        for subject in subjects:
            files.append(File.generated(config, f"{folder}/{subject.slug}.md", content=_subject_page(subject)))
    for name, command in _commands():
        files.append(File.generated(config, f"commands/{_command_slug(name)}.md", content=_command_page(name, command)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fills in the placeholders of a page."""
    made = {
        "CHANGELOG": _changelog,
        "MEASURES": _measure_table,
        "MITIGATIONS": _mitigation_table,
        "COMMANDS": _command_table,
        "RECIPE": _recipe_tables,
        "JSON": _json_tables,
        "FINDINGS": _finding_table,
    }
    for placeholder, content in made.items():
        mark = f"<!-- {placeholder} -->"
        if mark in markdown:
            markdown = markdown.replace(mark, content())
    return markdown


# --- contents ---------------------------------------------------------------------------------------------------------


def _measures() -> tuple[Any, ...]:
    from evenrank.measures import bias_measures

    return bias_measures()


def _slug(measure: Any) -> str:
    return str(measure.SPELLED or measure.NAME).lower()


def _better(measure: Any) -> str:
    return "nearer 0 is better" if measure.better == "nearer zero" else "higher is better"


def _changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def _measure_table() -> str:
    rows = [
        f"| [{m.NAME.replace('|', '&#124;')}]({_slug(m)}.md) | {m.PRETTY_NAME} | {_better(m)} |" for m in _measures()
    ]
    return "\n".join(["| measure | name | |", "| --- | --- | --- |", *rows])


def _mitigation_table() -> str:
    rows = [f"| [{subject.title}]({subject.slug}.md) | {subject.use} |" for subject in MITIGATIONS]
    return "\n".join(["| mitigation | used by |", "| --- | --- |", *rows])


def _measure_page(measure: Any) -> str:
    rows = [
        f"| `{name}` | {info.desc} | {'' if info.required or info.default is None else f'`{info.default}`'} |"
        for name, info in measure.SUPPORTED_PARAMS.items()
    ]
    table = "\n".join(["| parameter | meaning | default |", "| --- | --- | --- |", *rows])
    whole = " A value of the whole run." if measure.whole_run else ""
    definition, misleads, example = parts(type(measure).__doc__ or "")
    name = measure.NAME.replace("|", "\\|")
    return _with_sources(
        f"# {name}\n\n{measure.PRETTY_NAME}; {_better(measure)}.{whole}\n\n## Definition\n\n{_formula(_slug(measure))}"
        f"{definition}\n\n{table}\n\n"
        f"## Worked example\n\n{example}\n\n## When it misleads\n\n{misleads}\n"
    )


def _subject_page(subject: Subject) -> str:
    documented = _docstrings(ROOT / "src" / "evenrank" / subject.module)
    home = f"evenrank.{subject.module.removesuffix('.py').replace('/', '.')}"
    definitions, misleading, examples = [], [], []
    for name in subject.names:
        definition, misleads, example = parts(documented[name])
        heading = f"`{home}.{name}`" if name else f"`{home}`"
        definitions.append(f"### {heading}\n\n{definition}")
        misleading += filter(None, [misleads])
        examples += filter(None, [example])
    return _with_sources(
        "\n\n".join(
            [
                *(f"# {subject.title}", f"Use: {subject.use}", "## Definition", _formula(subject.slug), *definitions),
                *("## Worked example", *examples, "## When it misleads", *misleading),
            ]
        )
        + "\n"
    )


@functools.cache
def _formulas() -> dict[str, dict[str, Any]]:
    return tomllib.loads((ROOT / "docs" / "formulas.toml").read_text(encoding="utf-8"))


def _formula(slug: str) -> str:
    """The formulas of a page as MathML, which browsers render natively, and the meaning of their symbols."""
    from latex2mathml.converter import convert

    formula = _formulas().get(slug)
    if formula is None:
        return ""
    drawn = "\n".join(f'<div class="formula">{convert(latex, display="block")}</div>' for latex in formula["latex"])
    return f"{drawn}\n\nwhere {formula['where']}\n\n"


# --- recipes ---------------------------------------------------------------------------------------------------------


def _recipe_tables() -> str:
    """Every key of a recipe with its default and meaning, a table for each section."""
    from evenrank.training.recipes import DistilRecipe, Recipe

    sections = [("Top level", Recipe)]
    sections += [(f"`[{name}]`", model) for name, field in Recipe.model_fields.items() for model in _models(field)]
    fields = {name: DistilRecipe.model_fields[name] for name in ("teacher", "data")}
    sections += [(f"`[{name}]` with a teacher", model) for name, field in fields.items() for model in _models(field)]
    parts = []
    for title, model in sections:
        rows = [
            f"| `{name}` | {_default(field)} | {_plain_cell(field.description or '')} |"
            for name, field in model.model_fields.items()
            if not list(_models(field))
        ]
        parts.append("\n".join([f"### {title}", "", "| key | default | meaning |", "| --- | --- | --- |", *rows]))
    return "\n\n".join(parts)


def _models(field: Any) -> list[Any]:
    """The model of a field that is a section of its own, alone or in a union with None."""
    from pydantic import BaseModel

    kinds = [field.annotation, *get_args(field.annotation)]
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    return "" if field.default is None or field.default_factory else f"`{field.default}`"


# --- findings ---------------------------------------------------------------------------------------------------------


CALLED = {"impact": "audit --table", "position": "position sensitivity"}
"""The commands that are not called as the file of their phrases is."""


def _finding_table() -> str:
    rows = [
        f"| {CALLED.get(finding.command, finding.command)} | [{', '.join(f'`{key}`' for key in finding.keys)}]"
        f"({_finding_slug(finding)}.md) | {_plain_cell(finding.means)} |"
        for finding in explanations()
    ]
    return "\n".join(["| command | finding | meaning |", "| --- | --- | --- |", *rows])


def _finding_slug(finding: Explanation) -> str:
    return f"{finding.command}-{finding.keys[0].replace('_', '-')}"


def _finding_page(finding: Explanation) -> str:
    sentences = {key: sentence(finding.command, key) for key in finding.keys}
    terms = terms_in(" ".join((*sentences.values(), finding.means)))
    command = CALLED.get(finding.command, finding.command)
    parts = [
        f"# {finding.keys[0]}",
        f"`evenrank {command}` says, for example:\n\n> {_plain_cell(finding.example)}",
        f"## What it means\n\n{finding.means}",
        f"## How sure it is\n\n{finding.sure}",
        f"## What to do\n\n{finding.next}",
        "\n".join(
            ["## Sentences", "", "| key | sentence |", "| --- | --- |"]
            + [f"| `{key}` | {_plain_cell(text)} |" for key, text in sentences.items()]
        ),
    ]
    if terms:
        rows = [f"| {term} | {_plain_cell(text)} |" for term, text in terms.items()]
        parts.append("\n".join(["## Terms", "", "| term | |", "| --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


# --- JSON -------------------------------------------------------------------------------------------------------------


def _json_tables() -> str:
    """A table of keys for each object that docs/json.schema.json defines."""
    schema = json.loads((ROOT / "docs" / "json.schema.json").read_text(encoding="utf-8"))
    parts = []
    for name, definition in schema["$defs"].items():
        if not definition["title"]:
            continue
        also = [_json_type(base) for base in definition.get("allOf", [])]
        about = " ".join(filter(None, [definition.get("description"), also and f"It has the keys of {also[0]}, and:"]))
        rows = [
            f"| `{key}` | {_json_type(value)}{'' if key in definition['required'] else ', optional'} "
            f"| {_plain_cell(value.get('description', ''))} |"
            for key, value in definition["properties"].items()
        ]
        table = "\n".join(["| key | type | meaning |", "| --- | --- | --- |", *rows])
        parts.append(f"## {definition['title']} {{: #{name} }}\n\n{about}\n\n{table}")
    return "\n\n".join(parts)


def _json_type(schema: dict[str, Any]) -> str:
    """The type of a value of JSON in words: ``number or null``, ``list of [test](#test)``."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        target = {"a_test": "test", "an_estimate": "estimate"}.get(name, name)
        return f"[{target.replace('_', ' ')}](#{target})"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(map(_json_type, schema["anyOf"]))
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", ["any"])
    inner = schema.get("items") or schema.get("additionalProperties")
    names = {"array": f"list of {_json_type(inner)}" if inner else "list", "object": "object"}
    if inner and "object" in kinds:
        names["object"] = f"object of {_json_type(inner)}"
    return " or ".join(names.get(kind, kind) for kind in kinds)


# --- commands ---------------------------------------------------------------------------------------------------------


@functools.cache
def _commands() -> tuple[tuple[str, Any], ...]:
    """Every command with its name as typed, without ``evenrank``: ``audit``, ``position answers``, …"""
    import typer

    from evenrank.cli import app

    def walk(prefix: str, group: Any) -> list[tuple[str, Any]]:
        found = []
        for name, command in group.commands.items():
            whole = f"{prefix}{name}"
            found += walk(f"{whole} ", command) if hasattr(command, "commands") else [(whole, command)]
        return found

    return tuple(walk("", typer.main.get_command(app)))


def _command_slug(name: str) -> str:
    return name.replace(" ", "-")


def _plain_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ").strip()


def _names_cell(names: str) -> str:
    """An option with its values, or an argument without its Python type, as code: ``--tokens word|whitespace``."""
    names = re.sub(r" <[^<>]*>$", "", names)
    # A bar in a code span of a table would need a backslash, which is then shown.
    return f"<code>{html.escape(names).replace('|', '&#124;')}</code>"


def _command_table() -> str:
    rows = [
        f"| [`evenrank {name}`]({_command_slug(name)}.md) | {_plain_cell(command.short_help)} |"
        for name, command in _commands()
    ]
    return "\n".join(["| command | does |", "| --- | --- |", *rows])


def _command_page(name: str, command: Any) -> str:
    """The help of ``evenrank NAME`` as a page, with all options."""
    command = command.whole()
    context = command.context_class(command, info_name=f"evenrank {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"# evenrank {name}", (command.help or "").strip(), f"```text\nevenrank {name} {usage}\n```"]
    parts.append(f"```sh\n{command.epilog}\n```")
    for kind in ("argument", "option"):
        rows = [parameter.get_help_record(context) for parameter in command.params if parameter.param_type_name == kind]
        lines = [f"| {_names_cell(names)} | {_plain_cell(text)} |" for names, text in filter(None, rows)]
        if lines:
            parts.append("\n".join([f"## {kind.title()}s", "", f"| {kind} | meaning |", "| --- | --- |", *lines]))
    return "\n\n".join(parts) + "\n"


def _docstrings(module: Path) -> dict[str, str]:
    """The docstrings of a module by function or class name, re-exports included; its own is under ""."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    documented = {"": ast.get_docstring(tree) or ""}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            documented[node.name] = ast.get_docstring(node) or ""
        elif isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            sibling = _docstrings(module.parent / f"{node.module}.py")
            documented |= {name.name: sibling[name.name] for name in node.names if name.name in sibling}
    return documented


def parts(docstring: str) -> tuple[str, str, str]:
    """A docstring's definition, and the parts after "When it misleads:" and "Worked example:", as Markdown."""
    text = inspect.cleandoc(docstring)
    definition, _, rest = text.partition("When it misleads:")
    misleads, _, example = rest.partition("Worked example:")
    return _markdown(definition), _sentence(_markdown(misleads)), _sentence(_markdown(example))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _markdown(text: str) -> str:
    """reStructuredText of a docstring as Markdown; doctests become code blocks."""
    text = re.sub(r":(?:func|class|mod|meth):`~?([^`]+)`", r"`\1`", text)
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    lines: list[str] = []
    inside = False
    for line in text.strip().split("\n"):
        if line.startswith(">>>") and not inside:
            lines.append("```pycon")
            inside = True
        if inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


def _with_sources(page: str) -> str:
    keys = [key for key in CITATIONS if key.isalnum() and re.search(rf"\b{key}\b[^\[]*\]", page)]
    names = [name for name in CITATIONS if not name.isalnum() and name in page]
    used = {CITATIONS[name]: "" for name in names} | {CITATIONS[key]: f"{key}: " for key in keys}
    lines = [f"- {key}[{source.text}]({source.url})." for source, key in used.items()]
    return page + ("\n## Sources\n\n" + "\n".join(lines) + "\n" if lines else "")
