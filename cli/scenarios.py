"""``fakekafka scenarios``: lists what ``fakekafka run`` can run by name."""

from __future__ import annotations

import json
import textwrap
from typing import Annotated

import typer


def command(
    name: Annotated[
        str | None, typer.Argument(help="print the file of this scenario, as a start for your own")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> None:
    """List the scenarios and stories that come with the package and can be run by name."""
    from ..scenarios.file import load_scenario
    from ..scenarios.library import scenario_file, scenario_names

    if name is not None:
        print(scenario_file(name).read_text(encoding="utf-8"), end="")
        return
    specs = [(known, load_scenario(known)) for known in scenario_names()]
    if as_json:
        found = [
            {
                "name": known,
                "kind": "scenario" if spec.story is None else "story",
                "description": spec.description,
                "versions": [] if spec.story is None else list(spec.story.versions),
            }
            for known, spec in specs
        ]
        print(json.dumps(found, ensure_ascii=False))
        return
    width = max(len(known) for known, _ in specs) + 2
    for known, spec in specs:
        kind = "scenario" if spec.story is None else "story"
        about = textwrap.shorten(spec.description or spec.name, 96 - width, placeholder=" ...")
        print(f"{known:<{width}}{kind:<10}{about}")
    print("\nfakekafka run NAME runs one, fakekafka debug NAME steps through it.")
