"""`python -m course COMMAND`: what authors run to make the files that are made, not written."""

import importlib
import importlib.util
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

USAGE = """\
usage: python -m course COMMAND

  build [NN ...]          put notebooks/NN_*.ipynb in their normal form and make the worked copies
  build [NN ...] --text   the same, running nothing: for lessons whose text alone has changed
  build [NN ...] --check  say what is stale or against the rules; changes nothing
  glossary                print the words that carry a definition, each with what stands around
  grade FOLDER            print a table of everybody's exercises (for teachers; --help says more)
  vocab [--into FILE]     make the vocabulary of the course's texts
  weights [NAME ...]      train the small models that lessons show before they train their own
  figures                 draw the pictures of the lessons and of the README
  update [--from FOLDER]  bring this copy to a newer version of the course, your answers in it
"""

MODULES = {
    "build": "course.build",
    "grade": "course.grade",
    "glossary": "course.glossary",
    "update": "course.update",
    "vocab": "course.texts.make_vocab",
    "weights": "course.weights.make",
}


def main(arguments=None):
    """Run a command; returns the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0 if arguments else 2
    command, rest = arguments[0], arguments[1:]
    if command == "figures":
        return _figures(rest)
    if command not in MODULES:
        print(f"python -m course: there is no command {command!r}\n\n{USAGE}", file=sys.stderr)
        return 2
    module = MODULES[command]
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # a package above it is missing
        found = None
    if found is None:
        print(f"python -m course {command}: {module} is not in this copy", file=sys.stderr)
        return 2
    run = importlib.import_module(module).main
    sys.argv = [f"python -m course {command}", *rest]
    return run(rest) or 0


def _figures(rest):
    script = ROOT / "figures" / "make.py"
    if not script.is_file():
        print(f"python -m course figures: there is no {script}", file=sys.stderr)
        return 2
    sys.argv = [str(script), *rest]
    sys.path.insert(0, str(script.parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.path.remove(str(script.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
