"""The figures that the README quotes, as the benchmarks printed them: results.json beside this."""

import json
from pathlib import Path

PLACE = Path(__file__).with_name("results.json")


def record(name, figures):
    """Put the figures of one benchmark in the place of its earlier ones."""
    kept = json.loads(PLACE.read_text(encoding="utf-8")) if PLACE.exists() else {}
    kept[name] = figures
    text = json.dumps(kept, indent=1, sort_keys=True) + "\n"
    PLACE.write_text(text, encoding="utf-8", newline="\n")
