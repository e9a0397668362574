"""What `fit` trained in one run of a lesson need not be trained again in another.

A lesson's minutes are those of `fit`. nbval runs every lesson and trains; for the learner's copies
it is told to keep what each call of `fit` did, in the temporary folder of the test run. The browser
tests open the same copies, and are about what is seen and moved there: where they call `fit` with
the same model, examples and options to the last bit, they get what was kept. The watcher is told
every step, the parameters are the same numbers, the history is the same. What was not kept is
trained.
"""

import dataclasses
import functools
import hashlib
import json
import os
import pickle
import types
from pathlib import Path

FOLDER = "COURSE_TESTS_TRAINED"  # the variable with the folder of what is kept; kernels inherit it


def profile(folder, again):
    """Make an IPython folder whose kernels keep what `fit` does; returns its path.

    again: whether they also take what was kept.
    """
    startup = Path(folder) / "profile_default" / "startup"
    startup.mkdir(parents=True, exist_ok=True)
    (startup / "10-trained.py").write_text(
        f"import sys\nsys.path.append({str(Path(__file__).parent)!r})\n"
        f"import trained\ntrained.install(again={again})\ndel sys, trained\n",
        encoding="utf-8",
    )
    return Path(folder)


def install(again):
    """Put `keeping(fit)` in the place of `solutions.training.fit`, in this process."""
    from solutions import training

    if os.environ.get(FOLDER):
        training.fit = keeping(training.fit, os.environ[FOLDER], again)


def keeping(fit, folder, again):
    """`fit` that keeps what it did in `folder`; with `again`, what is there is not done again."""

    @functools.wraps(fit)
    def kept(model, train, dev=None, *, watch=None, **options):
        key = key_of(model, train, dev, watch, options)
        path = key and Path(folder) / key
        if path and again and path.is_file():
            return replay(*read(path), model, watch)
        told = Told(model, watch)
        history = fit(model, train, dev, watch=told, **options)
        if path and not history.stopped:
            after = {name: array.copy() for name, array in model.params.items()}
            write(path, told.calls, after, history)
        return history

    return kept


def replay(calls, after, history, model, watch):
    """Do to a model and a watcher what `fit` did; returns its history."""
    for name, given, params in calls:
        put(after if name == "end" else params, model)
        if watch:
            getattr(watch, name)(*given)
    return history


def put(params, model):
    for name, array in params.items():
        model.params[name][...] = array


def write(path, calls, after, history):
    """An .npz file, arrays and one JSON text; all of it or nothing: others may look for it now."""
    import numpy as np  # here, as conftest.py imports this module before it says how many threads

    about = {"calls": [call[:2] for call in calls], "history": dataclasses.asdict(history)}
    arrays = {f"after/{name}": array for name, array in after.items()}
    for number, (_, _, params) in enumerate(calls):
        arrays |= {f"{number}/{name}": array for name, array in params.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with part.open("wb") as file:
        np.savez(file, about=np.array(json.dumps(about)), **arrays)
    os.replace(part, path)


def read(path):
    """(calls, parameters after training, history) of a file that `write` wrote."""
    import numpy as np

    from solutions.training import History

    with np.load(path) as file:
        about = json.loads(str(file["about"]))
        params = {}
        for name in file.files:
            if name != "about":
                place, own = name.split("/", 1)
                params.setdefault(place, {})[own] = file[name]
    calls = [(name, given, params.get(str(number), {}))
             for number, (name, given) in enumerate(about["calls"])]  # fmt: skip
    return calls, params["after"], History(**about["history"])


class Told:
    """A watcher that passes on what `fit` says and keeps it.

    At each look at the dev split the parameters are kept too, for a watcher that looks at the model
    then; the course's training curve does not.
    """

    def __init__(self, model, watch):
        from course.live import Live

        self.model, self.watch, self.calls = model, watch, []
        self.looks = watch is not None and type(watch) is not Live

    def _say(self, name, *given, params=()):
        self.calls.append((name, given, dict(params)))
        if self.watch:
            getattr(self.watch, name)(*given)

    def start(self, total):
        self._say("start", total)

    def step(self, step, loss, rate):
        self._say("step", step, loss, rate)

    def dev(self, step, score):
        params = self.model.params if self.looks else {}
        now = {name: array.copy() for name, array in params.items()}
        self._say("dev", step, score, params=now)

    def end(self, reason):
        self._say("end", reason)


# ---------------------------------------------------------------- what makes two calls the same


class _Pickler(pickle.Pickler):
    """Writes what has the same meaning as the same bytes, in any process; nothing reads them.

    A function of a notebook is what it does; a set has another order in each process.
    """

    def reducer_override(self, given):
        if isinstance(given, types.FunctionType):
            inside = [cell.cell_contents for cell in given.__closure__ or ()]
            return tuple, ((_form(given.__code__), given.__defaults__, *inside),)
        if type(given).__module__.startswith("solutions.") and not isinstance(given, (type, dict)):
            state = {
                name: sorted(value) if isinstance(value, (set, frozenset)) else value
                for name, value in vars(given).items()
            }
            return tuple, ((type(given).__qualname__, state),)
        return NotImplemented


def _form(code):
    """A function's code without the names of files and the numbers of lines."""
    parts = [_form(one) if isinstance(one, types.CodeType) else one for one in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, tuple(parts)


def key_of(model, train, dev, watch, options):
    """A name for all that `fit` depends on; None where it cannot be told.

    Only for the course's own models: another one may do anything, such as call an exercise.
    """
    if not type(model).__module__.startswith("solutions."):
        return None
    digest = hashlib.blake2b(type(watch).__qualname__.encode(), digest_size=16)

    class Into:
        def write(self, content):
            digest.update(content)

    try:
        _Pickler(Into(), protocol=5).dump((model, train, dev, sorted(options.items())))
    except (pickle.PicklingError, TypeError, AttributeError, ValueError):
        return None
    return digest.hexdigest()
