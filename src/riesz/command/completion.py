"""Completion for shells, written from the parser: words only, so that pressing Tab never starts Python."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

from .arguments import FOLDERS, TARGETS, parser


class Words(NamedTuple):
    """A subcommand: what it is, its options with their words, and whether it takes a file or a choice."""

    name: str
    help: str
    options: list[tuple[list[str], str, list[str] | None]]
    choices: list[str]
    files: bool


def subcommands() -> list[Words]:
    """The subcommands of the parser.

    >>> [w.name for w in subcommands()][:3]
    ['derive', 'explain', 'check']
    """
    top: Any = parser()
    (inside,) = [a for a in top._actions if isinstance(a, argparse._SubParsersAction)]  # pyright: ignore
    words = {a.dest: a.help or "" for a in inside._choices_actions}
    found: list[Words] = []
    for name, sub in inside.choices.items():
        options: list[tuple[list[str], str, list[str] | None]] = []
        choices, files = list[str](), False
        for action in [a for a in sub._actions if a.help != argparse.SUPPRESS]:
            known = [*map(str, action.choices or ((*TARGETS, *FOLDERS) if action.dest == "to" else ()))]
            if action.option_strings:
                options.append((action.option_strings, action.help or "", known if action.nargs != 0 else None))
            else:
                choices, files = choices + known, files or action.dest == "subject"
        found.append(Words(name, words[name], options, choices, files))
    return found


def script(shell: str) -> str:
    """The completion of one shell."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](subcommands())


def _bash(words: list[Words]) -> str:
    cases: list[str] = []
    for w in words:
        flags = " ".join([o for names, *_ in w.options for o in names])
        values = [
            f'      {"|".join(n)}) COMPREPLY=($(compgen -W "{" ".join(v)}" -- "$current")); return ;;'
            for n, _, v in w.options
            if v
        ]
        if any(["-o" in names for names, *_ in w.options]):
            values.append('      -o|--output) COMPREPLY=($(compgen -f -- "$current")); return ;;')
        inside = ["    case $previous in", *values, "    esac"] if values else []
        words_too = f'"{" ".join([flags, *w.choices])}"'
        files = ' $(compgen -f -X "!*.py" -- "$current")' if w.files else ""
        cases += [f"    {w.name})", *inside, f'    COMPREPLY=($(compgen -W {words_too} -- "$current"){files}) ;;']
    names = " ".join([w.name for w in words])
    return "\n".join(
        [
            "# bash completion for riesz",
            "_riesz() {",
            "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}",
            "  if [ $COMP_CWORD -eq 1 ]; then",
            f'    COMPREPLY=($(compgen -W "{names} --help --version" -- "$current")); return',
            "  fi",
            "  case ${COMP_WORDS[1]} in",
            *cases,
            "  esac",
            "}",
            "complete -o filenames -F _riesz riesz",
            "",
        ]
    )


def _quoted(text: str) -> str:
    for old, new in (("'", "’"), ("[", "("), ("]", ")"), (":", ",")):
        text = text.replace(old, new)
    return text


def _zsh(words: list[Words]) -> str:
    cases: list[str] = []
    for w in words:
        rows: list[str] = []
        for names, words_of, values in w.options:
            kind = "" if values is None else f":value:({' '.join(values)})" if values else ":value:"
            kind = ":file:_files" if "-o" in names else kind
            rows += [f"        '{name}[{_quoted(words_of)}]{kind}'" for name in names]
        if w.choices:
            rows.append(f"        '1:choice:({' '.join(w.choices)})'")
        if w.files:
            rows.append("        '1:text or file.py,f:_files -g \"*.py\"'")
        cases += [f"      {w.name})", "        _arguments \\", " \\\n".join(rows), "        ;;"]
    names = [f"        '{w.name}:{_quoted(w.help)}'" for w in words]
    return "\n".join(
        [
            "#compdef riesz",
            "_riesz() {",
            "  local -a commands",
            "  commands=(",
            *names,
            "  )",
            "  if (( CURRENT == 2 )); then",
            "    _describe command commands",
            "  else",
            "    shift words; (( CURRENT-- ))",
            "    case ${words[1]} in",
            *cases,
            "    esac",
            "  fi",
            "}",
            '_riesz "$@"',
            "",
        ]
    )


def _fish(words: list[Words]) -> str:
    lines = [
        "# fish completion for riesz",
        "complete -c riesz -f",
        "complete -c riesz -l version -d 'print the version'",
    ]
    for w in words:
        lines.append(f"complete -c riesz -n __fish_use_subcommand -a {w.name} -d '{_quoted(w.help)}'")
        seen = f"complete -c riesz -n '__fish_seen_subcommand_from {w.name}'"
        for names, words_of, values in w.options:
            flags = " ".join([f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in names])
            kind = "" if values is None else f" -x -a '{' '.join(values)}'" if values else " -r"
            kind = " -r -F" if "-o" in names else kind
            lines.append(f"{seen} {flags} -d '{_quoted(words_of)}'{kind}")
        if w.choices:
            lines.append(f"{seen} -a '{' '.join(w.choices)}'")
        if w.files:
            lines.append(f"{seen} -a '(__fish_complete_suffix .py)'")
    return "\n".join([*lines, ""])
