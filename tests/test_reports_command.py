"""Reports: one table of fields gives JSON, text, man page and schema."""
import re

import pytest
from conftest import ROOT, SCHEMAS, misfit, run

COMMANDS = run("help", "--list").out.split()


def test_the_schema_in_docs_is_that_of_the_command(ok):
    printed = ok("help", "--schema").out
    assert (ROOT / "docs" / "schema.json").read_text() == printed, \
        "docs/schema.json is old: make schema"


def test_the_schema_says_it_is_one(ok):
    schema = ok("help", "--schema").json
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert set(schema["$defs"]) <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_with_json_has_a_schema(ok, command):
    [c] = ok("help", "--json", command).json
    tables = [v["options"] for v in c["verbs"]] + [c["options"]]
    has_json = any(o["name"] == "json" for t in tables for o in t)
    assert (command in SCHEMAS) == has_json


@pytest.mark.parametrize("command", SCHEMAS)
def test_the_man_page_names_every_member(ok, command):
    page = "".join(re.split(r"^\.S[HS] JSON$",
                            ok("help", "--man", command).out, flags=re.M)[1:])
    for report in SCHEMAS[command]["anyOf"]:
        for name in report.get("items", report)["properties"]:
            assert f"\\fB{name}\\fR" in page


@pytest.mark.parametrize("command", SCHEMAS)
def test_every_field_is_explained(command):
    def walk(schema):
        for name, member in schema.get("properties", {}).items():
            assert len(member["description"]) > 3, name
            walk(member)
            walk(member.get("items", {}))
    for report in SCHEMAS[command]["anyOf"]:
        walk(report.get("items", report))


@pytest.mark.parametrize("value, wrong", [
    ({"a": 1, "b": None}, None),
    ({"a": 1}, "no b"),
    ({"a": 1, "b": 1, "c": 1}, "c, which is not in the schema"),
    ({"a": "1", "b": 1}, "a is no integer"),
    ({"a": True, "b": 1}, "a is no integer"),
    ({"a": 1, "b": "x"}, "b is no number or null"),
    ([1], "is no object"),
])
def test_the_check_finds(value, wrong):
    schema = {"type": "object", "additionalProperties": False,
              "required": ["a", "b"],
              "properties": {"a": {"type": "integer"},
                             "b": {"type": ["number", "null"]}}}
    found = misfit(value, schema)
    assert found is None if wrong is None else wrong in found


def test_texts_name_fields_that_exist():
    """A text for people that names no field would stop the command."""
    rooms = ("cli", "io", "wire", "apps", "workbench")
    sources = [(f, f.read_text()) for room in rooms
               for f in sorted((ROOT / room).rglob("*.[ch]"))]
    rows = r'(?:FIELD\([^,]+, (\w+)|[A-Z_]+\((?:[^,()]+, )?\s*"(\w+)")'
    names = {a or b for _, text in sources for a, b in re.findall(rows, text)}
    wrong = [f"{f.name}: {name}" for f, text in sources
             for name in re.findall(r'{[?!>]?([a-z_]+)(?::[-.#0-9]*)?}', text)
             if name not in names | {"meta", "i"}]  # hash tags of Redis
    assert wrong == []
