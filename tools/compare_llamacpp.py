#!/usr/bin/env python3
"""Times qpn8 and llama.cpp side by side on one checkpoint.

The checkpoint (model_type qwen2 or qwen3) is exported to GGUF as F16 and as Q8_0; then llama.cpp with F16, qpn8 on both
routes and llama.cpp with Q8_0 take turns, all in one run, since a shared machine is not the same from one minute to the
next: a prompt of the same length, then greedy steps (8 of qpn8's). Each is timed warm: its weights are loaded and a pass was
made. Medians and their ratios are printed; the exit status is 1 if a ratio misses its bar.

Needs numpy, gguf and llama-cpp-python from PyPI. llama.cpp must be built for this machine, or the comparison is not fair:

    python3 -m venv venv
    CMAKE_ARGS="-DGGML_NATIVE=ON" venv/bin/pip install --no-binary llama-cpp-python numpy gguf llama-cpp-python
    venv/bin/python tools/compare_llamacpp.py --model DIR

The instruction sets that its build uses are printed first (AVX512 = 1 on a machine that has it).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from export_gguf import export_gguf


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=pathlib.Path, metavar="DIR", help="a Hugging Face folder")
    parser.add_argument("--qpn8", default="build/release/qpn8", metavar="FILE", help="the program [%(default)s]")
    parser.add_argument("--gguf-dir", type=pathlib.Path, metavar="DIR",
                        help="where the GGUF files are kept and found again [a temporary folder]")
    parser.add_argument("--prompt", type=int, default=256, metavar="N", help="tokens of the prompt [%(default)s]")
    parser.add_argument("--tokens", type=int, default=33, metavar="N", help="tokens of output [%(default)s]")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="counted rounds, after one warm-up [%(default)s]")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="[one a processor]")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    return parser.parse_args()


class LlamaCpp:
    """One GGUF file in this process."""

    def __init__(self, name, path, threads, room, llama_cpp, numpy):
        self.name = name
        self.library, self.numpy = llama_cpp, numpy
        self.llama = llama_cpp.Llama(model_path=str(path), n_ctx=room, n_batch=512, n_ubatch=512, n_threads=threads,
                                     n_threads_batch=threads, verbose=False)

    def step(self, tokens):
        self.llama.eval(tokens)
        logits = self.library.llama_get_logits_ith(self.llama.ctx, -1)
        return int(self.numpy.ctypeslib.as_array(logits, shape=(self.llama.n_vocab(),)).argmax())

    def run(self, prompt, tokens):
        self.llama.reset()
        start = time.perf_counter()
        output = [self.step(prompt)]
        first = time.perf_counter()
        while len(output) < tokens:
            output.append(self.step([output[-1]]))
        last = time.perf_counter()
        self.output = output
        return {self.name: {"prefill": len(prompt) / (first - start), "decode": (tokens - 1) / (last - first)}}


class Qpn8:
    """Both routes of qpn8, one `qpn8 bench` a run: like llama.cpp here, it is timed once it has loaded and warmed up."""

    def __init__(self, binary, folder, threads):
        self.command = [binary, "bench", "--model", str(folder), "--threads", str(threads), "--parts", "decode,prefill",
                        "--repeats", "1", "--json", "--log-level", "error"]

    def run(self, prompt, tokens):
        # Decode samples of 8 steps from the context that the prompt leaves.
        command = self.command + ["--prefill", str(len(prompt)), "--contexts", str(len(prompt))]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        figures = {"dense": {}, "qpn8": {}}
        for part in ("prefill", "decode"):
            for row in result[part]:
                figures[row["route"]][part] = row["tokens_per_s"]
        return figures


def greedy_ids(binary, folder, threads, prompt, tokens):
    command = [binary, "run", "--model", str(folder), "--threads", str(threads), "--qpn8", "off", "--json", "--ignore-eos",
               "--log-level", "error", "--prompt-ids", ",".join(map(str, prompt)), "--max-tokens", str(tokens)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["output_ids"]


BARS = [
    ("decode", "qpn8", "llama.cpp Q8_0", 2.0),
    ("decode", "dense", "llama.cpp F16", 1.5),
    ("prefill", "qpn8", "llama.cpp F16", 1.5),
    ("prefill", "dense", "llama.cpp F16", 1.5),
]


def measure(engines, prompt, arguments):
    runs = {}
    for round_index in range(arguments.rounds + 1):
        for engine in engines:
            if sys.stderr.isatty():
                print(f"\r\033[Kround {round_index} of {arguments.rounds}", end="", file=sys.stderr)
            figures = engine.run(prompt, arguments.tokens)
            if round_index > 0:
                for name, figure in figures.items():
                    runs.setdefault(name, []).append(figure)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return runs


def ratios_of(runs):
    rows = []
    for figure, ours, theirs, limit in BARS:
        pairs = zip(runs[ours], runs[theirs])
        seen = statistics.median(a[figure] / b[figure] for a, b in pairs)
        rows.append({"what": f"{figure}: {ours} over {theirs}", "seen": seen, "at_least": limit, "holds": seen >= limit})
    return rows


def same_prefix(a, b):
    count = 0
    for x, y in zip(a, b):
        if x != y:
            break
        count += 1
    return count


def report(runs, ratios, agreement, arguments):
    medians = {name: {figure: statistics.median(run[figure] for run in of) for figure in ("prefill", "decode")}
               for name, of in runs.items()}
    if arguments.json:
        print(json.dumps({"prompt_tokens": arguments.prompt, "output_tokens": arguments.tokens,
                          "rounds": arguments.rounds, "tokens_per_s": medians, "ratios": ratios,
                          "agreement": agreement}, indent=2))
        return
    print(f"{'':16}  prefill tok/s  decode tok/s   (prompt {arguments.prompt}, output {arguments.tokens}, "
          f"median of {arguments.rounds})")
    for name, figures in medians.items():
        print(f"{name:16}  {figures['prefill']:13.1f}  {figures['decode']:12.1f}")
    for row in ratios:
        print(f"{row['what']:36}  {row['seen']:.2f}  (bar {row['at_least']:.2f})  {'yes' if row['holds'] else 'NO'}")
    print(f"the dense route and llama.cpp F16 agree on the first {agreement} of {arguments.tokens} greedy tokens")


def main():
    arguments = parse_arguments()
    try:
        import gguf
        import llama_cpp
        import numpy
    except ImportError as error:
        raise SystemExit(f"{error}; see --help for what to install")

    print(llama_cpp.llama_print_system_info().decode(), file=sys.stderr)
    room = arguments.prompt + arguments.tokens + 1
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.gguf_dir or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        files = {"F16": folder / "model-f16.gguf", "Q8_0": folder / "model-q8_0.gguf"}
        for kind, path in files.items():
            if not path.exists():
                export_gguf(arguments.model, path, kind == "Q8_0", gguf, numpy)
        f16 = LlamaCpp("llama.cpp F16", files["F16"], arguments.threads, room, llama_cpp, numpy)
        q8_0 = LlamaCpp("llama.cpp Q8_0", files["Q8_0"], arguments.threads, room, llama_cpp, numpy)
        ours = Qpn8(arguments.qpn8, arguments.model, arguments.threads)
        prompt = [1000 + 37 * i % 20000 for i in range(arguments.prompt)]
        runs = measure([f16, ours, q8_0], prompt, arguments)
        ids = greedy_ids(arguments.qpn8, arguments.model, arguments.threads, prompt, arguments.tokens)
    ratios = ratios_of(runs)
    agreement = same_prefix(ids, f16.output)
    report(runs, ratios, agreement, arguments)
    sys.exit(0 if all(row["holds"] for row in ratios) else 1)


if __name__ == "__main__":
    main()
