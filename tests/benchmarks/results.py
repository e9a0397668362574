"""The figures that the README quotes, as the benchmarks printed them: results.json beside this.

By processor: a ratio of two libraries' times is also the ratio of how well each of them suits it.
"""

import json
import os
import platform
from pathlib import Path

PLACE = Path(__file__).with_name("results.json")


def processor():
    """Its name and the number of cores, as "AMD EPYC, 2 cores"."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():  # on Linux, platform knows only the architecture
        lines = info.read_text(encoding="utf-8").splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        name = names[0] if names else name
    return f"{name}, {os.cpu_count()} cores"


def record(name, figures):
    """Put the figures of one benchmark in the place of its earlier ones on this processor."""
    kept = json.loads(PLACE.read_text(encoding="utf-8")) if PLACE.exists() else {}
    kept.setdefault(processor(), {})[name] = figures
    text = json.dumps(kept, indent=1, sort_keys=True) + "\n"
    PLACE.write_text(text, encoding="utf-8", newline="\n")
