"""The tables of commands and options, as `bloomery help --json` gives them: what
letters mean, and what became of those that were taken back."""
import pytest
from conftest import run

COMMANDS = {c["command"]: c for c in run("help", "--json").json}

# A letter means one thing in all commands, with two exceptions: -n is the number
# of items wherever a filter is planned, but line numbers in commands that are
# like grep, and -v inverts there, but is verbose in plan. docs/cookbook.md and
# the help of these commands name them.
LIKE_GREP = {"has"}
EXCEPTIONS = {("plan", "v"): "verbose",
              ("traffic", "i"): "interface",  # as tcpdump has it
              **{(c, "n"): "line-number" for c in LIKE_GREP}}

GONE = {
    "basket": {"c": "--min-count", "k": "--components", "r": "--recall",
               "t": "-T, --threshold"},
    "bench": {"r": "--rounds"}, "compress": {"d": "--decompress"},
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
    for c in COMMANDS.values():
        text = ok(c["command"], "--help").out
        for o in c["options"]:
            assert f"--{o['name']}" in text


def test_a_letter_means_one_thing_everywhere():
    meaning = {"h": {"help": ["all"]}}
    for name, c in COMMANDS.items():
        for o in c["options"]:
            if o["letter"] and EXCEPTIONS.get((name, o["letter"])) != o["name"]:
                meaning.setdefault(o["letter"], {}).setdefault(
                    o["name"], []).append(name)
    several = {k: v for k, v in meaning.items() if len(v) > 1}
    assert not several, several


def test_an_option_has_one_letter_everywhere():
    """Or none, where the letter is taken."""
    letters = {}
    for name, c in COMMANDS.items():
        for o in c["options"]:
            if o["letter"]:
                letters.setdefault(o["name"], set()).add(o["letter"])
    several = {k: v for k, v in letters.items() if len(v) > 1}
    assert not several, several


def test_no_command_has_a_name_or_letter_twice():
    for name, c in COMMANDS.items():
        for what in "name", "letter":
            given = [o[what] for o in c["options"] if o[what]]
            assert len(given) == len(set(given)), (name, given)


@pytest.mark.parametrize("command,letter,right", [
    (c, k, v) for c, letters in GONE.items() for k, v in letters.items()])
def test_a_letter_that_is_gone_names_what_is_right(trouble, command, letter,
                                                   right):
    """It is an error, in all forms of a letter, and never another option."""
    long = right.split("--")[-1]
    assert letter not in {o["letter"] for o in COMMANDS[command]["options"]}
    assert long in {o["name"] for o in COMMANDS[command]["options"]}
    for words in ([f"-{letter}", "1"], [f"-{letter}1"]):
        trouble(command, *words, says=[f"-{letter} ", f"use {right}"])
