"""The playground and the package for JavaScript in a real Chromium, driven by Playwright: every panel's main path,
the tour, links typed by hand, keyboard, German, dark, phones, bad files, a worker that is ended; no complaint on the console, no request
to another server, and no more bytes than promised.

BLY_PICTURES names a folder for screenshots.
"""
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import urllib.error
import urllib.request

import pytest
from conftest import BUILD, GRACE, PATIENCE, PROGRAM, ROOT
from js_support import CHECKS, PACKAGE, WEB, command, environment, needs_node, needs_package

CHROMIUM = shutil.which("chromium")
PLAYWRIGHT = "playwright-core@1.49.1"
STORIES = [*re.findall(r'^await check\("(\w+)"', (ROOT / "tests" / "browser.mjs").read_text(), re.M), "tour_en", "tour_de", "phone_320", "phone_360"]
pytestmark = [needs_package, needs_node,
              pytest.mark.skipif(CHROMIUM is None, reason="no chromium"),
              pytest.mark.skipif(not (WEB / "play.wasm").exists(), reason="build/web is not there: make web")]


@pytest.fixture(scope="module")
def server():
    """bloomery web, on a free port."""
    p = subprocess.Popen([PROGRAM, "web", "--listen", "127.0.0.1:0", "--folder", WEB, "--json"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    line = p.stdout.readline()
    if not line:
        why = p.stderr.read()
        if "libmicrohttpd" in why:
            pytest.skip(why.strip())
        pytest.fail(why)
    yield json.loads(line)
    p.terminate()
    try:
        assert p.wait(GRACE) == 0
    finally:
        p.kill()


class Files(http.server.SimpleHTTPRequestHandler):
    """The package, the checks and the golden files, for pages that use the package."""
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript", ".wasm": "application/wasm"}
    places = {"js": PACKAGE, "tests": ROOT / "tests", "golden": ROOT / "tests" / "golden"}

    def translate_path(self, path):
        _, place, *rest = path.split("?")[0].split("/")
        name = "/".join(rest)
        return str(self.env) if place == "env.json" else str(self.places.get(place, ROOT / "none") / name)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def results(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    kept = BUILD / "playwright"
    if not (kept / "node_modules" / "playwright-core").exists():
        done = subprocess.run(["npm", "install", "--prefix", kept, "--no-save", "--no-package-lock", "--no-audit", "--no-fund",
                               "--fetch-retries=0", "--loglevel=error", PLAYWRIGHT], capture_output=True, text=True,
                              timeout=PATIENCE, env={**os.environ, "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"}) \
            if shutil.which("npm") else None
        if done is None or done.returncode:
            pytest.skip("npm cannot install playwright-core")
    env = environment(folder)
    env["names"] = sorted(p.name for p in (ROOT / "tests" / "golden").glob("*.bly"))
    (folder / "words.txt").write_text("ant\nbee\ncat\n")
    if command(folder, "build", "--format", "bits-and-blooms", "-o", "foreign.bloom", "words.txt").returncode == 0:
        env["foreign"] = str(folder / "foreign.bloom")
    (folder / "env.json").write_text(json.dumps(env))
    files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (Files,), {"env": folder / "env.json"}))
    threading.Thread(target=files.serve_forever, daemon=True).start()
    env["package"] = f"http://127.0.0.1:{files.server_address[1]}"
    (folder / "env.json").write_text(json.dumps(env))
    done = subprocess.run(["node", "tests/browser.mjs", kept, CHROMIUM, server["url"], folder / "env.json",
                           os.environ.get("BLY_PICTURES", "")], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    files.shutdown()
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    found["saved"] = command(folder, "has", "env.json.saved.bly", "ant", "bee", "cat", "dog").stdout.decode()
    return found


@pytest.mark.parametrize("story", STORIES)
def test_story(results, story):
    assert results[story] == "", results[story]


@pytest.mark.parametrize("where", ["page", "worker"])
def test_package(results, where):
    assert results["package_in_page_and_worker"] == "", results["package_in_page_and_worker"]
    for check in CHECKS:
        assert results[f"{where}: {check}"] == "", f"{check}: " + results[f"{where}: {check}"]


def test_what_the_page_saved_is_a_file_for_the_command(results):
    assert results["saved"] == "ant\nbee\ncat\n"


def test_served_bytes(server):
    """All that the playground consists of, as it is sent."""
    assert server["sent"] < 300_000, server


def test_only_names_of_files_are_answered(server):
    for path in ("../Makefile", "%2e%2e/Makefile", "/etc/passwd", "none.js", "play.c"):
        with pytest.raises(urllib.error.HTTPError) as e:
            urllib.request.urlopen(server["url"] + path)
        assert e.value.code == 404
    answer = urllib.request.urlopen(server["url"])
    assert answer.headers["Content-Type"].startswith("text/html") and b"bloomery" in answer.read()


def test_the_handbook_stands_beside_it(tmp_path):
    """Where it was built: at /handbook/, with its folders, and nothing outside of it."""
    for name, text in {"web/index.html": "play", "site/index.html": "handbook", "site/search/search_index.json": "{}", "site/kinds/fuse.html": "fuse",
                       "site/tree/include/bloomery.h.txt": "header", "site/.hidden.txt": "hidden", "secret.txt": "secret"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    p = subprocess.Popen([PROGRAM, "web", "--listen", "127.0.0.1:0", "--folder", tmp_path / "web", "--json"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    line = p.stdout.readline()
    try:
        if not line:
            why = p.stderr.read()
            assert "libmicrohttpd" in why, why
            pytest.skip(why.strip())
        told = json.loads(line)
        assert told["handbook"] == told["url"] + "handbook/" and told["files"] == 1
        for path, text in {"": "play", "handbook/": "handbook", "handbook/kinds/fuse.html": "fuse", "handbook/tree/include/bloomery.h.txt": "header"}.items():
            assert urllib.request.urlopen(told["url"] + path).read().decode() == text
        for path in "handbook/../secret.txt", "handbook/%2e%2e/secret.txt", "handbook/.hidden.txt", "handbook/kinds", "handbook":
            with pytest.raises(urllib.error.HTTPError) as e:
                urllib.request.urlopen(told["url"] + path)
            assert e.value.code == 404, path
    finally:
        p.terminate()
        p.wait(GRACE)


def test_wrong_folders_are_named(trouble):
    trouble("web", "--folder", "nowhere", says=["nowhere", "make web"])
    (trouble.path / "empty").mkdir()
    trouble("web", "--folder", "empty", says=["empty", "index.html"])
    trouble("web", "elsewhere", says=["elsewhere", "--folder"])
