"""DuckDB for tests, the build that npm distributes: tools/npm-packages."""
import json
import subprocess

import pytest

from conftest import BUILD, PATIENCE, ROOT


def npm():
    """Why DuckDB and hyparquet are not there; None if they are."""
    done = subprocess.run([ROOT / "tools" / "npm-packages", BUILD],
                          capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else None


NO_NPM = npm()
needs_npm = pytest.mark.skipif(NO_NPM is not None, reason=str(NO_NPM))


class DuckDB:
    """A database in memory, with DuckDB's settings as name=value."""

    def __init__(self, *settings, env=None):
        self.node = subprocess.Popen(
            ["node", ROOT / "tests" / "duckdb.mjs", BUILD / "npm", *settings],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def ask(self, sql, **more):
        """What came back: {"rows": ...} or {"error": ...}."""
        self.node.stdin.write(json.dumps({"sql": sql, **more}) + "\n")
        self.node.stdin.flush()
        return json.loads(self.node.stdout.readline())

    def __call__(self, sql, **more):
        answer = self.ask(sql, **more)
        assert "error" not in answer, (sql, answer)
        return answer["rows"]

    def close(self):
        self.node.stdin.close()
        self.node.wait(timeout=PATIENCE)
