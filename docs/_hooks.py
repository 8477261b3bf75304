"""Pages made from what already exists: the changelog, the commands' help, the docstrings of measures and methods."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
SOURCES = {
    "RS20": "[Rekabsaz and Schedl: Do neural ranking models intensify gender bias? SIGIR 2020]"
    "(https://doi.org/10.1145/3397271.3401280).",
    "RKS21": "[Rekabsaz, Kopeinik and Schedl: Societal biases in retrieved contents: measurement framework and "
    "adversarial mitigation of BERT rankers. SIGIR 2021](https://doi.org/10.1145/3404835.3462949).",
    "BEU19": "[Beutel et al.: Fairness in recommendation ranking through pairwise comparisons. KDD 2019]"
    "(https://doi.org/10.1145/3292500.3330745).",
    "IBBR": "[Li et al.: Debiasing neural retrieval via in-batch balancing regularization. GeBNLP 2022]"
    "(https://aclanthology.org/2022.gebnlp-1.5).",
    "BAS": "[Bigdeli et al.: A light-weight strategy for restraining gender biases in neural rankers. ECIR 2022]"
    "(https://doi.org/10.1007/978-3-030-99739-7_6).",
    "POS": "[Hofstätter et al.: Mitigating the position bias of transformer models in passage re-ranking. ECIR 2021]"
    "(https://doi.org/10.1007/978-3-030-72113-8_16).",
}
"""What the keys in docstrings stand for."""
BY_NAME = {
    "Hofstätter et al., ECIR 2021": SOURCES["POS"],
    "Bolukbasi et al. 2016": "[Bolukbasi et al.: Man is to computer programmer as woman is to homemaker? Debiasing "
    "word embeddings. NeurIPS 2016](https://arxiv.org/abs/1607.06520).",
    "Gonen & Goldberg 2019": "[Gonen and Goldberg: Lipstick on a pig: debiasing methods cover up systematic gender "
    "biases in word embeddings but do not remove them. NAACL 2019](https://aclanthology.org/N19-1061).",
    "Belrose et al. 2023": "[Belrose et al.: LEACE: perfect linear concept erasure in closed form. NeurIPS 2023]"
    "(https://arxiv.org/abs/2306.03819).",
    "Ganin & Lempitsky 2015": "[Ganin and Lempitsky: Unsupervised domain adaptation by backpropagation. ICML 2015]"
    "(https://arxiv.org/abs/1409.7495).",
}


@dataclass(frozen=True)
class Subject:
    """A page made from docstrings: those of a module ("") or of names in it, one behind the other."""

    slug: str
    title: str
    module: str
    names: tuple[str, ...]
    use: str


POSITION = (
    Subject(
        "answer-positions",
        "Answer positions",
        "measures/answers.py",
        ("", "AnswerPositions"),
        "`evenrank position answers SQUAD.json`, `evenrank.position_answers` in Python.",
    ),
    Subject(
        "term-similarity",
        "ATS and MATS",
        "measures/similarity.py",
        ("Similarity", "term_similarity"),
        "`evenrank position similarity MODEL --collection C`, `evenrank.position_similarity` in Python.",
    ),
    Subject(
        "position-sensitivity",
        "Position sensitivity",
        "measures/sensitivity.py",
        ("Buckets", "by_bucket"),
        "`evenrank position sensitivity MODEL --squad FILE`, `evenrank.position_sensitivity` in Python.",
    ),
)
MITIGATIONS = (
    Subject(
        "ibbr-pd",
        "IBBR, pairwise differences",
        "mitigation/ibbr.py",
        ("pairwise_difference", ""),
        '`[fairness]` with `name = "ibbr-pd"` in a recipe; `IBBRLoss(model, term="ibbr-pd")` in sentence-transformers.',
    ),
    Subject(
        "ibbr-ts",
        "IBBR, T-statistics",
        "mitigation/ibbr.py",
        ("t_statistics", ""),
        '`[fairness]` with `name = "ibbr-ts"` in a recipe; `IBBRLoss(model)` in sentence-transformers.',
    ),
    Subject(
        "bias-aware-negatives",
        "Bias-aware negatives",
        "mitigation/negatives",
        ("", "beta", "candidates", "sample"),
        "`evenrank negatives RUN …`, then `groups` under `[data]` in a recipe.",
    ),
    Subject(
        "advbert",
        "AdvBert",
        "mitigation/adversarial.py",
        ("", "gendered", "attack"),
        'an `[adversary]` table in a recipe (cat and dot), and `keep = "last"` under `[training]`.',
    ),
    Subject(
        "blind",
        "Blind",
        "mitigation/blind.py",
        ("", "mask_texts"),
        '`blind = "gender-en"` under `[data]` in a recipe; `evenrank rerank --blind gender-en`.',
    ),
    Subject(
        "rotation",
        "Rotation",
        "mitigation/rotation",
        ("", "sentence_starts", "moved_span"),
        '`evenrank rotate COLLECTION --out C2`; `rotate = "word"` under `[data]` in a recipe.',
    ),
    Subject(
        "hard-debiasing",
        "Hard debiasing",
        "embeddings/debias.py",
        ("", "bias_subspace", "hard_debias"),
        "`evenrank embeddings debias IN --out OUT`.",
    ),
    Subject(
        "leace",
        "LEACE",
        "embeddings/leace.py",
        ("", "fit_leace"),
        "`evenrank embeddings debias IN --out OUT --method leace`.",
    ),
)


# --- mkdocs -----------------------------------------------------------------------------------------------------------


def on_config(config: Any, **_: Any) -> Any:
    """Puts the generated pages into the navigation, behind the page that introduces them."""
    pages: dict[str, list[Any]] = {"Measures": [], "Mitigations": [], "Commands": []}
    for measure in _measures():
        pages["Measures"].append({measure.NAME: f"measures/{_slug(measure)}.md"})
    pages["Measures"] += [{subject.title: f"measures/{subject.slug}.md"} for subject in POSITION]
    pages["Mitigations"] += [{subject.title: f"mitigations/{subject.slug}.md"} for subject in MITIGATIONS]
    pages["Commands"] = [{name: f"commands/{_command_slug(name)}.md"} for name, _ in _commands()]
    for entry in config.nav or ():
        for name, listed in entry.items():
            if name in pages and isinstance(listed, list):
                listed += pages[name]
    return config


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Adds a page for each measure, each mitigation and each command."""
    for measure in _measures():
        files.append(File.generated(config, f"measures/{_slug(measure)}.md", content=_measure_page(measure)))
    for folder, subjects in (("measures", POSITION), ("mitigations", MITIGATIONS)):
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
    }
    for placeholder, content in made.items():
        mark = f"<!-- {placeholder} -->"
        if mark in markdown:
            markdown = markdown.replace(mark, content())
    return markdown


# --- contents ---------------------------------------------------------------------------------------------------------


def _measures() -> tuple[Any, ...]:
    from evenrank.measures import BIAS_MEASURES

    return BIAS_MEASURES


def _slug(measure: Any) -> str:
    return str(measure.NAME).replace("|ARaB|", "absolute-mean-arab").replace("|", "absolute-", 1).strip("|").lower()


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
    whole = " A figure of the whole run." if measure.whole_run else ""
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
    """A page's formulas as MathML, which browsers draw by themselves, with what their letters mean."""
    from latex2mathml.converter import convert

    formula = _formulas().get(slug)
    if formula is None:
        return ""
    drawn = "\n".join(f'<div class="formula">{convert(latex, display="block")}</div>' for latex in formula["latex"])
    return f"{drawn}\n\nwhere {formula['where']}\n\n"


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


def _first_sentence(command: Any) -> str:
    return _plain_cell((command.help or "").strip().split("\n")[0])


def _plain_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ").strip()


def _command_table() -> str:
    rows = [
        f"| [`evenrank {name}`]({_command_slug(name)}.md) | {_first_sentence(command)} |"
        for name, command in _commands()
    ]
    return "\n".join(["| command | does |", "| --- | --- |", *rows])


def _command_page(name: str, command: Any) -> str:
    """What ``evenrank NAME --help`` says, as a page."""
    context = command.context_class(command, info_name=f"evenrank {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"# evenrank {name}", (command.help or "").strip(), f"```text\nevenrank {name} {usage}\n```"]
    for kind in ("argument", "option"):
        rows = [parameter.get_help_record(context) for parameter in command.params if parameter.param_type_name == kind]
        # A code span keeps a bar only where it is escaped, as tables need it.
        lines = [
            f"| `{names.replace('|', chr(92) + '|')}` | {_plain_cell(text)} |" for names, text in filter(None, rows)
        ]
        if lines:
            parts.append("\n".join([f"## {kind.title()}s", "", f"| {kind} | meaning |", "| --- | --- |", *lines]))
    return "\n\n".join(parts) + "\n"


def _docstrings(module: Path) -> dict[str, str]:
    """The docstrings of a module, or of a package: by the name of the function or class; its own has none."""
    documented = {}
    # A package's own comes last, and stands for it.
    for file in sorted(module.glob("*.py"), reverse=True) if module.is_dir() else [module]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        documented[""] = ast.get_docstring(tree) or ""
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                documented[node.name] = ast.get_docstring(node) or ""
    return documented


def parts(docstring: str) -> tuple[str, str, str]:
    """A docstring's definition, what follows "When it misleads:" and what follows "Worked example:", as Markdown."""
    text = inspect.cleandoc(docstring)
    definition, _, rest = text.partition("When it misleads:")
    misleads, _, example = rest.partition("Worked example:")
    return _markdown(definition), _sentence(_markdown(misleads)), _sentence(_markdown(example))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _markdown(text: str) -> str:
    """reStructuredText of a docstring as Markdown; what a doctest shows as a block of code."""
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
    used = {source: f"{key}: " for key, source in SOURCES.items() if re.search(rf"\b{key}\b[^\[]*\]", page)}
    used = {**{source: "" for name, source in BY_NAME.items() if name in page}, **used}
    lines = [f"- {key}{source}" for source, key in used.items()]
    return page + ("\n## Sources\n\n" + "\n".join(lines) + "\n" if lines else "")
