"""`python -m course weights [NAME ...]`: train the small models again. About a minute each."""

import argparse
import importlib
import pkgutil
import sys
import time

import course.weights


def main(arguments=None) -> int:
    """Run every `make(folder)` of the modules course.weights.lessonNN, or those named."""
    modules = [module.name for module in pkgutil.iter_modules(course.weights.__path__)]
    lessons = [name for name in modules if name.startswith("lesson")]
    parser = argparse.ArgumentParser(
        prog="python -m course weights", description=__doc__.split(": ", 1)[1]
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(lessons)}; all if none is given"
    )
    names = parser.parse_args(arguments).names
    unknown = [name for name in names if name not in lessons]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(lessons)}")
    for name in lessons:
        if not names or name in names:
            began = time.perf_counter()
            maker = importlib.import_module(f"course.weights.{name}")
            said = maker.make(course.weights.FOLDER)
            print(f"{name}: {said} ({time.perf_counter() - began:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
