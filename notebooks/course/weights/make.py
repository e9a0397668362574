"""`python -m course weights [NAME ...]`: train the small models again. About a minute each."""

import importlib
import pkgutil
import time

import course.weights


def main(names=()):
    """Run every `make(folder)` of the modules course.weights.lessonNN, or those named."""
    for module in pkgutil.iter_modules(course.weights.__path__):
        if module.name.startswith("lesson") and (not names or module.name in names):
            began = time.perf_counter()
            maker = importlib.import_module(f"course.weights.{module.name}")
            said = maker.make(course.weights.FOLDER)
            print(f"{module.name}: {said} ({time.perf_counter() - began:.0f} s)", flush=True)
