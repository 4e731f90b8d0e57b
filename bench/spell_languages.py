#!/usr/bin/env python3
"""The verdicts of bloomery spell beside those of hunspell's library, dictionary by dictionary.

    bench/spell_languages.py [--program BLOOMERY] [--words FILE] DICTIONARY.dic...

Asked for are words of the dictionary in several cases, with prefixes and suffixes of its .aff, with a letter changed,
joined to compounds of two and three, and random strings; with --words, those of a file too. The filter is built at a rate of
1e-9, so that a difference is one of rules and not of chance.
"""
import argparse
import ctypes
import ctypes.util
import pathlib
import random
import re
import subprocess
import tempfile


def hunspell(dictionary):
    """A function that tells whether hunspell takes a word for right, and the encoding of the dictionary."""
    name = ctypes.util.find_library("hunspell-1.7")
    assert name, "the library of hunspell 1.7 is needed"
    lib = ctypes.CDLL(name)
    lib.Hunspell_create.restype = ctypes.c_void_p
    lib.Hunspell_create.argtypes = [ctypes.c_char_p] * 2
    lib.Hunspell_spell.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    lib.Hunspell_get_dic_encoding.restype = ctypes.c_char_p
    lib.Hunspell_get_dic_encoding.argtypes = [ctypes.c_void_p]
    handle = lib.Hunspell_create(str(dictionary.with_suffix(".aff")).encode(), str(dictionary).encode())
    encoding = lib.Hunspell_get_dic_encoding(handle).decode().removeprefix("microsoft-")
    return lambda word: lib.Hunspell_spell(handle, word.encode(encoding)), encoding


def changed(word, rng, letters):
    i, c = rng.randrange(len(word)), rng.choice(letters)
    return rng.choice([word[:i] + c + word[i + 1:], word[:i] + word[i + 1:], word[:i] + c + word[i:],
                       word[:i] + word[i + 1:i + 2] + word[i:i + 1] + word[i + 2:]])


def is_asked(word, encoding):
    try:
        word.encode(encoding)
    except UnicodeEncodeError:
        return False
    return (1 < len(word) < 90 and all(c.isalpha() or c in "'-" for c in word) and word[0].isalpha() and word[-1].isalpha()
            and not re.search("['-]['-]", word))


def questions(dictionary, encoding):
    rng = random.Random(7)
    rules = dictionary.with_suffix(".aff").read_bytes().decode(encoding, "replace")
    roots = [re.split(r"(?<=.)(?<!\\)/", line.split("\t")[0].split(" ")[0])[0].strip()
             for line in dictionary.read_bytes().decode(encoding, "replace").splitlines()[1:]]
    roots = [w for w in roots if is_asked(w, encoding)]
    some = rng.sample(roots, min(3000, len(roots)))
    short = [w for w in roots if len(w) < 6] or some
    letters = sorted({c for w in some for c in w.lower() if c.isalpha()})
    suffixes = re.findall(r"^SFX\s+\S+\s+0\s+([^\s/]+)", rules, re.M) or ["s"]
    prefixes = re.findall(r"^PFX\s+\S+\s+0\s+([^\s/]+)", rules, re.M) or ["un"]
    asked = set(some) | {w.upper() for w in some[:500]} | {w.capitalize() for w in some[:500]} | {w.lower() for w in some[500:1000]}
    for w in some:
        asked |= {w + rng.choice(suffixes), w[:-1] + rng.choice(suffixes), rng.choice(prefixes) + w,
                  rng.choice(prefixes) + w + rng.choice(suffixes), changed(w, rng, letters)}
    for _ in range(2000):
        asked |= {rng.choice(some) + rng.choice(some), rng.choice(some) + rng.choice(some).lower(), rng.choice(short) + rng.choice(short),
                  rng.choice(short) + rng.choice(short) + rng.choice(short)}
    asked |= {w + w for w in rng.sample(short, min(500, len(short)))} | {w + "-" + rng.choice(some) for w in some[:300]}
    asked |= {"".join(rng.choice(letters) for _ in range(rng.randint(2, 8))) for _ in range(500)}
    return asked


def compare(program, dictionary, more, folder):
    is_right, encoding = hunspell(dictionary)
    asked = sorted(w for w in questions(dictionary, encoding) | more if is_asked(w, encoding))
    path = folder / f"{dictionary.stem}.bly"
    built = subprocess.run([program, "spell", "build", "-p", "1e-9", "-o", path, dictionary], capture_output=True, text=True)
    if not path.exists():
        return f"{dictionary.stem}: {built.stderr.strip().splitlines()[-1]}"
    told = subprocess.run([program, "spell", "check", path], input="\n".join(asked) + "\n", capture_output=True, text=True)
    ours = {line.split(": ", 1)[1] for line in told.stdout.splitlines()} & set(asked)
    theirs = {w for w in asked if not is_right(w)}
    # hunspell looks for the parts of CD-ROM in lower case, and flags it.
    kept = sorted(w for w in theirs - ours if not ("-" in w and w == w.upper()))
    flagged = sorted(ours - theirs)
    return (f"{dictionary.stem}: {len(asked)} words, {len(theirs)} flagged by hunspell; flagged here alone: {len(flagged)} "
            f"{' '.join(flagged[:8])}; by hunspell alone: {len(kept)} {' '.join(kept[:8])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bloomery")
    parser.add_argument("--words", type=pathlib.Path)
    parser.add_argument("dictionary", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    more = set(args.words.read_text().split()) if args.words else set()
    with tempfile.TemporaryDirectory() as folder:
        for dictionary in args.dictionary:
            print(compare(args.program, dictionary, more, pathlib.Path(folder)), flush=True)


if __name__ == "__main__":
    main()
