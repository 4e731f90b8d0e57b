"""bloomery spell: filters of words made and asked, beside hunspell itself."""
import ctypes
import ctypes.util
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest

from conftest import PATIENCE, run

FOLDER = pathlib.Path("/usr/share/hunspell")
INSANE = pathlib.Path("/usr/share/dict/american-english-insane")
HUNSPELL = shutil.which("hunspell")


def dictionary(name):
    path = FOLDER / f"{name}.dic"
    if not HUNSPELL or not path.exists():
        pytest.skip(f"no hunspell, or no {path}")
    return path


def flagged(result):
    """The words that check named."""
    assert result.status in (0, 1), result.err
    return {line.split(": ", 1)[1] for line in result.lines}


def hunspell_flags(words, name, cwd=None, encoding="UTF-8"):
    """What hunspell says of words, each in a line of its own."""
    out = subprocess.run([HUNSPELL, "-d", str(name), "-i", encoding, "-w"], input="\n".join(words).encode(encoding) + b"\n",
                         capture_output=True, cwd=cwd, timeout=PATIENCE,
                         env={**os.environ, "LC_ALL": "C.UTF-8", "DICPATH": str(cwd or FOLDER)})
    assert not out.stderr, out.stderr
    return set(out.stdout.decode(encoding).split("\n")) - {""}


def we_flag(words, filter_, cwd=None):
    return flagged(run("spell", "check", filter_, stdin="\n".join(words) + "\n", cwd=cwd))


def mutated(word, rng):
    i, c = rng.randrange(len(word)), rng.choice("abcdefghijklmnopqrstuvwxyz")
    return rng.choice([word[:i] + c + word[i + 1:], word[:i] + word[i + 1:], word[:i] + c + word[i:],
                       word[:i] + word[i + 1:i + 2] + word[i:i + 1] + word[i + 2:]])


def roots(path):
    for line in path.read_text("utf-8").splitlines()[1:]:
        word = line.split("/")[0].split("\t")[0]
        if word.replace("'", "").isalpha() and word[0] != "'" and word[-1] != "'":
            yield word


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Filters of Debian's dictionaries, at a rate that no test meets by chance."""
    folder, known = tmp_path_factory.mktemp("spell"), {}

    def get(name):
        path = dictionary(name)
        if name not in known:
            known[name] = folder / f"{name}.bly"
            done = run("spell", "build", "-p", "1e-9", "-o", known[name], path)
            assert done.status == 0, done.err
        return known[name]
    return get


# ------------------------------------------------------------------- words

def test_words_of_a_list(ok, bly):
    (ok.path / "words.txt").write_text("hello\nworld\r\n\nParis\niPhone\nwell-known\nnaïve\ndon't\n")
    said = ok("spell", "build", "-o", "w.bly", "words.txt").out
    assert said.startswith("w.bly: 7 words, 8 forms; blocked filter"), said
    text = ("hello Hello HELLO hELLO\nparis Paris PARIS\n"
            "iPhone IPHONE Iphone\nwell-known hello-world hello-wrld\n"
            "naïve NAÏVE naive 'don't' don’t\n")
    got = bly("spell", "check", "w.bly", "-", stdin=text)
    assert got.status == 0
    assert got.lines == ["standard input:1:19: hELLO", "standard input:2:1: paris", "standard input:3:15: Iphone",
                         "standard input:4:24: hello-wrld", "standard input:5:13: naive"]


def test_column_is_in_characters(ok, bly):
    (ok.path / "w.txt").write_text("ok\n")
    ok("spell", "build", "-q", "-o", "w.bly", "w.txt")
    got = bly("spell", "check", "w.bly", stdin="ok\n“ok” – ok wrng ok\n")
    assert got.lines == ["standard input:2:11: wrng"]


def test_what_is_no_word(ok, bly):
    (ok.path / "w.txt").write_text("see\nor\nand\n")
    ok("spell", "build", "-q", "-o", "w.bly", "w.txt")
    text = ("see http://exmpl.org/pth?q=xx&y=zz#frg or https://exmpl.org\n"
            "see some.bdy@exmpl.org or /usr/shre/dct and/or C:\\dos\n"
            "see x86 or 10th and foo_bar 3D 1980's\n")
    assert bly("spell", "check", "w.bly", stdin=text).lines == []
    got = bly("spell", "check", "w.bly", stdin="x86-machne covid-19 -- see--or 'see'\n")
    assert [line.split(": ")[1] for line in got.lines] == ["machne", "covid"]


def test_words_lie_anywhere(ok, bly):
    """Text is looked at in windows of 64 bytes: words, and what may stand inside of them, at every place of one."""
    ok("spell", "build", "-o", "f.bly", "--fpr", "1e-9", stdin="nothing\n")
    rng = random.Random(7)
    pieces = ["a", "of", "window", "x" * 61, "é", "'", "-", " ", " ", " ", ".", "\n", "(", "@ "]
    for length in (1, 20, 63, 64, 65, 3000):
        text = "".join(rng.choices(pieces, k=length))
        words = re.findall(r"[A-Za-zé]+(?:['-][A-Za-zé]+)*", text)
        for before in range(0, 66, 13):
            done = bly("spell", "check", "f.bly", stdin=" " * before + text)
            assert [line.split(": ", 1)[1] for line in done.lines] == words


def test_status_count_json_quiet(ok, bly):
    (ok.path / "w.txt").write_text("right\n")
    ok("spell", "build", "-q", "-o", "w.bly", "w.txt")
    (bly.path / "good").write_text("right Right RIGHT\n")
    (bly.path / "bad").write_text("right wrng\nwrng\n")
    assert bly("spell", "check", "w.bly", "good").status == 1
    assert bly("spell", "check", "w.bly", "good", "bad").lines == ["bad:1:7: wrng", "bad:2:1: wrng"]
    assert bly("spell", "check", "w.bly", "-c", "good", "bad").out == "2\n"
    assert bly("spell", "check", "w.bly", "-c", "--json", "good", "bad").json == {"words": 6, "flagged": 2}
    got = bly("spell", "check", "w.bly", "--json", "bad")
    assert [json.loads(line) for line in got.lines] == [
        {"file": "bad", "line": 1, "column": 7, "word": "wrng"}, {"file": "bad", "line": 2, "column": 1, "word": "wrng"}]
    got = bly("spell", "check", "w.bly", "-q", "bad")
    assert (got.status, got.out, got.err) == (0, "", "")
    assert bly("spell", "check", "w.bly", "-q", "good").status == 1
    # A file that is not there is told, and the others are checked.
    got = bly("spell", "check", "w.bly", "nowhere", "bad")
    assert got.status == 2 and len(got.lines) == 2 and "nowhere" in got.err


def test_any_number_of_threads_and_packing(ok, bly):
    (ok.path / "w.txt").write_text("right\nwords\n")
    ok("spell", "build", "-q", "-o", "w.bly", "w.txt")
    text = "".join(f"right Words {'wrng ' * (i % 7 == 0)}words\n" for i in range(100000))
    (bly.path / "t.txt").write_text(text)
    (bly.path / "t.txt.gz").write_bytes(gzip.compress(text.encode(), 1))
    one = bly("spell", "check", "-t", "1", "w.bly", "t.txt")
    assert len(one.lines) == 14286 and one.lines[1] == "t.txt:8:13: wrng"
    for threads in "2", "5":
        assert bly("spell", "check", "-t", threads, "w.bly", "t.txt").raw == one.raw
    assert bly("spell", "check", "w.bly", "t.txt.gz").out == one.out.replace("t.txt:", "t.txt.gz:")


def test_suggest(ok, bly):
    (ok.path / "w.txt").write_text("receive\nworld\nword\nLondon\nthe\n")
    ok("spell", "build", "-q", "-o", "w.bly", "w.txt")
    got = bly("spell", "check", "w.bly", "--suggest", "--list", "w.txt", stdin="recieve wrld Wordl Lodnon teh qqqqq\n")
    assert [line.split(": ", 1)[1] for line in got.lines] == [
        "recieve: receive", "wrld: world", "Wordl: World, Word", "Lodnon: London", "teh: the", "qqqqq"]
    got = bly("spell", "check", "w.bly", "--json", "--suggest", "--list", "w.txt", stdin="teh qqqqq\n")
    assert [json.loads(line)["suggestions"] for line in got.lines] == [["the"], []]


def test_suggestions_are_words_of_the_list(ok, bly):
    """A filter that says yes to everything names nothing that is not in the list."""
    (ok.path / "w.txt").write_text("word\nother\n")
    ok("spell", "build", "-q", "-k", "classic", "-b", "8", "-o", "w.bly", "w.txt")
    (ok.path / "full.txt").write_text("".join(f"x{i}\n" for i in range(1000)))
    ok("spell", "build", "-q", "-o", "fine.bly", "w.txt")
    got = bly("spell", "check", "fine.bly", "--suggest", "--list", "w.txt", stdin="wrd\n")
    assert got.lines == ["standard input:1:1: wrd: word"]


# ------------------------------------------------------------------ markup

MARKDOWN = """# Titel of it

Some prose with `cdoe inside` and [a lnk](http://x.y/zzz) here.

    indented cdoe

```sh
fencd cdoe
```

~~~
```
fencd
~~~
Wrng <b class="xx">bld</b> &nbsp; word ``a ` b cdoe`` again.

[ref]: http://exmple.org/pge "Titl"
"""

LATEX = r"""\documentclass[a4ppr]{artcl}
\begin{document} % a commnt
Some \emph{prse} with $x + yyz$ and \cite{knth84} here \verb|cdoe x| word.
\begin{verbatim}
cdoe
\end{verbatim}
\begin{equation} E = mcc \end{equation}
\[ displayd \] 5\% of \textbf{wrng} words \href{http://a.b}{tgt}.
\end{document}
"""


def test_markup_is_passed_over(ok, bly):
    (ok.path / "w.txt").write_text("of\nit\nsome\nprose\nwith\nand\na\nhere\nword\nwords\nagain\n")
    ok("spell", "build", "-q", "-o", "w.bly", "w.txt")
    (bly.path / "t.md").write_text(MARKDOWN)
    (bly.path / "t.tex").write_text(LATEX)
    assert bly("spell", "check", "w.bly", "t.md", "--markdown").lines == [
        "t.md:1:3: Titel", "t.md:3:38: lnk", "t.md:15:1: Wrng", "t.md:15:20: bld"]
    assert bly("spell", "check", "w.bly", "t.tex", "--latex").lines == [
        "t.tex:3:12: prse", "t.tex:8:31: wrng", "t.tex:8:61: tgt"]
    # Without the option all of it is text.
    assert len(bly("spell", "check", "w.bly", "t.md").lines) > 10
    # Columns count what is passed over, in characters.
    got = bly("spell", "check", "w.bly", "--markdown", stdin="word `äöü€😀` wrng\n")
    assert got.lines[0].endswith(":1:14: wrng"), got.lines


# ------------------------------------------------- as hunspell, on real words

@pytest.mark.parametrize("name", ["en_US", "de_DE"])
def test_same_verdicts_as_hunspell(made, name):
    rng = random.Random(20)
    words = rng.sample(sorted(roots(dictionary(name))), 1200)
    asked = set(words)
    asked |= {w.upper() for w in words[:400]} | {w.capitalize() for w in words[:400]} | {w.lower() for w in words[400:800]}
    ends = {"en_US": ["s", "ed", "ing", "'s", "ly", "er", "able", "ness"],
            "de_DE": ["e", "en", "er", "es", "s", "st", "te", "end", "innen"]}[name]
    asked |= {w + rng.choice(ends) for w in words} | {"un" + w for w in words[:300]}
    asked |= {mutated(w, rng) for w in words}
    asked |= {"".join(rng.choice("etaoinshrdlu") for _ in range(rng.randint(2, 8))) for _ in range(800)}
    if name == "de_DE":
        nouns = [w for w in words if w[0].isupper()]
        asked |= {rng.choice(nouns) + rng.choice(["", "s", "n", "-"]) + rng.choice(words).lower() for _ in range(1500)}
        asked |= {rng.choice(nouns) + "s" + rng.choice(nouns).lower() + rng.choice(nouns).lower() for _ in range(300)}
        asked |= {w.upper().replace("ß", "SS") for w in words if "ß" in w}
    asked = sorted(w for w in asked if len(w) > 1 and w[0].isalpha() and w[-1].isalpha() and "''" not in w
                   and "-'" not in w and "'-" not in w and "--" not in w)
    theirs, ours = hunspell_flags(asked, name) & set(asked), we_flag(asked, made(name)) & set(asked)
    assert 0.2 * len(asked) < len(theirs) < 0.9 * len(asked)
    assert ours == theirs


def test_text_as_hunspell_sees_it(made):
    """What it accepts in prose, with its own way to find words, is not flagged."""
    text = (pathlib.Path(__file__).parents[1] / "docs" / "maths.md").read_text()
    path = made("en_US")
    theirs = subprocess.run([HUNSPELL, "-d", "en_US", "-i", "UTF-8", "-l"], input=text.encode(), capture_output=True,
                            timeout=PATIENCE, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout.decode().split()
    ours = flagged(run("spell", "check", path, stdin=text))
    # Of a hyphenated word hunspell names the part that is wrong.
    unexplained = {w for w in ours if w not in theirs and not any(p in theirs for p in w.split("-"))}
    assert not unexplained


def real_texts(name):
    """What Debian's packages say in a language: manuals, messages, licences."""
    share = pathlib.Path("/usr/share")
    texts = []
    if name == "de_DE":
        for page in sorted((share / "man/de").glob("man*/*.gz")):
            texts.append(gzip.decompress(page.read_bytes()).decode("utf-8", "replace"))
        for messages in sorted((share / "locale/de/LC_MESSAGES").glob("*.mo")):
            texts.append(messages.read_bytes().decode("utf-8", "replace"))  # English, German, and tables
    else:
        for page in sorted((share / "man/man1").glob("*.gz"))[:300] + sorted(share.glob("doc/*/changelog.gz"))[:50]:
            texts.append(gzip.decompress(page.read_bytes()).decode("utf-8", "replace"))
        for page in sorted((share / "common-licenses").iterdir()) + sorted(share.glob("doc/*/README*"))[:200]:
            if page.is_file() and page.suffix != ".gz":
                texts.append(page.read_bytes().decode("utf-8", "replace"))
    return "\n".join(texts)


@pytest.mark.parametrize("name", ["en_US", "de_DE"])
def test_words_of_real_texts_as_hunspell(made, name):
    """Each word of megabytes of prose, asked of hunspell's own library, which has no say in what a word is."""
    path = made(name)
    words = sorted(set(re.findall(r"[^\W\d_²³¹]+(?:['’-][^\W\d_²³¹]+)*", real_texts(name))))
    words = [w for w in words if all(c.isalpha() or c in "'’-" for c in w)]
    library = ctypes.util.find_library("hunspell-1.7")
    if len(words) < 2000 or not library:
        pytest.skip("no texts in this language here, or no library of hunspell")
    hunspell = ctypes.CDLL(library)
    hunspell.Hunspell_create.restype = ctypes.c_void_p
    hunspell.Hunspell_create.argtypes = [ctypes.c_char_p] * 2
    hunspell.Hunspell_spell.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    hunspell.Hunspell_destroy.argtypes = [ctypes.c_void_p]
    handle = hunspell.Hunspell_create(str(FOLDER / f"{name}.aff").encode(), str(FOLDER / f"{name}.dic").encode())
    theirs = {w for w in words if not hunspell.Hunspell_spell(handle, w.encode())}
    hunspell.Hunspell_destroy(handle)
    ours = we_flag(words, path)
    assert 0.1 * len(words) < len(theirs) < 0.9 * len(words)
    assert ours <= theirs, sorted(ours - theirs)
    # hunspell looks for the parts of CD-ROM in lower case, and has a small letter of its own for ẞ and İ.
    assert {w for w in theirs - ours if not ("-" in w and w.upper() == w) and not set("ẞİ") & set(w)} == set()


def test_german_compounds(made):
    path = made("de_DE")
    right = "Donaudampfschifffahrtsgesellschaft Haustürschlüssel Straßenbahnhaltestelle STRASSE Haus Häuser".split()
    assert we_flag(right + ["Haustürschlüssl", "haus", "Hausx"], path) == {"Haustürschlüssl", "haus", "Hausx"}


def test_insane_list_is_in_its_filter(ok, bly):
    if not INSANE.exists():
        pytest.skip(f"no {INSANE}")
    ok("spell", "build", "-q", "-o", "w.bly", INSANE)
    got = bly("spell", "check", "w.bly", INSANE)
    assert got.status == 1 and got.out == ""


# -------------------------------------------------- as hunspell, rule by rule

# An .aff, a .dic, and words to ask for. Both are asked for all that can be made of the words' parts, too.
RULES = {
    "long flags": ("SET UTF-8\nFLAG long\nSFX Aa Y 2\nSFX Aa y ies [^aeiou]y\nSFX Aa 0 s [^y]\nPFX Bb Y 1\nPFX Bb 0 re .\n",
                   "2\nfly/AaBb\nwalk/Aa\n", "fly flies flys refly reflies reflys walk walks rewalk rewalks"),
    "numbers as flags": ("SET UTF-8\nFLAG num\nSFX 101 N 1\nSFX 101 0 ed .\nPFX 7 Y 1\nPFX 7 0 un .\n",
                         "1\nlock/101,7\n", "lock locked unlock unlocked"),
    "flags of UTF-8": ("SET UTF-8\nFLAG UTF-8\nSFX é Y 1\nSFX é 0 x/ü .\nSFX ü Y 1\nSFX ü 0 y .\n", "1\nfoo/é\n",
                       "foo foox fooxy fooy"),
    "latin-1": ("SET ISO8859-1\nSFX Ä Y 1\nSFX Ä e ée [^é]e\n", "2\ncafé\nallé/Ä\nmatine/Ä\n",
                "café allé alléée matine matinée matiné"),
    "latin-9": ("SET ISO8859-15\nSFX A Y 1\nSFX A 0 s œ\n", "2\ncœur\nfœ/A\n", "cœur coeur fœ fœs"),
    "need affix": ("SET UTF-8\nNEEDAFFIX X\nSFX A Y 1\nSFX A 0 s .\nSFX B Y 1\nSFX B 0 t/XC .\nSFX C Y 1\nSFX C 0 u .\n",
                   "2\nfoo/XA\nbar/B\n", "foo foos bar bart bartu baru"),
    "continuation": ("SET UTF-8\nSFX A Y 1\nSFX A 0 able/BP .\nSFX B Y 1\nSFX B 0 s .\nPFX P Y 1\nPFX P 0 un .\n", "1\ndrink/A\n",
                     "drink drinkable drinkables undrink undrinkable undrinkables drinks"),
    "prefix enables": ("SET UTF-8\nPFX P Y 1\nPFX P 0 be/S .\nSFX S Y 1\nSFX S 0 t .\n", "1\nsing/P\n",
                       "sing besing besingt singt"),
    "no cross": ("SET UTF-8\nPFX P N 1\nPFX P 0 re .\nSFX S Y 1\nSFX S 0 s .\n", "1\ndo/PS\n", "do redo dos redos"),
    "forbidden": ("SET UTF-8\nFORBIDDENWORD F\nSFX S Y 1\nSFX S 0 s .\nCOMPOUNDFLAG C\n",
                  "4\ndog/SC\ndogs/F\ncat/C\ndogcat/F\nijs\nIjs/F\n", "dog dogs cat catdog dogcat ijs Ijs IJS"),
    "keep case": ("SET UTF-8\nKEEPCASE K\nSFX S Y 1\nSFX S 0 s .\n", "3\npH/K\nabc/KS\nDef/K\n",
                  "pH PH ph abc Abc ABC abcs Abcs Def def DEF"),
    "mixed case": ("SET UTF-8\nSFX S Y 1\nSFX S 0 's .\n", "3\nMcDonald/S\nNASA/S\nIBM\n",
                   "McDonald MCDONALD Mcdonald McDonald's MCDONALD'S NASA NASA's NASA'S Nasa IBM Ibm"),
    "compounds": ("SET UTF-8\nCOMPOUNDFLAG C\nSFX S Y 1\nSFX S 0 s .\n", "3\nfoo/CS\nbarr/C\nbaz\nto/C\n",
                  "foo foobarr barrfoos foosbarr foobaz bazfoo foobarrfoo tofoo footo foofoo"),
    "short compounds": ("SET UTF-8\nCOMPOUNDMIN 1\nCOMPOUNDFLAG C\n", "3\na/C\nbb/C\nccc\n", "a bb abb bba bbbb aa ccca"),
    "places in compounds": ("SET UTF-8\nCOMPOUNDBEGIN B\nCOMPOUNDMIDDLE M\nCOMPOUNDEND E\nONLYINCOMPOUND O\n",
                            "4\nbeg/B\nmid/MO\nend/E\nany/BME\n",
                            "beg mid end begend begmidend begmid midend begmidmidend anyany endbeg anymidany"),
    "joints": ("SET UTF-8\nCOMPOUNDBEGIN B\nCOMPOUNDEND E\nCOMPOUNDPERMITFLAG P\nONLYINCOMPOUND O\nSFX J Y 1\nSFX J 0 s/BPO .\n",
               "2\nwerk/J\nzeug/E\n", "werk werks zeug werkszeug werkzeug zeugs"),
    "number of parts": ("SET UTF-8\nCOMPOUNDFLAG C\nCOMPOUNDWORDMAX 2\n", "2\nfoo/C\nbar/C\n", "foobar foobarfoo foofoo"),
    "triples": ("SET UTF-8\nCOMPOUNDFLAG C\nCHECKCOMPOUNDTRIPLE\n", "2\nglass/C\nsheet/C\n", "glasssheet glassglass sheetglass"),
    "capitals in compounds": ("SET UTF-8\nCOMPOUNDFLAG C\nCHECKCOMPOUNDCASE\n", "2\nfoo/C\nBar/C\n", "fooBar Barfoo foofoo"),
    "circumfix": ("SET UTF-8\nCIRCUMFIX X\nPFX A Y 1\nPFX A 0 leg/X .\nPFX B Y 1\nPFX B 0 legesleg/X .\n"
                  "SFX C Y 3\nSFX C 0 obb .\nSFX C 0 obb/AX .\nSFX C 0 obb/BX .\n", "1\nnagy/C\n",
                  "nagy nagyobb legnagy legnagyobb legeslegnagyobb legeslegnagy"),
    "ignored": ("SET UTF-8\nIGNORE aeiou\n", "2\nexample\nword\n", "example xmpl exmpl word wrd wird wordx"),
    "breaks": ("SET UTF-8\nWORDCHARS -\nBREAK 2\nBREAK –\nBREAK -\n", "2\nfoo\nbar\n", "foo-bar foo-baz foo-bar-foo"),
    "no breaks": ("SET UTF-8\nBREAK 0\nWORDCHARS -\n", "2\nfoo\nbar\nfoo-foo\n", "foo-bar foo-foo"),
    "written otherwise": ("SET UTF-8\nICONV 2\nICONV ß ss\nICONV ﬁ fi\n", "2\nstrasse\nfish\n", "strasse straße ﬁsh fish"),
    "aliases": ("SET UTF-8\nAF 2\nAF AB\nAF B\nSFX A Y 1\nSFX A 0 s .\nSFX B Y 1\nSFX B 0 ed .\n", "2\nwalk/1\ntalk/2\n",
                "walk walks walked talk talks talked"),
    "full strip": ("SET UTF-8\nFULLSTRIP\nSFX A Y 1\nSFX A go went go\n", "1\ngo/A\n", "go went"),
    "no full strip": ("SET UTF-8\nSFX A Y 1\nSFX A go went go\n", "1\ngo/A\n", "go went"),
    "conditions": ("SET UTF-8\nSFX A Y 3\nSFX A 0 x [abc]d\nSFX A 0 y [^abc]d\nSFX A 0 z ..e\n", "5\nad/A\ned/A\nd/A\nfee/A\nle/A\n",
                   "adx ady edx edy dx dy feez lez"),
    "slashes and morphology": ("SET UTF-8\nSFX A Y 1\nSFX A 0 s .\n", "3\nfoo/A\tst:foo po:noun\nbar po:verb\n\\/x\n",
                               "foo foos bar bars"),
    "rules": ("SET UTF-8\nCOMPOUNDMIN 1\nCOMPOUNDRULE 3\nCOMPOUNDRULE A?B*C\nCOMPOUNDRULE DE\nCOMPOUNDRULE FF*\nONLYINCOMPOUND O\n"
              "SFX S Y 1\nSFX S 0 s .\nPFX P Y 1\nPFX P 0 un .\n",
              "7\nfoo/A\nba/BO\nca/CSP\nde/DO\nee/E\nff/F\n", "foo ba ca cas unca fooca foocas foobaca bacas babaca baba foofooca foosca "
              "fooba foounca deee eede de dede ffff ffffff ff Fooca FOOCA fOoca foobababacas fooxca cafoo"),
    "rules of long flags": ("SET UTF-8\nFLAG long\nCOMPOUNDRULE 2\nCOMPOUNDRULE (N4)(Nh)(N1)?(n2)\nCOMPOUNDRULE (N4)(Nh)\n",
                            "5\nvijf/N4\nhonderd/Nh\neenen/N1\ntwintig/n2\nzes/N4n2\n",
                            "vijfhonderd vijfhonderdeenentwintig vijfhonderdtwintig zeshonderdzes vijftwintig honderdvijf vijfhonderdeenen"),
    "rules of numbers": ("SET UTF-8\nFLAG num\nCOMPOUNDRULE 1\nCOMPOUNDRULE (101)*(102)\n", "3\nabc/101\ndef/102\nghi/103\n",
                         "abcdef abcabcdef defabc abcabc abcghi"),
    "rules and compounds": ("SET UTF-8\nCOMPOUNDFLAG Z\nCOMPOUNDRULE 1\nCOMPOUNDRULE AB\nFORBIDDENWORD F\n",
                            "6\naaa/A\nbbb/B\nccc/Z\nddd/ZA\ndddbbb/F\n", "aaabbb cccccc cccddd dddbbb aaaccc cccbbb dddccc bbbaaa"),
    "two of three letters": ("SET UTF-8\nCOMPOUNDFLAG C\nCHECKCOMPOUNDTRIPLE\nSIMPLIFIEDTRIPLE\n", "3\nschiff/C\nfahrt/C\nall/C\n",
                             "schiffahrt schifffahrt fahrtschiff allall schiffahrtall allschiffahrt schiffall fahrtahrt"),
    "doubled parts": ("SET UTF-8\nCOMPOUNDFLAG C\nCHECKCOMPOUNDDUP\nSFX S Y 1\nSFX S 0 s .\n",
                      "5\nfoo/CS\nbarr/C\nfoos/C\noofoo/C\nbaz/C\n",
                      "foofoo foobarr foofoobarr barrfoofoo foosfoos bazbaz bazbazbaz foobazbaz bazfoobaz foofoos"),
    "dotless i": ("SET UTF-8\nLANG tr_TR\n", "4\nıslak\niyi\nİzmir\nIrak\n", "ıslak ISLAK Islak iyi İyi İYİ IYI Iyi IZMIR Irak IRAK ırak"),
    "one byte of a letter as a flag": ("SET UTF-8\nSFX í Y 1\nSFX í 0 x .\n", "2\nfoo/í\nbar\n", "foo foox bar barx"),
    "numbers that end in letters": ("SET UTF-8\nFLAG num\nSFX 1 Y 1\nSFX 1 0 x/2X .\nSFX 2 Y 1\nSFX 2 0 y .\n", "2\nfoo/1\nbar\n",
                                    "foo foox fooxy bar barx"),
    "forbidden in capitals": ("SET UTF-8\nFORBIDDENWORD F\n", "3\nAIGU/F\naigu\nother\n", "aigu Aigu AIGU other OTHER"),
    "sharp s": ("SET UTF-8\nCHECKSHARPS\nKEEPCASE K\n", "3\nmüßig\nStraße/K\ngroß/K\n",
                "müßig MÜSSIG MÜßIG Straße STRASSE STRAßE Große Groß GROSS groß GROß"),
}


@pytest.mark.parametrize("name", RULES)
def test_rule_as_hunspell(ok, bly, name):
    if not HUNSPELL:
        pytest.skip("no hunspell")
    aff, dic, words = RULES[name]
    encoding = next((e for s, e in (("ISO8859-15", "iso8859-15"), ("ISO8859-1", "iso8859-1")) if s in aff), "utf-8")
    (ok.path / "x.aff").write_text(aff, encoding)
    (ok.path / "x.dic").write_text(dic, encoding)
    ok("spell", "build", "-p", "1e-9", "-o", "x.bly", "x.dic")
    asked = words.split()
    theirs = hunspell_flags(asked, "x", cwd=ok.path)
    assert we_flag(asked, "x.bly", cwd=ok.path) == theirs
    assert theirs or len(asked) < 5
    # The rules elsewhere.
    (ok.path / "x.aff").rename(ok.path / "rules")
    ok("spell", "build", "-q", "-p", "1e-9", "-o", "y.bly", "--affix", "rules", "x.dic")
    assert we_flag(asked, "y.bly", cwd=ok.path) == theirs


# --------------------------------------------------------------- languages

def test_language_of_the_system(ok, bly):
    dictionary("en_US")
    env = {**os.environ, "XDG_CACHE_HOME": str(ok.path / "cache")}
    first = bly("spell", "check", "--lang", "en_US", "--suggest", stdin="the wrld\n", env=env)
    assert first.lines[0].startswith("standard input:1:5: wrld: ") and "world" in first.lines[0]
    kept = ok.path / "cache" / "bloomery" / "spell-en_US.bly"
    assert kept.exists() and "kept" in first.err
    before = kept.stat()
    again = bly("spell", "check", "--lang", "en_US", stdin="the wrld\n", env=env)
    assert again.lines == ["standard input:1:5: wrld"] and again.err == "" and kept.stat().st_mtime_ns == before.st_mtime_ns
    # One that is damaged, or of other files, is made again.
    kept.write_bytes(kept.read_bytes()[:1000])
    assert bly("spell", "check", "--lang", "en_US", stdin="the wrld\n", env=env).lines == again.lines
    assert kept.stat().st_size == before.st_size


def test_language_in_a_folder_of_ones_own(ok, bly, trouble):
    (ok.path / "d").mkdir()
    (ok.path / "d" / "xx_YY.aff").write_text("SET UTF-8\n")
    (ok.path / "d" / "xx_YY.dic").write_text("1\nfoo\n")
    env = {**os.environ, "DICPATH": str(ok.path / "d"), "XDG_CACHE_HOME": "/proc/nowhere"}
    got = bly("spell", "check", "--lang", "xx_YY", stdin="foo bar\n", env=env)
    assert got.lines == ["standard input:1:5: bar"] and "could not be kept" in got.err
    (ok.path / "more.txt").write_text("bar\n")
    ok("spell", "build", "--lang", "xx_YY", "-o", "both.bly", "more.txt", env=env)
    assert bly("spell", "check", "both.bly", stdin="foo bar\n").lines == []
    trouble("spell", "check", "--lang", "zz_ZZ", says=("zz_ZZ.dic", "/usr/share/hunspell"))
    trouble("spell", "check", "--lang", "../x", says=("en_US",))


# ------------------------------------------------------------------ trouble

def test_a_damaged_filter_flags_nothing(ok, trouble):
    (ok.path / "w.txt").write_text("right\nwords\n")
    ok("spell", "build", "-q", "-o", "w.bly", "w.txt")
    data = (ok.path / "w.bly").read_bytes()
    (ok.path / "w.bly").write_bytes(data[:4096] + bytes(len(data) - 4096))
    trouble("spell", "check", "w.bly", stdin="right\n", says=("damaged",))


def test_rules_without_end(ok, trouble):
    """A thousand suffixes behind each of a thousand, and prefixes before them."""
    lines = ["SET UTF-8", "SFX A Y 1200"] + [f"SFX A 0 a{i}/BP ." for i in range(1200)]
    lines += ["SFX B Y 1200"] + [f"SFX B 0 b{i} ." for i in range(1200)] + ["PFX P Y 100"] + [f"PFX P 0 p{i} ." for i in range(100)]
    (ok.path / "x.aff").write_text("\n".join(lines))
    (ok.path / "x.dic").write_text("2\nfine\nword/A\n")
    trouble("spell", "build", "-o", "x.bly", "x.dic", says=("x.dic: line 3", "a million forms", "does not end"))
    assert not (ok.path / "x.bly").exists()


@pytest.mark.parametrize("aff, says", [
    ("SET KLINGON\n", ("line 1", "encoding")),
    ("SET UTF-8\nSFX A Y 2\nSFX A 0\n", ("line 3", "rule")),
    ("SET UTF-8\nSFX A Y x\n", ("line 2", "how many")),
    ("SET UTF-8\nSFX A Y 1\nSFX A 0 s [ab\n", ("line 3", "never closed")),
    ("FLAG hex\n", ("line 1", "FLAG")),
    ("FLAG num\nSFX x Y 1\n", ("line 2", "flag")),
    ("SET UTF-8\nSFX A Y 1\nSFX A 0 \xff .\n", ("line 3", "encoding")),
])
def test_bad_rules_are_named(ok, trouble, aff, says):
    (ok.path / "x.aff").write_text(aff, "latin-1")
    (ok.path / "x.dic").write_text("1\nfoo/A\n")
    trouble("spell", "build", "-o", "x.bly", "x.dic", says=("x.aff", *says))


def test_bad_lines_are_named_and_the_rest_used(ok, bly):
    (ok.path / "w.txt").write_bytes(b"good\nb\xffd\nb\x01d\n" + b"x" * 2000 + b"\nfine\n")
    got = bly("spell", "build", "-o", "w.bly", "w.txt")
    assert got.status == 2 and "w.txt: line 2" in got.err and "line 3" in got.err and "3 lines are not words" in got.err
    assert bly("spell", "check", "w.bly", stdin="good fine\n").status == 1
    got = bly("spell", "build", "-o", "v.bly", "--skip-bad", "w.txt")
    assert got.status == 0 and "3 lines" in got.err
    # Text that is not UTF-8 is not a word, and never a false alarm.
    got = bly("spell", "check", "v.bly", stdin=b"good fin\xe9 caf\xe9\ngod\n")
    assert got.lines == ["standard input:2:1: god"] and got.status == 2 and "line 1" in got.err
    assert bly("spell", "check", "--skip-bad", "v.bly", stdin=b"good fin\xe9\n").status == 1


def test_what_does_not_go_together(ok, trouble, bly):
    (ok.path / "w.txt").write_text("a\n")
    ok("spell", "build", "-q", "-o", "w.bly", "w.txt")
    trouble("spell", "build", "w.txt", says=("-o FILE",))
    trouble("spell", "build", "-o", "w.txt", "w.txt", says=("w.txt",))
    trouble("spell", "build", "-o", "x.bly", "x.dic", says=("x.aff",))
    trouble("spell", "build", "-o", "x.bly", "nowhere", says=("nowhere",))
    trouble("spell", "build", "-o", "x.bly", stdin="", says=("no words",))
    trouble("spell", "build", "-o", "x.bly", "-k", "generalized", "w.txt", says=("only likely",))
    trouble("spell", "check", says=("no filter is given",))
    trouble("spell", "check", "w.bly", "--suggest", says=("--list",))
    trouble("spell", "check", "w.bly", "--list", "w.txt", says=("--suggest",))
    trouble("spell", "check", "w.bly", "--latex", "--markdown", says=("not both",))
    trouble("spell", "check", "w.txt", "w.txt", says=("w.txt",))
    trouble("spell", "chekc", "w.bly", says=("check",))


def test_other_filters(ok, bly, trouble):
    ok("build", "-q", "-o", "plain.bly", stdin="hello\nworld\n")
    got = bly("spell", "check", "plain.bly", stdin="Hello hello-world wrld\n")
    assert got.lines == ["standard input:1:19: wrld"] and "plain list" in got.err
    ok("build", "-q", "-i", "-o", "folded.bly", stdin="hello\n")
    trouble("spell", "check", "folded.bly", says=("folded",))
    # What a filter says of itself may be anything.
    for value in "words compounds=0,0", "nonsense", "words compounds=4294967295,1", " ":
        ok("build", "-q", "-o", "odd.bly", "--meta", f"spell={value}", stdin="hello\n")
        assert bly("spell", "check", "odd.bly", stdin="hello wrld\n").status in (0, 2)


def test_keyed_filter(ok, bly, trouble):
    (ok.path / "key").write_bytes(bytes(range(16)))
    (ok.path / "w.txt").write_text("hello\n")
    ok("spell", "build", "-q", "-K", "key", "-o", "w.bly", "w.txt")
    assert bly("spell", "check", "-K", "key", "w.bly", stdin="Hello wrld\n").lines == ["standard input:1:7: wrld"]
    trouble("spell", "check", "w.bly", says=("--key-file",))


def test_one_long_line_of_wrong_words(ok, bly):
    """Places are counted on from the last one, not from the beginning of the line."""
    (ok.path / "w.txt").write_text("right\n")
    ok("spell", "build", "-q", "-o", "w.bly", "w.txt")
    got = bly("spell", "check", "-t", "1", "w.bly", stdin="wrñg " * 300000)
    assert len(got.lines) == 300000 and got.lines[-1] == "standard input:1:1499996: wrñg"
    # The same word behind a full stop is another question.
    (ok.path / "w.txt").write_text("etc.\n")
    ok("spell", "build", "-q", "-o", "w.bly", "w.txt")
    got = bly("spell", "check", "w.bly", stdin="etc etc. etc etc.\n")
    assert [line.split(":")[2] for line in got.lines] == ["1", "10"]


def test_hard_text_ends(ok, bly):
    """Long runs of what is looked at twice."""
    (ok.path / "w.txt").write_text("a\nab\n")
    (ok.path / "x.aff").write_text("SET UTF-8\nCOMPOUNDMIN 1\nCOMPOUNDFLAG C\n")
    (ok.path / "x.dic").write_text("2\na/C\nb/C\n")
    ok("spell", "build", "-q", "-o", "w.bly", "x.dic")
    for unit in "a-", "a'", "`", "<a", "a@", "a:", "](", "$", "\\a[", "ab" * 40 + "c ", "ä", "/", "[x]: ", "``` ", "&a":
        for option in (), ("--markdown",), ("--latex",):
            assert bly("spell", "check", "-q", "w.bly", *option, stdin=unit * (200000 // len(unit))).status in (0, 1)
