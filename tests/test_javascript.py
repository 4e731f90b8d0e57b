"""The package for JavaScript: js_checks.mjs in Node, with SIMD and without; what npm packs; its size; its types.

The same checks run in Chromium, in a page and in a worker: test_playground.py.
"""
import functools
import http.server
import json
import re
import shutil
import subprocess
import threading

import pytest
from conftest import PATIENCE, PROGRAM, ROOT
from js_support import CHECKS, PACKAGE, environment, needs_node, needs_package

pytestmark = [needs_package, needs_node]


@pytest.fixture(scope="module", params=["simd", "plain"])
def results(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("js")
    (folder / "env.json").write_text(json.dumps(environment(folder)))
    done = subprocess.run(["node", "tests/js_node.mjs", PACKAGE, folder / "env.json", request.param],
                          cwd=PACKAGE.parent.parent, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("check", CHECKS)
def test_in_node(results, check):
    assert results[check] == "", results[check]


def compressed(*names):
    """Bytes as a server sends them, with Brotli."""
    code = "const z=require('zlib'),fs=require('fs');let n=0;for(const f of process.argv.slice(1))n+=z.brotliCompressSync(fs.readFileSync(f)).length;console.log(n)"
    return int(subprocess.run(["node", "-e", code, *[PACKAGE / name for name in names]], capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(not (shutil.which("wasm-opt") and shutil.which("esbuild")), reason="no wasm-opt (binaryen) or esbuild, which make the package small")
@pytest.mark.parametrize("kinds, most", [("common", 26_400), ("all", 123_000)])
@pytest.mark.parametrize("simd", ["", "-plain"])
def test_size(kinds, most, simd):
    assert compressed("bloomery.js", f"{kinds}{simd}.wasm") <= most


@pytest.mark.parametrize("module, files", [("common", set()), ("all", {"bly_scratch_open", "bly_fd_write", "bly_io_fail", "mprotect", "fd_close", "fd_fdstat_get", "fd_pread"})])
@pytest.mark.parametrize("simd", ["", "-plain"])
def test_nothing_is_missing_but_what_files_would_need(module, files, simd):
    """What C does not define is imported, and bloomery.js answers that nothing of it is there."""
    code = "console.log(JSON.stringify(WebAssembly.Module.imports(new WebAssembly.Module(require('fs').readFileSync(process.argv[1])))))"
    imports = json.loads(subprocess.run(["node", "-e", code, PACKAGE / f"{module}{simd}.wasm"], capture_output=True, text=True, check=True).stdout)
    assert {one["name"] for one in imports if one["module"] != "js"} - {"madvise"} <= files


NAMES = """
import * as all from "bloomery";
const lib = await all.load({ kinds: "all" }), { Filter, raw, ...rest } = lib, f = Filter.build(["a"], { kind: "classic" });
const own = (object) => Object.getOwnPropertyNames(object).filter((name) => !["constructor", "prototype", "length", "name"].includes(name));
console.log(JSON.stringify({
  "typeof import('bloomery')": Object.keys(all), Bloomery: ["Filter", ...Object.keys(rest)], Filter: own(Filter.prototype), FilterConstructor: own(Filter),
  Answers: [...Object.keys(new all.Answers([], 0)), ...own(all.Answers.prototype)], Likeness: Object.keys(f.compare(f)), Plan: Object.keys(lib.plan({ items: 5 })),
  Kind: Object.keys(lib.kinds()[0]), "Required<Info>": [...Object.keys(f.info()), "note"],
}));
"""


@pytest.mark.skipif(shutil.which("tsc") is None, reason="no tsc (node-typescript)")
def test_types(tmp_path):
    """What bloomery.d.ts declares is there, what is there is declared, and js_types.ts uses it as it says."""
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "bloomery").symlink_to(PACKAGE)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "names.mjs").write_text(NAMES)
    names = json.loads(subprocess.run(["node", "names.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout)
    checks = []
    for i, (kind, real) in enumerate(names.items()):
        words = " | ".join(json.dumps(name) for name in real)
        checks += [f"type Names{i} = Exclude<keyof ({kind}), symbol>;",
                   f"export const undeclared{i}: [Exclude<{words}, Names{i}>] extends [never] ? true : Exclude<{words}, Names{i}> = true;",
                   f"export const absent{i}: [Exclude<Names{i}, {words}>] extends [never] ? true : Exclude<Names{i}, {words}> = true;"]
    source = (ROOT / "tests" / "js_types.ts").read_text().replace("import type { Bloomery, Filter,", "import type { Bloomery, Filter, FilterConstructor,")
    (tmp_path / "types.ts").write_text(source + "\n".join(checks))
    done = subprocess.run(["tsc", "--noEmit", "--strict", "--preserveSymlinks", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "types.ts"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout


def test_the_playground_says_everything_in_both_languages():
    # From standard input: Node 18, Debian's, takes no file called .js for a module.
    code = (ROOT / "web" / "words.js").read_text() + "console.log(JSON.stringify({ en: words.en, de: words.de }));"
    words = json.loads(subprocess.run(["node", "--input-type=module", "-"], input=code, capture_output=True, text=True, check=True).stdout)
    kinds = {kind["kind"] for kind in json.loads(subprocess.run([PROGRAM, "kinds", "--json"], capture_output=True, text=True, check=True).stdout)}
    assert set(words["de"].pop("kinds")) == kinds
    assert set(words["de"]) == set(words["en"])
    for name, said in words["en"].items():
        texts = json.dumps(said), json.dumps(words["de"][name])  # some are lists
        assert len({tuple(sorted(set(re.findall(r"{\w+}", text)))) for text in texts}) == 1, name


def test_npm_packs_what_load_needs():
    if not shutil.which("npm"):
        pytest.skip("no npm")
    done = subprocess.run(["npm", "pack", "--dry-run", "--json", "--offline"], cwd=PACKAGE, capture_output=True, text=True, timeout=PATIENCE, check=True)
    packed = {file["path"] for file in json.loads(done.stdout)[0]["files"]}
    assert packed == {"LICENSE", "README.md", "package.json", "bloomery.js", "bloomery.d.ts",
                      "common.wasm", "common-plain.wasm", "all.wasm", "all-plain.wasm"}


SHOWN = """
import { inspect } from "node:util";
import { load, Answers, BloomeryError } from "bloomery";
const { Filter } = await load(), f = Filter.build(["a", "b"]), answers = f.hasMany(["a", "nosuch"]);
const closed = Filter.build(["a"]);
closed.close();
console.log(JSON.stringify({
  filter: inspect(f), json: JSON.parse(JSON.stringify(f)), answers: inspect(answers), list: JSON.parse(JSON.stringify(answers)), closed: inspect(closed),
  nested: inspect({ f }), gone: JSON.stringify(closed), names: [Filter.name, Answers.name, BloomeryError.name, f.constructor.name],
}));
"""


def package_beside(tmp_path):
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "bloomery").symlink_to(PACKAGE)
    (tmp_path / "package.json").write_text('{"type": "module"}')


def test_what_a_console_and_json_show(tmp_path):
    """Not T {} and {}."""
    package_beside(tmp_path)
    (tmp_path / "shown.mjs").write_text(SHOWN)
    done = subprocess.run(["node", "shown.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=PATIENCE)
    told = json.loads(done.stdout)
    assert re.fullmatch(r'Filter \{ kind: "blocked", capacity: 2, bytes: \d+ \}', told["filter"]) and told["filter"] in told["nested"]
    assert told["json"]["kind"] == "blocked" and told["json"]["capacity"] == 2
    assert told["answers"] == "Answers { length: 2, true: 1 }" and told["list"] == [True, False]
    assert told["closed"] == "Filter { closed }" and told["gone"] == '{"closed":true}'
    assert told["names"] == ["Filter", "Answers", "BloomeryError", "Filter"]


PAGE = """
import { load } from "bloomery";
import wasm from "bloomery/common.wasm";
const { Filter } = await load({ wasm }), f = Filter.build(["swordfish"]);
document.title = `${f.has("swordfish")} ${f.has("mallory")} ${JSON.stringify(f).length > 50}`;
"""


@pytest.mark.skipif(shutil.which("esbuild") is None, reason="no esbuild")
@pytest.mark.parametrize("loader", ["file", "binary"])
def test_it_is_bundled_for_browsers(tmp_path, loader):
    """As docs/javascript.md says, without a warning; Chromium runs the bundle."""
    package_beside(tmp_path)
    (tmp_path / "page.js").write_text(PAGE)
    done = subprocess.run(["esbuild", "page.js", "--bundle", "--format=esm", "--platform=browser", "--minify", f"--loader:.wasm={loader}", "--outdir=public"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "WARNING" not in done.stderr.upper(), done.stderr
    text = (tmp_path / "public" / "page.js").read_text()
    assert "node:fs" not in text.replace('["node:fs","promises"]', "")
    if shutil.which("chromium") is None:
        pytest.skip("no chromium, which runs the bundle")
    (tmp_path / "public" / "index.html").write_text('<!doctype html><title>?</title><script type="module" src="page.js"></script>')
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "public")
    handler.log_message = lambda *args: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
                               "--virtual-time-budget=60000", "--dump-dom", f"http://127.0.0.1:{served.server_port}/"],
                              capture_output=True, text=True, timeout=PATIENCE)
        served.shutdown()
    assert "<title>true false true</title>" in done.stdout, done.stdout + done.stderr[-2000:]
