"""The package for JavaScript: js_checks.mjs in Node, with SIMD and without; what npm packs; its size; its types.

The same checks run in Chromium, in a page and in a worker: test_playground.py.
"""
import json
import subprocess

import pytest
from conftest import BUILD, PATIENCE
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
