"""What people type at the first try: names that other systems have for things, and
messages that say what would do."""
import re

import pytest
from conftest import run

HOSTS = "0.0.0.0 ads.example.org\n0.0.0.0 t.example.net\n"

COMMANDS = run("help", "--list").lines


@pytest.mark.parametrize("typed, meant", [
    ("query", "has"), ("check", "has"), ("contains", "has"), ("test", "has"),
    ("create", "build"), ("union", "merge"), ("stats", "info"),
    ("delete", "remove"), ("insert", "add")])
def test_commands_by_other_names(ok, typed, meant):
    assert ok(typed, "--help").out == ok(meant, "--help").out
    assert ok("help", typed).out == ok("help", meant).out
    assert typed not in COMMANDS
    assert typed not in run("help", "--complete", "--", typed).out


def test_kinds_and_options_by_other_names(ok):
    for kind in "bloom", "standard", "classic":
        ok("build", "-q", "--kind", kind, "--capacity", "100", "--error-rate",
           "2%", "-o", f"{kind}.bly", stdin="a\nb\n")
        made = ok("info", "--json", f"{kind}.bly").json
        assert made["kind"] == "classic" and made["capacity"] == 100
        assert 0.01 < made["fpr_at_capacity"] <= 0.0205
    assert ok("kinds", "bloom").out == ok("kinds", "classic").out
    ok("union", "-q", "-o", "all.bly", "bloom.bly", "standard.bly")
    assert run("test", "all.bly", "a", cwd=ok.path).out == "a\n"


def test_a_mistyped_name_is_no_guess(trouble):
    trouble("hsa", says="did you mean 'has'?")
    trouble("build", "-o", "x", "--kind", "clasic", says="did you mean 'classic'?")
    trouble("build", "--capcity", "5", says="unknown option")


@pytest.mark.parametrize("typed, meant", [("bf", "classic"), ("cf", "cuckoo"), ("cms", "countmin"), ("count-min", "countmin"),
                                          ("binaryfuse", "fuse"), ("cbf", "counting")])
def test_kinds_by_the_names_of_elsewhere(ok, typed, meant):
    assert ok("kinds", typed).out == ok("kinds", meant).out


def test_a_folded_filter_has_its_rates_in_one_unit(ok, trouble):
    """1 in 180000 to 1 in 3800; 0.9 % to 17 %."""
    ok("build", "-q", "-n", 5000, "-p", "0.1%", "-o", "f.bly", stdin="".join(f"{i}\n" for i in range(2000)))
    assert re.search(r"now 1 in \d+ to 1 in \d+\n", ok("shrink", "f.bly").out)
    ok("build", "-q", "-n", 5000, "-o", "g.bly", stdin="".join(f"{i}\n" for i in range(5000)))
    trouble("shrink", "--times", 1, "g.bly", says=["odd number", "folds=3"])
    ok("build", "-q", "-n", 5000, "-O", "folds=3", "-o", "g.bly", stdin="".join(f"{i}\n" for i in range(5000)))
    assert re.search(r"3 times.*now [0-9.]+ % to [0-9.]+ %\n", ok("shrink", "--times", 3, "g.bly").out)


def test_one_is_not_several(ok, bly):
    one = "0.0.0.0 ads.example.org\n"
    done = ok("urls", "build", "--domains", "-o", "d.bly", stdin=one)
    assert "1 different entry of 1 line " in done.out and "1 name of a hosts file or zone covers all names below it too" in done.err
    assert "1 line looks like one of a hosts file" in bly("urls", "build", "-o", "d.bly", stdin=one).err
    done = ok("urls", "build", "--domains", "-o", "d.bly", stdin=HOSTS)
    assert "2 different entries of 2 lines " in done.out and "2 names of hosts files or zones cover" in done.err


@pytest.mark.parametrize("command", COMMANDS)
def test_the_version_behind_every_command(ok, command):
    assert ok(command, "--version").out == ok("--version").out


def test_the_help_has_five_headings_and_the_everyday_commands(ok):
    short, long = ok("--help").out, ok("help", "--all").out
    headings = ["Filters:", "Streams and files:", "Lists that guard:",
                "Networks:", "Engines and languages:"]
    for text in short, long:
        found = [text.index("\n" + h) for h in headings]
        assert found == sorted(found)
    everyday = short.split("Every day:\n")[1].split("\n\n")[0].splitlines()
    assert len(everyday) == 10
    names = set(re.findall(r"[a-z]+", short.split("\nFilters:")[1]))
    for command in COMMANDS:
        assert command in names, command
        assert re.search(rf"^  {command} ", long, re.M)
    assert "Exit status." in long and "Exit status." not in short
    assert len(short.splitlines()) < 40


def test_no_command_is_a_short_usage(bly):
    done = bly()
    assert done.status == 2 and done.raw == b""
    assert "usage: bloomery COMMAND" in done.err
    assert len(done.err.splitlines()) == 1


def test_filters_of_default_sizes_that_do_not_merge(ok, trouble):
    for n in 100, 5000:
        ok("build", "-q", "-k", "blocked", "-o", f"{n}.bly",
           stdin="".join(f"{i}\n" for i in range(n)))
    trouble("merge", "-o", "x.bly", "100.bly", "5000.bly", says="the same -n")


def test_distinct_says_which_is_without_which(ok, trouble):
    (ok.path / "mine").write_text("a\nb\nc\n")
    (ok.path / "theirs").write_text("a\n")
    said = ok("distinct", "--minus", "mine", "theirs")
    assert said.out == "2\n" and "are in mine and not in theirs" in said.err
    assert "standard error" in ok("distinct", "mine").err
    ok("build", "-q", "-o", "f.bly", "mine")
    trouble("distinct", "--and", "f.bly", "f.bly", says="bloomery compare")


def test_d_decompresses_as_in_gzip(ok):
    ok("build", "-q", "-o", "f.bly", stdin="a\nb\n")
    ok("compress", "-q", "-o", "f.blyc", "f.bly")
    ok("compress", "-q", "-d", "-o", "back.bly", "f.blyc")
    assert ok("has", "back.bly", "a").out == "a\n"




def test_a_url_on_a_list_of_domains_is_asked_by_its_host(ok, bly):
    said = ok("urls", "build", "--domains", "-o", "d.bly", stdin=HOSTS).err
    assert "2 names" in said and "--exact" in said
    urls = ["http://ads.example.org/x?y", "https://u:p@www.ads.example.org:443",
            "t.example.net/a", "HTTP://T.EXAMPLE.NET./", "ads.example.org:80"]
    assert ok("urls", "has", "d.bly", *urls).lines == urls
    assert bly("urls", "has", "d.bly", "http://example.org/ads.example.org",
               "http://ads.example.org@good.example/").status == 1


def test_exact_names_cover_nothing_below_them(ok, bly):
    for store in "filter", "prefixes":
        said = ok("urls", "build", "--domains", "--exact", "--store", store, "-o", "e",
                  stdin=HOSTS).err
        assert "cover" not in said
        assert ok("urls", "has", "e", "http://ads.example.org/").status == 0
        assert bly("urls", "has", "e", "www.ads.example.org").status == 1
    assert bly("urls", "build", "--exact", "-o", "e", stdin="http://a.b/").status == 2


def test_a_hosts_file_without_domains(ok, bly):
    done = bly("urls", "build", "-o", "h.bly", stdin=HOSTS)
    assert done.status == 2 and "--domains" in done.err


def test_status_of_a_node_by_at_or_operand(trouble):
    for argv in (["node", "status"], ["node", "leave"], ["net", "peers"]):
        trouble(*argv, says="--at ADDRESS:PORT")
        trouble(*argv, "127.0.0.1:9", "--at", "127.0.0.1:9", says="one address")
    trouble("node", "status", "--at", "127.0.0.1:9", says="127.0.0.1:9")
