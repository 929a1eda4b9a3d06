#!/usr/bin/env python3
"""Records what Jinja2 makes of the templates in tests/data/text/jinja, for tests/text/jinja_cases_test.cpp.

Needs the package jinja2 from PyPI; neither the build nor the tests need this script. It writes
tests/data/text/jinja_cases.jsonl, a line a case:

  {"template": TEXT, "text": OUTPUT}                             a snippet, with the variables of variables.json
  {"file": NAME, "conversation": KEY, "text": OUTPUT}            a file of templates/, with those of conversations.json

In place of "text", "error" is a message that has to be part of ours, and "fails" the kind of any other error.
"""

import json
import pathlib

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "text"


class Generation(jinja2.ext.Extension):
    """The tag that marks what the assistant says; it does not change the output."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


class Raised(Exception):
    """What the template itself raises."""


def raise_exception(message):
    raise Raised(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def make_environment():
    """The environment with the settings that Hugging Face's libraries use."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda format: format.replace("%%", "%")
    return environment


def outcome(environment, template, variables):
    try:
        return {"text": environment.from_string(template).render(**variables)}
    except (Raised, SecurityError, jinja2.UndefinedError) as error:
        return {"error": str(error)}
    except Exception as error:  # whatever Python raises for what the template does
        return {"fails": type(error).__name__}


def cases():
    environment = make_environment()
    snippets = (DATA / "jinja" / "snippets.jinja").read_text().removesuffix("\n").split("\n---\n")
    conversations = json.loads((DATA / "jinja" / "conversations.json").read_text())
    for snippet in snippets:
        variables = json.loads((DATA / "jinja" / "variables.json").read_text())
        yield {"template": snippet} | outcome(environment, snippet, variables)
    for file in sorted((DATA / "jinja" / "templates").glob("*.jinja")):
        for key, variables in conversations.items():
            yield {"file": file.name, "conversation": key} | outcome(environment, file.read_text(), variables)


def main():
    with open(DATA / "jinja_cases.jsonl", "w") as out:
        for case in cases():
            out.write(json.dumps(case, ensure_ascii=False).replace("\u2028", "\\u2028") + "\n")


if __name__ == "__main__":
    main()
