"""Pages with a program: it compiles without a warning and prints what the page says."""
import os
import re
import shlex
import subprocess

import pytest

from conftest import BUILD, PATIENCE, ROOT


@pytest.mark.parametrize("name", ["node", "reconcile"])
def test_the_program_prints_what_the_page_says(name, tmp_path):
    page = (ROOT / "docs" / f"{name}.md").read_text()
    program, = re.findall(r"^```c\n(.*?)^```$", page, re.M | re.S)
    printed, = re.findall(r"^```text\n(.*?)^```$", page, re.M | re.S)
    (tmp_path / "program.c").write_text(program)
    subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "program.c",
                    str(BUILD / "release" / "libbloomery.a"), "-pthread", "-lm"], cwd=tmp_path, check=True, timeout=PATIENCE)
    assert subprocess.run(["./a.out"], cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True,
                          timeout=PATIENCE).stdout == printed
