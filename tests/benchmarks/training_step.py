"""One training step of the course's encoder against the same model in PyTorch.

    pip install -r tests/benchmarks/requirements.txt
    python tests/benchmarks/training_step.py
    python tests/benchmarks/training_step.py --torch-python OTHER/bin/python --threads 1

Two processes, one of NumPy and one of PyTorch (eager), take turns, so that whatever else the
machine does falls on both. A step is forward and backward: hidden states, a linear head on [CLS],
cross-entropy, and the gradient of every parameter; no dropout, no optimizer. Both start from the
same parameters, and their losses and gradients are compared first. Both have the same number of
threads; OPENBLAS_CORETYPE, which would choose kernels for another processor, is unset. The last
line is `ratio 0.xx`: the median time of our steps over that of PyTorch's.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
REPOSITORY = HERE.parents[2]
SIZES = {"d_model": 64, "num_layers": 2, "num_heads": 4, "d_ff": 128}
VOCAB, LENGTH, BATCH, CLASSES = 500, 24, 32, 3


def inputs(batch=BATCH, length=LENGTH):
    rng = np.random.default_rng(0)
    return rng.integers(VOCAB, size=(batch, length)), rng.integers(CLASSES, size=batch)


# --- Ours -----------------------------------------------------------------------------------------


def our_model(length=LENGTH):
    from solutions.encoder import Encoder, EncoderConfig, init_params

    config = EncoderConfig(VOCAB, **SIZES, max_length=length, dropout=0.0, attention_dropout=0.0)
    rng = np.random.default_rng(1)
    params = {
        name: array + rng.normal(0, 0.05, array.shape).astype(np.float32)
        for name, array in init_params(config, 0).items()
    }
    head = rng.normal(0, 0.1, (SIZES["d_model"], CLASSES)).astype(np.float32)
    return Encoder(config, params), head


def our_step(batch=BATCH, length=LENGTH):
    """A function that takes one step and returns the loss and {name: gradient}."""
    from solutions.encoder import linear, linear_backward
    from solutions.training import cross_entropy

    encoder, head = our_model(length)
    bias = np.zeros(CLASSES, np.float32)
    ids, labels = inputs(batch, length)

    def step():
        hidden, cache = encoder.forward(ids, keep=True)
        cls = hidden[:, 0]
        loss, grad = cross_entropy(linear(cls, head, bias), labels)
        grad_cls, grad_head, _ = linear_backward(grad, cls, head)
        grad_hidden = np.zeros_like(hidden)
        grad_hidden[:, 0] = grad_cls
        return loss, {**encoder.backward(grad_hidden, cache), "head": grad_head}

    return step, f"NumPy {np.__version__}"


# --- PyTorch --------------------------------------------------------------------------------------

ENCODER_LAYER = {  # our name: (PyTorch's, whether it stores the transpose)
    "attention.qkv.weight": ("self_attn.in_proj_weight", True),
    "attention.qkv.bias": ("self_attn.in_proj_bias", False),
    "attention.output.weight": ("self_attn.out_proj.weight", True),
    "attention.output.bias": ("self_attn.out_proj.bias", False),
    "attention.norm.gamma": ("norm1.weight", False),
    "attention.norm.beta": ("norm1.bias", False),
    "feed_forward.inner.weight": ("linear1.weight", True),
    "feed_forward.inner.bias": ("linear1.bias", False),
    "feed_forward.output.weight": ("linear2.weight", True),
    "feed_forward.output.bias": ("linear2.bias", False),
    "feed_forward.norm.gamma": ("norm2.weight", False),
    "feed_forward.norm.beta": ("norm2.bias", False),
}


def torch_step(threads, parameters):
    import torch
    from torch import nn

    torch.set_num_threads(threads)
    d_model = SIZES["d_model"]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Embedding(VOCAB, d_model)
            self.position = nn.Embedding(LENGTH, d_model)
            self.segment = nn.Embedding(2, d_model)
            self.norm = nn.LayerNorm(d_model, eps=1e-12)
            layer = nn.TransformerEncoderLayer(
                d_model,
                SIZES["num_heads"],
                SIZES["d_ff"],
                dropout=0.0,
                activation="gelu",
                layer_norm_eps=1e-12,
                batch_first=True,
            )
            self.encoder = nn.TransformerEncoder(
                layer, SIZES["num_layers"], enable_nested_tensor=False
            )
            self.head = nn.Linear(d_model, CLASSES)

        def forward(self, ids):
            places = torch.arange(ids.shape[1])
            x = self.token(ids) + self.position(places) + self.segment(torch.zeros_like(ids))
            return self.head(self.encoder(self.norm(x))[:, 0])

    names = {
        "embeddings.token": ("token.weight", False),
        "embeddings.position": ("position.weight", False),
        "embeddings.segment": ("segment.weight", False),
        "embeddings.norm.gamma": ("norm.weight", False),
        "embeddings.norm.beta": ("norm.bias", False),
        "head": ("head.weight", True),
    }
    for i in range(SIZES["num_layers"]):
        for ours, (theirs, swapped) in ENCODER_LAYER.items():
            names[f"layers.{i}.{ours}"] = (f"encoder.layers.{i}.{theirs}", swapped)

    model = Model().train()
    tensors = dict(model.named_parameters())
    with torch.no_grad():
        model.head.bias.zero_()
        for ours, (theirs, swapped) in names.items():
            value = torch.from_numpy(parameters[ours])
            tensors[theirs].copy_(value.T if swapped else value)
    ids, labels = (torch.from_numpy(array) for array in inputs())

    def step():
        for tensor in tensors.values():
            tensor.grad = None
        loss = nn.functional.cross_entropy(model(ids), labels)
        loss.backward()
        return loss, tensors

    def first():
        loss, _ = step()
        grads = {}
        for ours, (theirs, swapped) in names.items():
            grad = tensors[theirs].grad.numpy()
            grads[ours] = grad.T if swapped else grad
        return float(loss.detach()), grads

    return step, first, f"PyTorch {torch.__version__}"


# --- A process that takes steps when told ---------------------------------------------------------


def serve(side, threads, folder):
    """Write what one step gives to the folder; then, for each line with a number, time steps."""
    if side == "ours":
        step, version = our_step()
        loss, grads = step()
        encoder, head = our_model()
        np.savez(folder / "parameters.npz", head=head, **encoder.params)
    else:
        with np.load(folder / "parameters.npz") as file:
            step, first, version = torch_step(threads, dict(file))
        loss, grads = first()
    np.savez(folder / f"{side}.npz", loss=loss, **grads)
    print(f"{version}, Python {platform.python_version()}", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        print(json.dumps(times), flush=True)


def command(python, side, threads, folder="."):
    """What starts this file as a process that serves one side, and its environment."""
    environment = {name: v for name, v in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = str(threads)
    environment["PYTHONPATH"] = str(REPOSITORY)
    words = [python, HERE, "--serve", side, "--threads", str(threads), "--folder", folder]
    return {"args": words, "env": environment}


def start(python, side, threads, folder):
    process = subprocess.Popen(
        **command(python, side, threads, folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    version = process.stdout.readline().strip()
    if not version:
        raise SystemExit(f"the process of {side} ended; is everything of requirements.txt there?")
    return process, version


def ask(process, steps):
    print(steps, file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


def compare(folder):
    """Largest difference of loss and gradients, relative to the largest gradient of each array."""
    with np.load(folder / "ours.npz") as ours, np.load(folder / "torch.npz") as theirs:
        worst = abs(float(ours["loss"]) - float(theirs["loss"]))
        for name in theirs.files:
            scale = np.abs(theirs[name]).max() + 1e-7
            worst = max(worst, float(np.abs(ours[name] - theirs[name]).max() / scale))
    if not worst < 1e-3:
        raise SystemExit(f"the two models are not the same: they differ by {worst:.1e}")
    return worst


def race(arguments):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, our_version = start(sys.executable, "ours", arguments.threads, folder)
        theirs, their_version = start(arguments.torch_python, "torch", arguments.threads, folder)
        print(f"ours:    {our_version}\nPyTorch: {their_version}")
        print(f"threads: {arguments.threads}, of {os.cpu_count()} processors")
        print(f"loss and gradients agree to {compare(folder):.0e}")
        times = {ours: [], theirs: []}
        for turn in range(arguments.turns + 1):
            for process in (ours, theirs) if turn % 2 else (theirs, ours):
                found = ask(process, arguments.steps)
                if turn:  # the first turn warms up
                    times[process].append(statistics.median(found))
        for process in times:
            process.stdin.close()
            process.wait()
    return times[ours], times[theirs]


# --- Growth ---------------------------------------------------------------------------------------


def growth():
    """Time and peak memory of our step, by length and by batch."""
    import tracemalloc

    print("\n   batch  length   ms a step   peak MB", flush=True)
    for batch, length in [(32, 24), (32, 48), (32, 96), (32, 192), (32, 384), (8, 24), (128, 24)]:
        step, _ = our_step(batch, length)
        step()
        times = []
        for _ in range(max(3, 20000 // (batch * length))):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
        tracemalloc.start()
        step()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(
            f"{batch:8} {length:7} {1e3 * statistics.median(times):11.2f} {peak / 1e6:9.1f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--torch-python", default=sys.executable, help="an interpreter with torch")
    try:
        processors = len(os.sched_getaffinity(0))
    except AttributeError:
        processors = os.cpu_count() or 1
    parser.add_argument("--threads", type=int, default=processors)
    parser.add_argument("--turns", type=int, default=20, help="how often the two take turns")
    parser.add_argument("--steps", type=int, default=50, help="steps a turn")
    parser.add_argument("--no-growth", action="store_true", help="leave out the table of sizes")
    parser.add_argument("--record", action="store_true", help="keep the figures in results.json")
    parser.add_argument("--serve", choices=["ours", "torch", "growth"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve == "growth":
        return growth()
    if arguments.serve:
        return serve(arguments.serve, arguments.threads, arguments.folder)

    ours, theirs = race(arguments)
    if not arguments.no_growth:
        subprocess.run(**command(sys.executable, "growth", arguments.threads), check=True)
    ratios = sorted(one / other for one, other in zip(ours, theirs))
    print(
        f"\nmedian step: ours {1e3 * statistics.median(ours):.2f} ms, "
        f"PyTorch {1e3 * statistics.median(theirs):.2f} ms; "
        f"ratio turn by turn {ratios[0]:.2f} to {ratios[-1]:.2f}"
    )
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"ratio {ratio:.2f}")
    if arguments.record:
        from results import record

        milliseconds = [round(1e3 * statistics.median(side), 2) for side in (ours, theirs)]
        record("training_step", {"ratio": round(ratio, 2), "ms": milliseconds})


if __name__ == "__main__":
    main()
