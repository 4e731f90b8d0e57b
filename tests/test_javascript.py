"""The package for JavaScript: js_checks.mjs in Node, with SIMD and without; what npm packs; its size; its types.

The same checks run in Chromium, in a page and in a worker: test_playground.py.
"""
import json
import re
import shutil
import subprocess

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
@pytest.mark.parametrize("kinds, most", [("common", 25_400), ("all", 120_000)])
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
    for name, text in words["en"].items():
        assert sorted(set(re.findall(r"{\d}", text))) == sorted(set(re.findall(r"{\d}", words["de"][name]))), name


def test_npm_packs_what_load_needs():
    if not shutil.which("npm"):
        pytest.skip("no npm")
    done = subprocess.run(["npm", "pack", "--dry-run", "--json", "--offline"], cwd=PACKAGE, capture_output=True, text=True, timeout=PATIENCE, check=True)
    packed = {file["path"] for file in json.loads(done.stdout)[0]["files"]}
    assert packed == {"LICENSE", "README.md", "package.json", "bloomery.js", "bloomery.d.ts",
                      "common.wasm", "common-plain.wasm", "all.wasm", "all-plain.wasm"}
