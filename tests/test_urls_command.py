"""bloomery urls: lists of URLs and domains, made, asked and compared."""
import hashlib
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess

import pytest

from conftest import PATIENCE, run

UBLOCK = next(iter(sorted(pathlib.Path("/usr/share").glob(
    "*/extensions/*/*/assets/thirdparties"))), None)
SUFFIXES = pathlib.Path("/usr/share/publicsuffix/public_suffix_list.dat")


def real(name):
    """A list of Debian's uBlock package."""
    found = sorted(UBLOCK.glob(f"*/{name}")) if UBLOCK else []
    if not found:
        pytest.skip("no list of webext-ublock-origin-firefox")
    return found[0]


# ------------------------------------------------------------ canonical form

VECTORS = r"""
http://host/%25%32%35 http://host/%25
http://host/%25%32%35%25%32%35 http://host/%25%25
http://host/%2525252525252525 http://host/%25
http://host/asdf%25%32%35asd http://host/asdf%25asd
http://host/%%%25%32%35asd%% http://host/%25%25%25asd%25%25
http://%31%36%38%2e%31%38%38%2e%39%39%2e%32%36/%2E%73%65%63%75%72%65/%77%77%77%2E%65%62%61%79%2E%63%6F%6D/ http://168.188.99.26/.secure/www.ebay.com/
http://host%23.com/%257Ea%2521b%2540c%2523d%2524e%25f%255E00%252611%252A22%252833%252944_55%252B http://host%23.com/~a!b@c%23d$e%25f^00&11*22(33)44_55+
http://3279880203/blah http://195.127.0.11/blah
http://www.google.com/blah/.. http://www.google.com/
www.google.com/ http://www.google.com/
http://www.evil.com/blah#frag http://www.evil.com/blah
http://www.GOOgle.com/ http://www.google.com/
http://www.google.com.../ http://www.google.com/
http://www.google.com/q? http://www.google.com/q?
http://www.google.com/q?r?s http://www.google.com/q?r?s
http://evil.com/foo#bar#baz http://evil.com/foo
http://evil.com/foo; http://evil.com/foo;
http://evil.com/foo?bar; http://evil.com/foo?bar;
http://notrailingslash.com http://notrailingslash.com/
http://www.gotaport.com:1234/ http://www.gotaport.com/
%20leadingspace.com/ http://%20leadingspace.com/
https://www.securesite.com/ https://www.securesite.com/
http://host.com/ab%23cd http://host.com/ab%23cd
http://host.com//twoslashes?more//slashes http://host.com/twoslashes?more//slashes
"""
PAIRS = [tuple(line.split()) for line in VECTORS.strip().splitlines()] + [
    ("http://www.google.com/foo\tbar\rbaz\n2", "http://www.google.com/foobarbaz2"),
    (b"http://\x01\x80.com/", "http://%01%80.com/"),
    ("  http://www.google.com/  ", "http://www.google.com/"),
    ("http:// leadingspace.com/", "http://%20leadingspace.com/"),
]


def test_published_canonical_forms(ok):
    texts = [u if isinstance(u, bytes) else u.encode() for u, _ in PAIRS]
    shown = ok("urls", "show", "-0", stdin=b"\0".join(texts) + b"\0").lines
    assert [s for s in shown if s[0] != " "] == [c for _, c in PAIRS]


@pytest.mark.parametrize("url, entries", [
    ("http://a.b.c/1/2.html?param=1",
     "a.b.c/1/2.html?param=1 a.b.c/1/2.html a.b.c/ a.b.c/1/ "
     "b.c/1/2.html?param=1 b.c/1/2.html b.c/ b.c/1/"),
    ("http://a.b.c.d.e.f.g/1.html",
     "a.b.c.d.e.f.g/1.html a.b.c.d.e.f.g/ c.d.e.f.g/1.html c.d.e.f.g/ "
     "d.e.f.g/1.html d.e.f.g/ e.f.g/1.html e.f.g/ f.g/1.html f.g/"),
    ("http://1.2.3.4/1/", "1.2.3.4/1/ 1.2.3.4/"),
])
def test_published_expressions(ok, url, entries):
    shown = [l.split() for l in ok("urls", "show", url).lines[1:]]
    assert [e for _, e in shown] == entries.split()
    for prefix, entry in shown:
        assert hashlib.sha256(entry.encode()).hexdigest()[:8] == prefix


def model(url):
    """The rules once more, as plainly as they can be said: passes instead of
    one walk. None if there is no host."""
    url = re.sub(rb"[\t\r\n]", b"", url.strip(b" ").split(b"#")[0])
    m = re.match(rb"([A-Za-z][A-Za-z0-9+.-]*):///*|///*", url)
    scheme, rest = (m.group(1) or b"http", url[m.end():]) if m else (b"http", url)
    place = re.match(rb"[^/?]*", rest).group()
    rest = place[place.rfind(b"@") + 1:] + rest[len(place):]
    while (less := re.sub(rb"%([0-9a-fA-F]{2})", lambda x: bytes.fromhex(
            x.group(1).decode()), rest)) != rest:
        rest = less
    host = re.match(rb"[^/?]*", rest).group()
    path, mark, query = rest[len(host):].partition(b"?")
    host = re.sub(rb"(:[0-9]*|\.)+$", b"", host[host.rfind(b"@") + 1:])
    host = re.sub(rb"\.+", b".", host).strip(b".").lower()
    if not host:
        return None
    if re.fullmatch(rb"[0-9a-fx.]+", host) and host[:1].isdigit():
        try:
            host = socket.inet_ntoa(socket.inet_aton(host.decode())).encode()
        except OSError:
            pass
    parts = []
    for part in path.split(b"/")[1:]:
        if part == b"..":
            parts = parts[:-1]
        elif part not in (b"", b"."):
            parts.append(part)
    slash = path.split(b"/")[-1] in (b"", b".", b"..")
    path = b"/" + b"/".join(parts) + (b"/" if parts and slash else b"")
    whole = host + path + mark + query
    return scheme.lower() + b"://" + b"".join(
        b"%%%02X" % c if c <= 32 or c >= 127 or c in b"#%" else bytes([c])
        for c in whole)


def test_random_urls_agree_with_the_rules(ok):
    random.seed(20)
    bits = [b"http://", b"HTTPS://", b"//", b"/", b"/", b"..", b".", b"./", b"%",
            b"%25", b"%2", b"%41", b"%2f", b"%2e", b"?", b"#", b"@", b":", b":80",
            b"a", b"B", b"evil.com", b"0x7f", b"1", b"255", b"\t", b" ", b"\x7f",
            b"\xff", b"&", b";", b"xn--a"]
    urls = [b"".join(random.choices(bits, k=random.randint(1, 14)))
            for _ in range(6000)]
    urls = [u for u in urls if model(u) is not None]
    shown = ok("urls", "show", "-0", stdin=b"\0".join(urls) + b"\0").raw
    got = [l for l in shown.splitlines() if not l.startswith(b"  ")]
    assert len(got) == len(urls)
    for url, line in zip(urls, got):
        assert line == model(url), url


def test_random_urls_agree_with_webrisk_hash(ok, tmp_path):
    """A package of npm that makes the same forms, where it can be had."""
    if not shutil.which("npm") or subprocess.run(
            ["npm", "install", "--no-audit", "--prefix", tmp_path,
             "webrisk-hash"], capture_output=True,
            timeout=PATIENCE).returncode:
        pytest.skip("npm has no webrisk-hash here")
    urls = [u for u, _ in PAIRS if isinstance(u, str) and "\n" not in u]
    script = ("const w = require('webrisk-hash'); for (const u of "
              "process.argv.slice(1)) console.log(w.getCanonicalizedUrl(u).href)")
    theirs = subprocess.run(["node", "-e", script, *urls], cwd=tmp_path,
                            capture_output=True, text=True, check=True,
                            timeout=PATIENCE).stdout.splitlines()
    ours = [l for l in ok("urls", "show", "--", *urls).lines if l[0] != " "]
    assert ours == theirs


def test_long_and_odd_urls(bly, ok):
    (bly.path / "list").write_text("http://evil.example/\nhttp://[2001:db8::1]/x\n"
                                   "http://b\u00fccher.example/\n")
    ok("urls", "build", "-o", "l.bly", "list")
    odd = [b"http://evil.example/" + b"%25" * 350000, b"http://evil.example/" + b"a/" * 500000,
           b"http://u:p@evil.example:8080/", b"http://good.example%2F@evil.example/",
           b"HTTP://[2001:0DB8::0:1]:443/x?y", "http://B\u00dcCHER.example".encode(),
           b"xn--bcher-kva.example/z", b"http://sub.evil.example./%zz"]
    fine = [b"http://good.example/" + b"/.." * 300000, b"http://evil.example.org/",
            b"http://[2001:db8::1]/y", b"http://good.example/?u=http://evil.example/"]
    got = bly("urls", "has", "l.bly", stdin=b"\n".join(odd + fine) + b"\n")
    assert got.status == 0 and got.raw.splitlines() == odd
    got = bly("urls", "has", "-v", "l.bly", stdin=b"\n".join(odd + fine) + b"\n")
    assert got.raw.splitlines() == fine


# --------------------------------------------------------------- lists of URLs

def test_urlhaus_is_found_whole(bly, ok):
    text = real("urlhaus-filter-online.txt").read_text()
    lines = [l for l in text.splitlines() if l and l[0] != "!"]
    urls = ["http://" + re.sub(r"\^?(\$all)?$", "", l.removeprefix("||"))
            for l in lines]
    made = ok("urls", "build", "-i", "-o", "bad.bly",
              real("urlhaus-filter-online.txt"), "--json").json
    assert made["bad"] == 0 and made["entries"] + made["skipped"] == len(lines)
    assert made["skipped"] <= 5 and made["bits_per_entry"] < 21
    found = ok("urls", "has", "bad.bly", stdin="\n".join(urls)).lines
    assert len(found) == made["entries"]
    upper = ok("urls", "has", "-c", "bad.bly", stdin="\n".join(
        "https" + u.upper().removeprefix("HTTP") for u in found)).lines
    assert upper == [str(len(found))]
    # An ordinary filter: the other commands ask it too.
    assert ok("has", "bad.bly", found[0].removeprefix("http://").rstrip("/") + "/").lines
    assert ok("info", "bad.bly", "--json").json["kind"] == "ribbon"
    # And an ordinary log: whole lines are printed.
    log = f"10.0.0.1 GET {found[7]}\n10.0.0.2 GET http://www.kernel.org/\n"
    assert ok("urls", "has", "bad.bly", "--field", "3", "-d", "blanks",
              stdin=log).lines == [f"10.0.0.1 GET {found[7]}"]
    assert bly("urls", "has", "bad.bly", "http://www.kernel.org/").status == 1
    # Without -i, what the list ignores is said.
    assert "--ignore-case" in ok("urls", "build", "-o", "case.bly",
                                 real("urlhaus-filter-online.txt")).err


def test_both_stores_hold_the_same(bly, ok):
    (bly.path / "list").write_text("".join(
        f"http://host{i}.example/{i}/\n" for i in range(3000)))
    ok("urls", "build", "-o", "l.bly", "list")
    ok("urls", "build", "--store", "prefixes", "-o", "l.pre", "list")
    ask = "".join(f"http://host{i}.example/{i}/page?q\n" for i in range(4000))
    a, b = (ok("urls", "has", f, stdin=ask).lines for f in ("l.bly", "l.pre"))
    assert a == b == ask.splitlines()[:3000]
    # A list of hashes, as it is published.
    hashes = "".join(hashlib.sha256(f"host{i}.example/{i}/".encode()).hexdigest()
                     + "\n" for i in range(3000))
    ok("urls", "build", "--store", "prefixes", "-o", "h.pre", stdin=hashes)
    assert (bly.path / "h.pre").read_bytes() == (bly.path / "l.pre").read_bytes()
    # It confirms, too.
    (bly.path / "hashes").write_text(hashes)
    ok("urls", "build", "-p", "30%", "-o", "wrong.bly", "list")
    suspects = ok("urls", "has", "wrong.bly", stdin=ask).lines
    assert len(suspects) > 3100
    for full in "list", "hashes":
        sure = ok("urls", "has", "wrong.bly", "--full", full, stdin=ask).lines
        assert sure == a
    verdicts = [l["verdict"] for l in map(eval, ok(
        "urls", "has", "wrong.bly", "--json", "--full", "list",
        stdin=ask.splitlines()[0] + "\nhttp://other.example\n").lines)]
    assert verdicts == ["listed", "clear"]
    assert '"suspect"' in ok("urls", "has", "l.bly", "--json",
                             "http://host1.example/1/").out


def test_compare_shows_both_stores(bly, ok):
    (bly.path / "list").write_text("".join(
        f"http://host{i}.example/{i}/\n" for i in range(20000)))
    rows = ok("urls", "compare", "list", "--json", "--sample", "200k").json
    assert [(r["store"], r["kind"]) for r in rows] == [
        ("filter", "ribbon"), ("prefixes", "rice"), ("filter", "classic")]
    ribbon, rice, classic = rows
    assert rice["bits_per_entry"] < 19.3 and rice["rate"] == 20000 / 2 ** 32
    assert abs(classic["bits_per_entry"] - rice["bits_per_entry"]) < 0.1
    assert classic["rate"] > 10 * rice["rate"]
    assert all(r["wrong"] <= 20 + 6 * r["rate"] * r["asked"] for r in rows)
    assert "bits/entry" in ok("urls", "compare", "list", "--sample", "1k").out


def test_prefixes_are_verified(ok, bly, trouble):
    (bly.path / "list").write_text("http://evil.example/\nevil.org/a\n")
    ok("urls", "build", "--store", "prefixes", "-o", "l.pre", "list")
    whole = (bly.path / "l.pre").read_bytes()
    for at in range(len(whole)):
        (bly.path / "l.pre").write_bytes(
            whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:])
        got = bly("urls", "has", "l.pre", "http://evil.example/")
        assert got.status == 2 and not got.raw, at
    (bly.path / "l.pre").write_bytes(whole[:-1])
    trouble("urls", "has", "l.pre", "x.example", says="damaged")
    (bly.path / "l.pre").write_bytes(whole)
    ok("urls", "has", "l.pre", "http://evil.example/")
    trouble("urls", "build", "--store", "prefixes", "-o", "x", "-p", "1%", "list",
            says="--prefix-bytes")
    trouble("urls", "build", "--store", "prefixes", "--prefix-bytes", "9", "-o",
            "x", "list", says="2 to 8")


# ------------------------------------------------------------------- domains

FORMS = {
    "plain": "# names\nBad.Example.\n*.worse.example\n",
    "hosts": "127.0.0.1 localhost\n0.0.0.0 bad.example worse.example # x\n",
    "adblock": "[Adblock Plus 2.0]\n||bad.example^\n||worse.example^$all\n"
               "||other.example^$third-party\n/ads/*\n@@||good.bad.example^\n",
    "zone": "$TTL 60\n$ORIGIN rpz.example.\n@ SOA ns. root. ( 1\n 2 3 4 5 )\n"
            " NS ns.\nbad.example CNAME .\n*.worse.example CNAME .\n"
            "worse.example.rpz.example. 60 IN A 0.0.0.0\n"
            "good.bad.example CNAME rpz-passthru.\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_domains_of_every_form(bly, ok, form):
    (bly.path / "list").write_text(FORMS[form])
    made = ok("urls", "build", "--domains", "-o", "l.bly", "list", "--json").json
    assert made["distinct"] == 2 and made["bad"] == 0
    ask = ["bad.example", "WWW.Bad.example.", "a.b.worse.example", "example",
           "notbad.example", "good.bad.example", "x.good.bad.example",
           "other.example"]
    allowed = 2 if made["exceptions"] else 0
    found = ok("urls", "has", "l.bly", stdin="\n".join(ask)).lines
    assert found == ask[:3] + ask[5:5 + 2 - allowed]
    assert bool(made["allow"]) == (form in ("adblock", "zone"))


def test_easylist(bly, ok):
    text = real("easylist.txt").read_text()
    names = re.findall(r"^\|\|([^/*$^|]+)\^$", text, re.M)
    exceptions = re.findall(r"^@@\|\|([^/*$^|]+)\^$", text, re.M)
    made = ok("urls", "build", "--domains", "-o", "ads.bly", real("easylist.txt"),
              "--json").json
    assert len(names) > 40000 and made["distinct"] >= len(set(names)) - 5
    allowed = {n for n in names for e in exceptions
               if n == e or n.endswith("." + e)}
    want = [p + n for n in names if n not in allowed for p in ("", "www.sub.")
            if not re.fullmatch(r"[0-9.]+", n) or not p]
    assert ok("urls", "has", "ads.bly", stdin="\n".join(want)).lines == want
    for e in exceptions:
        assert bly("urls", "has", "ads.bly", e).status == 1


def test_bad_lines_are_named_and_the_rest_is_used(bly, ok):
    (bly.path / "list").write_text(
        "good.example\nnot a name\nx..y\n" + "-\u2603-/\n" * 20 + "last.example\n")
    got = bly("urls", "build", "--domains", "-o", "l.bly", "list")
    assert got.status == 2
    lines = got.err.splitlines()
    assert lines[0].startswith("bloomery: urls: list: line 2: ")
    assert lines[1].startswith("bloomery: urls: list: line 3: ")
    assert len(lines) == 11 and "22 lines are not entries" in lines[-1]
    assert ok("urls", "has", "l.bly", "a.last.example", "good.example").out
    got = ok("urls", "build", "--domains", "--skip-bad", "-o", "l.bly", "list")
    assert "22 lines are not entries; left out" in got.err
    got = bly("urls", "has", "l.bly", stdin="a b\ngood.example\n")
    assert got.status == 2 and got.lines == ["good.example"]
    assert "line 1: not a name" in got.err
    assert ok("urls", "has", "--skip-bad", "l.bly", stdin="a b\ngood.example\n").lines \
        == ["good.example"]
    (bly.path / "none").write_text("# nothing\n")
    got = bly("urls", "build", "--domains", "-o", "n.bly", "none")
    assert got.status == 2 and not (bly.path / "n.bly").exists()


def test_exceptions_belong_to_their_list(bly, ok, trouble):
    def build(allow):
        (bly.path / "list").write_text(f"||bad.example^\n@@||{allow}.bad.example^\n")
        return ok("urls", "build", "--domains", "-o", "l.bly", "list", "--json").json
    first = build("one")["allow"]
    second = build("two")["allow"]
    files = sorted(p.name for p in bly.path.iterdir())
    assert files == ["l.bly", second, "list"] and first != second
    assert ok("urls", "has", "l.bly", "one.bad.example").out
    assert bly("urls", "has", "l.bly", "two.bad.example").status == 1
    # Never an answer without them.
    (bly.path / second).rename(bly.path / "gone")
    trouble("urls", "has", "l.bly", "bad.example", says=(second, "missing"))
    (bly.path / second).write_text("bad.example\n")
    trouble("urls", "has", "l.bly", "bad.example", says="built with")
    # A file that names another one of the folder harms none.
    ok("build", "-o", "evil.bly", "--meta", "list=domains", "--meta",
       "allow=list", stdin="x.example\n")
    trouble("urls", "has", "evil.bly", "x.example", says="list")
    ok("urls", "build", "--domains", "-o", "evil.bly", "list")
    assert (bly.path / "list").exists()
    ok("build", "-o", "evil.bly", "--meta", "list=domains", "--meta",
       "allow=../x", stdin="x.example\n")
    trouble("urls", "has", "evil.bly", "x.example", says="metadata")
    trouble("urls", "build", "--domains", "-o", "-", "list", says="-o FILE")


def test_public_suffixes(bly, ok, trouble):
    if not SUFFIXES.exists():
        pytest.skip("no list of the package publicsuffix")
    (bly.path / "list").write_text("evil.co.uk\nco.uk\nx.github.io\ngithub.io\n"
                                   "www.ck\na.b.kobe.jp\n")
    got = bly("urls", "build", "--domains", "-o", "l.bly", "list",
              "--public-suffix", SUFFIXES)
    assert got.status == 2 and got.err.count("public suffix") == 2
    names = "a.evil.co.uk\nother.co.uk\ny.x.github.io\nz.github.io\nwww.ck\n" \
            "q.a.b.kobe.jp\nc.b.kobe.jp\n"
    want = ["a.evil.co.uk", "y.x.github.io", "www.ck", "q.a.b.kobe.jp"]
    for more in [], ["--public-suffix", SUFFIXES]:
        assert ok("urls", "has", "l.bly", *more, stdin=names).lines == want
    shown = ok("urls", "show", "--domains", "--public-suffix", SUFFIXES,
               "q.a.b.kobe.jp").lines
    assert len(shown) == 3  # not b.kobe.jp, where anyone may register
    # A list that may have such entries is not asked as if it had none.
    ok("urls", "build", "--domains", "-o", "any.bly", "list")
    trouble("urls", "has", "any.bly", "x.co.uk", "--public-suffix", SUFFIXES,
            says="missed")
    assert ok("urls", "has", "any.bly", "x.co.uk").out


def test_entries_of_one_label_are_found(ok, bly):
    (bly.path / "list").write_text("zip\nevil.example\n")
    ok("urls", "build", "--domains", "-o", "l.bly", "list")
    assert ok("urls", "has", "l.bly", "a.b.zip", "zip", "x.org").lines == \
        ["a.b.zip", "zip"]


# ------------------------------------------------------------ keys and trouble

def test_keyed_lists(ok, trouble, bly):
    (bly.path / "key").write_text("000102030405060708090a0b0c0d0e0f\n")
    (bly.path / "key").chmod(0o600)
    (bly.path / "list").write_text("evil.example\n")
    ok("urls", "build", "--domains", "-o", "l.bly", "-K", "key", "list")
    assert ok("urls", "has", "l.bly", "-K", "key", "a.evil.example").out
    trouble("urls", "has", "l.bly", "a.evil.example", says="--key-file")
    trouble("urls", "build", "--store", "prefixes", "-o", "x", "-K", "key", "list",
            says="no key")


def test_what_cannot_be_meant(trouble, bly, ok):
    (bly.path / "list").write_text("evil.example\n")
    trouble("urls", "build", "list", says="-o FILE")
    trouble("urls", "build", "-o", "l.bly", "--store", "rice", "list",
            says="prefixes")
    trouble("urls", "build", "-o", "list", "list", says="list")
    trouble("urls", "build", "-o", "l.bly", "-k", "generalized", "list",
            says="only likely")
    trouble("urls", "build", "-o", "l.bly", "-k", "bloomier", "list",
            says="values")
    trouble("urls", "build", "-o", "l.bly", "--public-suffix", "list", "list",
            says="--domains")
    trouble("urls", "has", "list", "x", says="not a")
    ok("urls", "build", "-o", "l.bly", "list")
    trouble("urls", "has", "l.bly", "--domains", "x", says="list of URLs")
    trouble("urls", "build", "-o", "/dev/full", "list", says="/dev/full")
    got = bly("urls", "has", "l.bly", "evil.example", stdin=b"")
    assert got.status == 0
    with open("/dev/full", "wb") as full:
        done = subprocess.run([os.environ.get("BLOOMERY", "build/bloomery"),
                               "urls", "has", str(bly.path / "l.bly"),
                               "evil.example"], stdout=full,
                              stderr=subprocess.PIPE, timeout=PATIENCE)
    assert done.returncode == 2 and b"No space" in done.stderr


def test_size_for_many_domains(ok):
    names = "".join(f"{i * 2654435761 % 2**32:x}.d{i % 97}.example\n"
                    for i in range(2200000))
    made = ok("urls", "build", "--domains", "-o", "l.bly", "--json",
              stdin=names).json
    assert made["distinct"] == 2200000
    assert made["bytes"] <= 6e6 and made["rate"] <= 1.01e-6
    assert (ok.path / "l.bly").stat().st_size <= 6e6
