"""The tables of commands and options, as `bloomery help --json` gives them: what
letters mean, and what became of those that were taken back."""
import re

import pytest
from conftest import run

COMMANDS = {c["command"]: c for c in run("help", "--json").json}


def tables(c):
    """The tables of a command: of each of its verbs, or its own."""
    return [(c["command"], v["verb"].split(), v["options"])
            for v in c["verbs"]] or [(c["command"], [], c["options"])]


TABLES = [t for c in COMMANDS.values() for t in tables(c)]
OPTIONS = {name: [o for _, _, options in tables(c) for o in options]
           for name, c in COMMANDS.items()}

# A letter means one thing in all commands, with two exceptions: -n is the number
# of items wherever a filter is planned, but line numbers in commands that are
# like grep, and -v inverts there, but is verbose in plan. docs/cookbook.md and
# the help of these commands name them. index search has all of grep's letters.
LIKE_GREP = {"has"}
EXCEPTIONS = {("plan", "v"): "verbose",
              ("compress", "d"): "decompress",  # as gzip has it
              ("traffic", "i"): "interface",  # as tcpdump has it
              ("quantiles", "q"): "quantiles",  # its main option; --quiet there
              **{(c, "n"): "line-number" for c in LIKE_GREP},
              # All of grep's, in the command that prints what grep prints.
              **{("index", letter): name for letter, name in {
                  "A": "after-context", "B": "before-context", "C": "context",
                  "E": "extended-regexp", "F": "fixed-strings",
                  "G": "basic-regexp", "H": "with-filename",
                  "c": "count", "e": "regexp", "h": "no-filename",
                  "i": "ignore-case", "l": "files-with-matches",
                  "m": "max-count", "n": "line-number", "o": "only-matching",
                  "v": "invert-match", "w": "word-regexp"}.items()}}

GONE = {
    "basket": {"c": "--min-count", "k": "--components", "r": "--recall",
               "t": "-T, --threshold"},
    "bench": {"r": "--rounds"},
    "convert": {"T": "--to"}, "dedup": {"k": "--k", "l": "--lines"},
    "digest": {"l": "--listen"}, "explain": {"m": "--m"},
    "figures": {"l": "--list"}, "parquet": {"c": "--column"},
    "plan": {"t": "-T, --threshold"},
    "redis": {"H": "--host", "P": "--port", "u": "--user"},
    "shrink": {"b": "--bytes", "t": "--times"},
    "similar": {"k": "--components", "n": "--size"}, "top": {"k": "--k"},
}


def test_there_is_a_table_of_every_command(ok):
    assert list(COMMANDS) == ok("help", "--list").lines
    assert ok("help", "--json", "has").json == [COMMANDS["has"]]
    for name, verb, options in TABLES:
        text = ok(name, *verb, "--help").out
        assert text == ok("help", name, *verb).out
        told = re.findall(r"^  (?:-., |    )--([a-z0-9-]+)", text, re.M)
        assert [n for n in told if n != "help"] == [o["name"] for o in options]
        assert text.startswith(" ".join(["Usage: bloomery", name, *verb, ""]))


def test_the_verbs_of_a_command_are_told_with_it(ok):
    for name, c in COMMANDS.items():
        text = ok(name, "--help").out
        for v in c["verbs"]:
            assert re.search(rf"^  {v['verb']} +{re.escape(v['summary'])}$",
                             text, re.M)
            assert c["options"] == []


def test_an_option_is_of_its_verb_alone(trouble):
    """Whatever one verb does not take is refused, and who takes it is named."""
    for c in COMMANDS.values():
        every = {o["name"] for v in c["verbs"] for o in v["options"]}
        for v in c["verbs"]:
            own = {o["name"] for o in v["options"]}
            for name in sorted(every - own)[:2]:
                trouble(c["command"], *v["verb"].split(), f"--{name}", "1",
                        says=f"takes no --{name}, as ")


def test_help_of_a_verb_that_is_none(trouble):
    trouble("digest", "nosuch", "--help", says="unknown verb 'nosuch'")
    trouble("digest", "serv", "-h", says="did you mean 'serve'?")
    trouble("help", "digest", "nosuch", says="unknown verb 'nosuch'")
    trouble("help", "digest", "get", "has", says="one command at a time")


def test_bounds_of_numbers(trouble):
    trouble("digest", "serve", "--pause", 10001, "x", says="at most 10000")
    trouble("digest", "simulate", "--proxies", 1, says="at least 2")
    trouble("digest", "simulate", "--zipf", 11, says="at most 10")
    trouble("digest", "simulate", "--zipf", -1, says="at least 0")


def test_a_letter_means_one_thing_everywhere():
    meaning = {"h": {"help": ["all"]}}
    for name, c in COMMANDS.items():
        for o in OPTIONS[name]:
            if o["letter"] and EXCEPTIONS.get((name, o["letter"])) != o["name"]:
                meaning.setdefault(o["letter"], {}).setdefault(
                    o["name"], []).append(name)
    several = {k: v for k, v in meaning.items() if len(v) > 1}
    assert not several, several


def test_an_option_has_one_letter_everywhere():
    """Or none, where the letter is taken."""
    letters = {}
    for name, options in OPTIONS.items():
        for o in options:
            if o["letter"]:
                letters.setdefault(o["name"], set()).add(o["letter"])
    several = {k: v for k, v in letters.items() if len(v) > 1}
    assert not several, several


def test_no_command_has_a_name_or_letter_twice():
    for name, verb, options in TABLES:
        for what in "name", "letter":
            given = [o[what] for o in options if o[what]]
            assert len(given) == len(set(given)), (name, verb, given)


@pytest.mark.parametrize("command,letter,right", [
    (c, k, v) for c, letters in GONE.items() for k, v in letters.items()])
def test_a_letter_that_is_gone_names_what_is_right(trouble, command, letter,
                                                   right):
    """It is an error, in all forms of a letter, and never another option."""
    long = right.split("--")[-1]
    assert letter not in {o["letter"] for o in OPTIONS[command]}
    assert long in {o["name"] for o in OPTIONS[command]}
    for words in ([f"-{letter}", "1"], [f"-{letter}1"]):
        trouble(command, *words, says=[f"-{letter} ", f"use {right}"])
