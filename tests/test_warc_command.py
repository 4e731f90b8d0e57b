"""WARC files for dedup: pages in, copies out, everything else byte for byte."""
import gzip
import os
import random
import shutil
import subprocess
import zlib

import pytest

from conftest import BUILD

pytestmark = pytest.mark.skipif(not (BUILD / "bloomery-html").exists(),
                                reason="bloomery was built without libgumbo")


def zipped(data):
    return gzip.compress(data, 1, mtime=0)


def words(seed, n=80):
    r = random.Random(seed)
    return " ".join(f"w{r.randrange(99999)}" for _ in range(n))


def page(seed, menu="m"):
    return (f"<!DOCTYPE html><html><body><nav>{words(menu, 200)}</nav>"
            f"<p>{words(seed)}</p></body></html>").encode()


def record(kind, number, content, **fields):
    head = {"WARC-Type": kind, "WARC-Record-ID": f"<urn:uuid:{number}>",
            "WARC-Target-URI": f"http://example.org/{number}",
            "Content-Type": "application/http; msgtype=response",
            **{k.replace("_", "-"): v for k, v in fields.items()}}
    head.setdefault("Content-Length", len(content))
    lines = "".join(f"{k}: {v}\r\n" for k, v in head.items())
    return f"WARC/1.0\r\n{lines}\r\n".encode() + content + b"\r\n\r\n"


def answer(body, status="200 OK", kind="text/html", **fields):
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n" + "".join(
        f"{k.replace('_', '-')}: {v}\r\n" for k, v in fields.items())
    return head.encode() + b"\r\n" + body


def response(number, body, **kw):
    return record("response", number, answer(body, **kw))


def chunked(body):
    parts = [body[i:i + 70] for i in range(0, len(body), 70)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"


def crawl():
    """Records, and the numbers of those that are copies of one before."""
    a, b = page(1), page(2)
    return [
        record("warcinfo", "info", b"software: test\r\n", Content_Type="application/warc-fields"),
        record("request", "ra", b"GET /a HTTP/1.1\r\n\r\n"),
        response("a", a),
        record("request", "rb", b"GET /b HTTP/1.1\r\n\r\n"),
        response("b", b),
        response("image", os.urandom(3000), kind="image/png"),
        response("a2", page(1, "other menu")),
        record("metadata", "m", b"fetchTimeMs: 12\r\n"),
        response("gone", a, status="404 Not Found"),
        response("a3", chunked(gzip.compress(a)), Transfer_Encoding="chunked", Content_Encoding="gzip"),
        response("c", words(1).encode(), kind="text/plain; charset=utf-8"),
        record("conversion", "d", words(2).encode(), Content_Type="text/plain"),
        response("e", page(5)),
    ], {6, 9, 10, 11}


@pytest.mark.parametrize("more", [[], ["--index", "bloom"], ["-t", "1"], ["--work", "w"]])
@pytest.mark.parametrize("packed", [True, False])
def test_copies_go_and_the_rest_stays(ok, packed, more):
    records, copies = crawl()
    name = "crawl.warc.gz" if packed else "crawl.warc"
    pack = zipped if packed else bytes
    (ok.path / name).write_bytes(b"".join(map(pack, records)))
    left = [r for i, r in enumerate(records) if i not in copies]
    out = "clean" + name[5:]
    done = ok("dedup", name, "-o", out, "--json", *more)
    assert done.json["documents"] == 7
    # As they stand in the file: the same members.
    assert (ok.path / out).read_bytes() == b"".join(map(pack, left))
    # The name of the output says how it is packed.
    other = "other.warc" if packed else "other.warc.gz"
    ok("dedup", name, "-o", other, "-q", *(x for x in more if x not in ("--work", "w")))
    got = (ok.path / other).read_bytes()
    if packed:
        assert got == b"".join(left)
    else:
        assert gzip.decompress(got) == b"".join(left)
        first = zlib.decompressobj(31)
        assert first.decompress(got) == left[0] and first.unused_data


def test_ids_come_from_records(ok):
    records, _ = crawl()
    (ok.path / "c.warc").write_bytes(b"".join(records))
    ok("dedup", "c.warc", "--removed", "gone", "-q")
    gone = [x.split("\t")[:2] for x in (ok.path / "gone").read_text().splitlines()]
    assert gone == [["<urn:uuid:a2>", "<urn:uuid:a>"], ["<urn:uuid:a3>", "<urn:uuid:a>"],
                    ["<urn:uuid:c>", "<urn:uuid:a>"], ["<urn:uuid:d>", "<urn:uuid:b>"]]
    ok("dedup", "c.warc", "--id", "WARC-Target-URI", "--removed", "gone", "-q")
    assert (ok.path / "gone").read_text().startswith("http://example.org/a2\t")


def test_from_pipes_and_into_folders(ok):
    records, copies = crawl()
    data = b"".join(zipped(r) for r in records)
    want = b"".join(zipped(r) for i, r in enumerate(records) if i not in copies)
    assert ok("dedup", "--warc", "-", "-o", "-", "-q", stdin=data).raw == want
    (ok.path / "x.warc.gz").write_bytes(data)
    (ok.path / "y.warc.gz").write_bytes(data)
    ok("dedup", "x.warc.gz", "y.warc.gz", "-o", "out/", "-q")
    assert (ok.path / "out/x.warc.gz").read_bytes() == want
    left = gzip.decompress((ok.path / "out/y.warc.gz").read_bytes())
    assert b"urn:uuid:image" in left and b"urn:uuid:e" not in left


@pytest.mark.parametrize("pack", ["gzip", "zstd", "xz"])
def test_files_packed_as_a_whole(ok, pack):
    records, copies = crawl()
    (ok.path / "c.warc").write_bytes(b"".join(records))
    subprocess.run([pack, "-q", "c.warc"], cwd=ok.path, check=True)
    name, = (p.name for p in ok.path.iterdir() if p.name != "c.warc")
    ok("dedup", name, "-o", "clean.warc", "-q")
    assert (ok.path / "clean.warc").read_bytes() == \
        b"".join(r for i, r in enumerate(records) if i not in copies)


def test_long_and_large_records(ok, trouble):
    """Of more than a block, more than --max-line, and a bomb."""
    big = page(1) + b"<!--" + os.urandom(700_000).hex().encode() + b"-->"
    bomb = response("bomb", gzip.compress(bytes(30 << 20)), Content_Encoding="gzip")
    records = [response("a", page(1)), response("big", big), response("z", bytes(3 << 20)),
               bomb, response("e", page(5)), response("big2", big)]
    (ok.path / "c.warc.gz").write_bytes(b"".join(map(zipped, records)))
    result = ok("dedup", "c.warc.gz", "-o", "out.warc.gz", "--json", "--max-line", "40M")
    assert result.json["removed"] == 2
    left = gzip.decompress((ok.path / "out.warc.gz").read_bytes())
    assert left == b"".join(records[i] for i in (0, 2, 3, 4))


def test_records_that_cannot_be_used_stay(bly):
    records = [response("a", page(1)), response("bomb", gzip.compress(bytes(2 << 20)), Content_Encoding="gzip"),
               response("br", b"\xff\xfe\x8b" * 40, Content_Encoding="br"), response("a2", page(1))]
    (bly.path / "c.warc").write_bytes(b"".join(records))
    done = bly("dedup", "c.warc", "-o", "out.warc", "--max-line", "1M")
    assert done.status == 2 and "2 malformed records were kept" in done.err
    assert "c.warc:2: unpacked it is longer" in done.err and "c.warc:3: it is compressed" in done.err
    assert (bly.path / "out.warc").read_bytes() == b"".join(records[:3])


@pytest.mark.parametrize("packed", [True, False])
def test_damaged_files(bly, packed):
    records, _ = crawl()
    pack = zipped if packed else bytes
    parts = list(map(pack, records))
    whole = b"".join(parts)
    before = len(b"".join(parts[:5]))
    for name, data, says in [
            ("cut", whole[:before + 40], "ends within a WARC record"),
            ("noise", b"".join(parts[:5]) + b"XXXX" + b"".join(parts[5:]), ""),
            ("length", b"".join(parts[:5]) + pack(record("response", "x", answer(page(9)), Content_Length=7))
             + b"".join(parts[5:]), "Content-Length")]:
        (bly.path / f"{name}.warc").write_bytes(data)
        done = bly("dedup", f"{name}.warc", "--warc", "-o", "out.warc", "--json")
        if packed and name == "length":  # the member says where the record ends
            assert done.status == 0 and done.json["documents"] == 7
            continue
        assert done.status == 2, name
        assert says in done.err and "pages before that were used" in done.err
        out = (bly.path / "out.warc").read_bytes()
        assert out == b"".join(records[:5])


def test_what_is_no_warc(trouble, ok):
    (ok.path / "a").write_bytes(b'{"text": "a b c"}\n')
    result = ok("dedup", "a", "-o", "b", "-q")
    assert result.status == 0
    (ok.path / "w.warc").write_bytes(response("a", page(1)))
    for more, says in (["--paragraphs"], "whole documents"), (["--lines", "--warc"], "exclude"), \
            (["ngrams"], "whole documents"):
        argv = ["dedup", *more, "w.warc", "-o", "out"]
        if more == ["ngrams"]:
            argv = ["dedup", "ngrams", "w.warc", "-o", "out"]
        trouble(*argv, says=says)


@pytest.mark.skipif(not shutil.which("wget"), reason="needs wget")
def test_what_wget_writes(ok, tmp_path):
    """A server of Python's, a crawl by wget, and its file without copies."""
    import functools
    import http.server
    import threading
    site = tmp_path / "site"
    site.mkdir()
    for name, seed in ("a", 1), ("b", 2), ("c", 1):
        (site / f"{name}.html").write_bytes(page(seed))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        base = f"http://127.0.0.1:{server.server_port}"
        subprocess.run(["wget", "-q", "--warc-file=crawl", "-O", "/dev/null",
                        *(f"{base}/{n}.html" for n in "abc")], cwd=tmp_path, check=True)
    finally:
        server.shutdown()
        server.server_close()
    done = ok("dedup", "crawl.warc.gz", "-o", "clean.warc.gz", "--json", "--id", "WARC-Target-URI",
              "--removed", "gone")
    assert (done.json["documents"], done.json["removed"]) == (3, 1)
    # This crawler writes addresses in angle brackets.
    assert (ok.path / "gone").read_text().startswith(f"<{base}/c.html>\t<{base}/a.html>\t")
    before = gzip.decompress((ok.path / "crawl.warc.gz").read_bytes())
    after = gzip.decompress((ok.path / "clean.warc.gz").read_bytes())
    assert before.count(b"WARC/1.0\r\n") == after.count(b"WARC/1.0\r\n") + 1
