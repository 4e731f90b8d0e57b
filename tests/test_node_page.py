"""docs/node.md: its program compiles without a warning and prints what the page says."""
import os
import shlex
import re
import subprocess

from conftest import BUILD, PATIENCE, ROOT

PAGE = (ROOT / "docs" / "node.md").read_text()


def test_the_program_prints_what_the_page_says(tmp_path):
    program, = re.findall(r"^```c\n(.*?)^```$", PAGE, re.M | re.S)
    printed, = re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)
    (tmp_path / "network.c").write_text(program)
    subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "network.c",
                    str(BUILD / "release" / "libbloomery.a"), "-pthread", "-lm"], cwd=tmp_path, check=True, timeout=PATIENCE)
    assert subprocess.run(["./a.out"], cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True,
                          timeout=PATIENCE).stdout == printed
