"""What tests of the package for JavaScript and of the playground share."""
import base64
import json
import re
import shutil
import subprocess

import pytest
import sql_support
from conftest import BUILD, PATIENCE, PROGRAM, ROOT

PACKAGE = BUILD / "js"
WEB = BUILD / "web"
CHECKS = re.findall(r"^  (?:async )?(\w+)\(\{", (ROOT / "tests" / "js_checks.mjs").read_text(), re.M)
needs_package = pytest.mark.skipif(not (PACKAGE / "all.wasm").exists(),
                                   reason="build/js is not there: no clang for WebAssembly (clang lld wasi-libc libclang-rt-14-dev-wasm32)")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no node")


def command(folder, *args):
    done = subprocess.run([PROGRAM, *args], cwd=folder, capture_output=True, timeout=PATIENCE)
    assert done.returncode in (0, 1), done.stderr
    return done


def environment(folder):
    """What js_checks.mjs is given: vectors with the command's file and its answers; plans."""
    vectors = []
    for name, keys, flag in (("text", sql_support.TEXTS, []), ("int64", sql_support.INTEGERS, ["--int"])):
        keys = [str(key) for _, key in keys]
        (folder / "list").write_text("".join(f"{key}\n" for key in keys))
        command(folder, "build", "-o", f"{name}.bly", "--fpr", "1e-9", *flag, "list")
        asked = [*keys, "8", *(["mallory"] if name == "text" else [])]
        # As text, and integers as such too.
        asked += [f"int:{key}" for key in asked if name == "int64"]
        answers = [command(folder, "has", f"{name}.bly", "--", key.removeprefix("int:")).returncode == 0 for key in asked]
        vectors.append({"type": name, "bytes": base64.b64encode((folder / f"{name}.bly").read_bytes()).decode(),
                        "built": keys, "keys": asked, "answers": answers})
    plans = json.loads(command(folder, "plan", "--items", "1000", "--json").stdout)["kinds"]
    return {"vectors": vectors, "plans": plans, "folder": str(ROOT / "tests" / "golden")}
