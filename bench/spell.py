#!/usr/bin/env python3
"""bloomery spell check beside hunspell -l, on the same text in the same run.

    bench/spell.py [--program BLOOMERY] [--lang en_US] [--rounds 3] [TEXT]...

Without TEXT, licences, documents and manuals of the system. The programs take turns,
and of each the least processor time counts, all threads together: of
everything, from the start to the end; and less the time for an empty text,
which is that of loading.
"""
import argparse
import gzip
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile


ENOUGH = 4_000_000  # bytes of text; hunspell takes seconds for them


def cpu(argv, text):
    """Lines that it prints, and the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(text, "rb") as f:
        done = subprocess.run([str(a) for a in argv], stdin=f, capture_output=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode < 2, done.stderr
    return (done.stdout.count(b"\n"), after.ru_utime + after.ru_stime -
            before.ru_utime - before.ru_stime)


def texts(lang):
    """Prose as people write it; where there is none in the language, manuals with their commands."""
    share = pathlib.Path("/usr/share")
    if lang[:2] == "en":
        for page in [*sorted((share / "common-licenses").iterdir()), *sorted(share.glob("doc/*/README")),
                     *sorted(share.glob("doc/*/*.txt")), *sorted(share.glob("vim/*/doc/usr_*.txt")),
                     *sorted(share.glob("doc/*/copyright"))]:
            if page.is_file():
                yield page.read_bytes().decode("utf-8", "ignore")
    for page in sorted((share / "man" / lang[:2]).glob("man*/*.gz")):
        yield gzip.decompress(page.read_bytes()).decode("utf-8", "ignore")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bloomery")
    parser.add_argument("--lang", default="en_US")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("text", nargs="*", metavar="TEXT")
    args = parser.parse_args()
    program = shutil.which(args.program)
    assert program and shutil.which("hunspell"), "bloomery and hunspell are needed"
    with tempfile.TemporaryDirectory() as folder:
        text, empty, words = (pathlib.Path(folder) / n for n in ("text", "empty", "words.bly"))
        parts = [pathlib.Path(t).read_text() for t in args.text] or texts(args.lang)
        with open(text, "w") as f:
            for part in parts:
                f.write(part + "\n")
                if not args.text and f.tell() > ENOUGH:
                    break
        empty.write_text("")
        subprocess.run([program, "spell", "build", "-q", "--lang", args.lang, "-o", words], check=True)
        runs = {"hunspell -l": ["hunspell", "-d", args.lang, "-i", "UTF-8", "-l"],
                "spell check": [program, "spell", "check", "-t", "1", words]}
        found, least = {}, {}
        for _ in range(args.rounds):
            for name, argv in runs.items():
                for of in text, empty:
                    lines, took = cpu(argv, of)
                    least[name, of] = min(took, least.get((name, of), took))
                    found.setdefault(name, lines)
        nwords = len(text.read_text().split())
        print(f"{args.lang}: {text.stat().st_size / 1e6:.1f} MB, {nwords} words")
        print(f"{'':14}{'flagged':>9}{'all ms':>10}{'text ms':>10}{'words per s':>13}")
        for name in runs:
            whole, part = least[name, text], least[name, text] - least[name, empty]
            print(f"{name:14}{found[name]:9}{whole * 1e3:10.1f}{part * 1e3:10.1f}{nwords / part:13.3g}")
        a, b = runs
        print(f"times as fast {least[a, text] / least[b, text]:18.0f}"
              f"{(least[a, text] - least[a, empty]) / (least[b, text] - least[b, empty]):10.0f}")


main()
