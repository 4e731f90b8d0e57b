"""The package for JavaScript: js_checks.mjs in Node, with SIMD and without; what npm packs; its size; its types.

The same checks run in Chromium, in a page and in a worker: test_playground.py.
"""
import json
import shutil
import subprocess

import pytest
from conftest import PATIENCE
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
@pytest.mark.parametrize("kinds, most", [("common", 58_000), ("all", 121_000)])
@pytest.mark.parametrize("simd", ["", "-plain"])
def test_size(kinds, most, simd):
    assert compressed("bloomery.js", f"{kinds}{simd}.wasm") <= most


def test_npm_packs_what_load_needs():
    if not shutil.which("npm"):
        pytest.skip("no npm")
    done = subprocess.run(["npm", "pack", "--dry-run", "--json", "--offline"], cwd=PACKAGE, capture_output=True, text=True, timeout=PATIENCE, check=True)
    packed = {file["path"] for file in json.loads(done.stdout)[0]["files"]}
    assert packed == {"LICENSE", "README.md", "package.json", "bloomery.js", "bloomery.d.ts",
                      "common.wasm", "common-plain.wasm", "all.wasm", "all-plain.wasm"}
