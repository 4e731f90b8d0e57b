"""Completion: what `help --complete` says, and what bash, zsh and fish make of it
when somebody presses Tab."""
import os
import shutil
import subprocess

import pytest
from conftest import KINDS, PATIENCE, PROGRAM, keys, run
from terminal_support import Terminal

COMMANDS = {c["command"]: c for c in run("help", "--json").json}
FORMATS = [f["format"] for f in run("formats", "--json").json]
FIGURES = [f["name"] for f in run("figures", "--list", "--json").json]


def complete(*words):
    """The words that the last one may become; and what it says of files."""
    done = subprocess.run([PROGRAM, "help", "--complete", "--", *words],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    told = [line for line in lines if line.startswith(":")]
    return [line.split("\t")[0] for line in lines if line not in told], told


# ------------------------------------------------------------- the tables

def test_commands():
    assert complete("") == (list(COMMANDS), [])
    assert complete() == (list(COMMANDS), [])
    assert complete("pla") == (["plan"], [])
    assert complete("nonesuch", "") == ([], [])
    assert complete("help", "ha") == (["has"], [])


# Every line that has options of its own: a command, or one of its verbs.
LINES = [([c["command"]] + v["verb"].split(), v["options"])
         for c in COMMANDS.values() for v in c["verbs"]] + \
    [([c["command"]], c["options"]) for c in COMMANDS.values()]


@pytest.mark.parametrize("line, options", LINES,
                         ids=[" ".join(line) for line, _ in LINES])
def test_every_option_is_known_and_so_is_what_it_takes(line, options):
    """The law for whoever adds an option: complete.c knows what its argument is
    called."""
    assert complete(*line, "--")[0] == \
        [f"--{o['name']}" for o in options] + ["--help"]
    for o in options:
        assert f"--{o['name']}" in complete(*line, f"--{o['name']}")[0]
        if o["arg"]:
            told = complete(*line, f"--{o['name']}", "")
            assert not [t for t in told[1] if "unknown" in t], (o, told)
            joined = complete(*line, f"--{o['name']}=")
            assert joined == ([f"--{o['name']}={w}" for w in told[0]], told[1])
            if o["letter"]:
                assert complete(*line, f"-{o['letter']}", "") == told


@pytest.mark.parametrize("line", [line for line, _ in LINES], ids=" ".join)
def test_every_operand_is_known(line):
    for n in range(1, 5):
        assert not [t for t in complete(*line, *["x"] * n)[1]
                    if "unknown" in t]


def verbs_of(command):
    return [v["verb"] for v in COMMANDS[command]["verbs"]]


def test_kinds_formats_figures_and_verbs():
    for line in (["build", "-k"], ["build", "--kind"], ["plan", "-vk"],
                 ["kinds"], ["kinds", "classic"]):
        assert complete(*line, "") == (KINDS, [])
    assert complete("build", "--kind=cl") == (["--kind=classic"], [])
    assert complete("convert", "--to", "") == (FORMATS, [])
    assert complete("formats", "") == (FORMATS, [])
    assert complete("figures", "") == (FIGURES, [])
    assert complete("redis", "")[0] == verbs_of("redis")
    assert complete("help", "digest", "")[0] == verbs_of("digest")
    assert complete("digest", "--json", "si") == (["simulate"], [])
    assert complete("dedup", "--verify", "")[0] == ["exact", "estimate", "none"]


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_kinds(kind):
    [about] = run("kinds", "--json", kind).json
    names = [f"{o['name']}=" for o in about["options"]]
    for given in (["-k", kind], [f"--kind={kind}"], [f"-k{kind}"]):
        assert complete("build", *given, "-O", "") == (names, [])
    for o in about["options"]:
        assert complete("plan", "-k", kind, "-O", f"{o['name']}=")[0] == \
            [f"{o['name']}={c}" for c in o.get("choices", [])]


def test_options_of_formats_and_of_the_default_kind():
    [about] = run("formats", "--json", "guava").json
    assert complete("has", "-F", "guava", "-O", "")[0] == \
        [f"{o['name']}=" for o in about["options"]]
    assert complete("build", "-O", "") == complete("build", "-k", KINDS[0],
                                                   "-O", "")


def test_files_by_ending():
    assert complete("has", "") == ([], [":files .bly"])
    assert complete("has", "f.bly", "") == ([], [])  # a key: anything
    assert complete("has", "f.bly", "-f", "") == ([], [":files"])
    assert complete("apply", "a.bly", "") == ([], [":files .bld"])
    assert complete("info", "a", "b", "") == ([], [":files .bly"])
    assert complete("shrink", "a", "") == ([], [])  # one is enough
    assert complete("figures", "-o", "") == ([], [":folders"])
    assert complete("has", "--", "-")[1] == [":files .bly"]
    assert complete("dedup", "n") == (["ngrams"], [":files"])


# -------------------------------------------------------------- the shells

@pytest.fixture
def home(tmp_path, ok):
    """A folder with filters and other files, and the command in front of the
    path."""
    folder = tmp_path / "home"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "bloomery").symlink_to(PROGRAM)
    for name in "visits.bly", "words.bly":
        ok("build", "-q", "-o", folder / name, stdin=keys(0, 10))
    (folder / "words.txt").write_text("a\n")
    (folder / "wide folder").mkdir()
    (folder / "only.bld").write_text("")
    return folder


# What is typed, and how the line ends after Tab.
PRESSED = [
    ("bloomery pla", "bloomery plan "),
    ("bloomery build --ki", "bloomery build --kind "),
    ("bloomery build --kind cla", "bloomery build --kind classic "),
    ("bloomery build --kind=cla", "bloomery build --kind=classic "),
    ("bloomery build -k classic -O lay", "-O layout="),
    ("bloomery build -k classic -O layout=par", "-O layout=partitioned "),
    ("bloomery has vis", "bloomery has visits.bly "),
    ("bloomery has wor", "bloomery has words.bly "),
    ("bloomery has words.bly -f words.t", "-f words.txt "),
    ("bloomery figures rate-against-k", "rate-against-k "),
    ("bloomery convert --to guav", "--to guava "),
    ("bloomery redis du", "bloomery redis dump "),
    ("bloomery apply words.bly onl", "words.bly only.bld "),
]


def needs(shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")


@pytest.mark.parametrize("breaks", ["", "COMP_WORDBREAKS=${COMP_WORDBREAKS//=}"])
def test_bash(home, breaks):
    """On a terminal, with Tab, and without the package bash-completion; = parts
    words for bash unless somebody has changed that."""
    (home / ".bashrc").write_text(run("help", "--completion", "bash").out + f"""
PS1='ready> '; {breaks}
tell() {{ printf '[[%s]]\\n' "$READLINE_LINE"; READLINE_LINE=; }}
bind -x '"\\C-t": tell'; bind 'set bell-style none'
""")
    shell = Terminal(["bash", "--rcfile", ".bashrc", "-i"], home,
                     {**os.environ, "HOME": str(home), "TERM": "dumb",
                      "PATH": f"{home}/bin:{os.environ['PATH']}"})
    try:
        shell.until("ready> ")
        for typed, wanted in PRESSED + [
                ("bloomery has words.bly wor", "words.bly wor")]:
            assert shell.line(typed + "\t\x14").endswith(wanted), typed
        # Two Tabs list what there is: filters and folders.
        shell.seen = ""
        shell.type("bloomery has w\t\t\t\x14")
        text = shell.until(r"\[\[.*\]\]")
        assert "words.bly" in text and "wide folder" in text
        assert "words.txt" not in text
    finally:
        shell.end()


def test_fish(home):
    """`complete -C` prints what Tab would offer."""
    needs("fish")
    (home / "script.fish").write_text(run("help", "--completion", "fish").out)
    env = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "c"),
           "PATH": f"{home}/bin:{os.environ['PATH']}"}
    for typed, wanted in PRESSED:
        done = subprocess.run(
            ["fish", "-c", "source script.fish; complete -C \"$argv\"",
             typed], cwd=home, text=True, capture_output=True, env=env,
            timeout=PATIENCE)
        offered = [line.split("\t")[0] for line in done.stdout.splitlines()]
        assert wanted.split()[-1] in offered, (typed, done)
        assert done.stderr == ""
    # The ending that is wanted comes first, and nothing is offered for a key.
    for typed, wanted in (("bloomery has w", "words.bly"),
                          ("bloomery has words.bly wor", None)):
        done = subprocess.run(
            ["fish", "-c", "source script.fish; complete -C \"$argv\"",
             typed], cwd=home, text=True, capture_output=True, env=env,
            timeout=PATIENCE)
        offered = [line.split("\t")[0] for line in done.stdout.splitlines()]
        assert offered[:1] == ([wanted] if wanted else []), (typed, done)


def test_zsh(home):
    """On a terminal, with Tab: the line as it stands afterwards."""
    needs("zsh")
    functions = home / "functions"
    functions.mkdir()
    (functions / "_bloomery").write_text(run("help", "--completion", "zsh").out)
    (home / ".zshrc").write_text(f"""
PS1='ready> '; fpath=({functions} $fpath)
autoload -Uz compinit && compinit -u -D
unsetopt beep prompt_sp; zle_highlight=(none)
# Tab completes, and the line is told between marks that nothing else prints.
tell() {{ zle complete-word; zle -M "<<$BUFFER>>"; zle -I; print -r "[[$BUFFER]]"; BUFFER= }}
zle -N tell; bindkey '^T' tell
""")
    shell = Terminal(["zsh", "-i"], home,
                     {**os.environ, "HOME": str(home), "ZDOTDIR": str(home),
                      "TERM": "dumb",
                      "PATH": f"{home}/bin:{os.environ['PATH']}"})
    try:
        shell.until("ready> ")
        for typed, wanted in PRESSED:
            line = shell.line(typed + "\x14")
            assert line.rstrip().endswith(wanted.rstrip()), (typed, line)
    finally:
        shell.end()
