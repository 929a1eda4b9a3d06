#!/usr/bin/env python3
"""Times qpn8 and llama.cpp side by side on one checkpoint.

The checkpoint (model_type qwen2 or qwen3) is exported to GGUF as F16 and as Q8_0; then the four candidates (qpn8 on the
dense and on the QPN8 route, llama.cpp with F16 and with Q8_0) run the same prompt and the same number of greedy steps in
turn, all in one run, since a shared machine is not the same from one minute to the next. Medians and their ratios are
printed; the exit status is 1 if a ratio misses its bar.

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
import struct
import subprocess
import sys
import tempfile
import time


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


class Checkpoint:
    """The tensors of a safetensors folder, read when they are asked for."""

    def __init__(self, folder, numpy):
        self.numpy = numpy
        self.entries = {}
        for path in sorted(folder.glob("*.safetensors")):
            with open(path, "rb") as file:
                length = struct.unpack("<Q", file.read(8))[0]
                header = json.loads(file.read(length))
            for name, entry in header.items():
                if name != "__metadata__":
                    self.entries[name] = (path, 8 + length, entry)

    def floats(self, name):
        path, data, entry = self.entries[name]
        begin, end = entry["data_offsets"]
        with open(path, "rb") as file:
            file.seek(data + begin)
            raw = file.read(end - begin)
        numpy = self.numpy
        if entry["dtype"] == "BF16":
            values = (numpy.frombuffer(raw, numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
        elif entry["dtype"] == "F16":
            values = numpy.frombuffer(raw, numpy.float16).astype(numpy.float32)
        elif entry["dtype"] == "F32":
            values = numpy.frombuffer(raw, numpy.float32)
        else:
            raise SystemExit(f"{path}: tensor {name}: dtype {entry['dtype']}, expected F32, F16 or BF16")
        return values.reshape(entry["shape"])


LAYER_TENSORS = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.q_proj.bias": "attn_q.bias",
    "self_attn.k_proj.bias": "attn_k.bias",
    "self_attn.v_proj.bias": "attn_v.bias",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}

TOP_TENSORS = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def gguf_name(name):
    if name in TOP_TENSORS:
        return TOP_TENSORS[name]
    layer, _, rest = name.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{LAYER_TENSORS[rest]}"


def add_vocabulary(writer, gguf, folder, size):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = [f"<unused {i}>" for i in range(size)]
    types = [gguf.TokenType.UNUSED] * size
    for text, index in tokenizer["model"]["vocab"].items():
        tokens[index], types[index] = text, gguf.TokenType.NORMAL
    for token in tokenizer.get("added_tokens", []):
        tokens[token["id"]], types[token["id"]] = token["content"], gguf.TokenType.CONTROL
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges or ["a b"])  # the reader insists on one; prompts are ids, so it never applies


def export_gguf(folder, path, quantised, gguf, numpy):
    config = json.loads((folder / "config.json").read_text())
    arch = config["model_type"]
    if arch not in ("qwen2", "qwen3"):
        raise SystemExit(f"{folder / 'config.json'}: model_type {arch}, expected qwen2 or qwen3")
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    rope = config.get("rope_parameters") or config
    partial = path.with_suffix(".partial")
    writer = gguf.GGUFWriter(partial, arch)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads") or heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_freq_base(rope.get("rope_theta", 10000.0))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0 if quantised else gguf.LlamaFileType.MOSTLY_F16)
    add_vocabulary(writer, gguf, folder, config["vocab_size"])

    checkpoint = Checkpoint(folder, numpy)
    q8 = gguf.GGMLQuantizationType.Q8_0
    for name in checkpoint.entries:
        values = checkpoint.floats(name)
        if values.ndim == 1:
            writer.add_tensor(gguf_name(name), values)
        elif quantised:
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(values, q8), raw_dtype=q8)
        else:
            writer.add_tensor(gguf_name(name), values.astype(numpy.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(path)


class LlamaCpp:
    """One GGUF file in this process."""

    def __init__(self, path, threads, room, llama_cpp):
        self.llama = llama_cpp.Llama(model_path=str(path), n_ctx=room, n_batch=512, n_ubatch=512, n_threads=threads,
                                     n_threads_batch=threads, verbose=False)

    def step(self, tokens):
        self.llama.eval(tokens)
        row = self.llama.scores[self.llama.n_tokens - 1] if self.llama.scores.shape[0] > 1 else self.llama.scores[0]
        return int(row.argmax())

    def run(self, prompt, tokens):
        self.llama.reset()
        start = time.perf_counter()
        output = [self.step(prompt)]
        first = time.perf_counter()
        while len(output) < tokens:
            output.append(self.step([output[-1]]))
        last = time.perf_counter()
        return {"prefill": len(prompt) / (first - start), "decode": (tokens - 1) / (last - first), "output": output}


class Qpn8:
    """One route of qpn8, a process a run: what it prints is measured after loading."""

    def __init__(self, binary, folder, threads, route, room):
        self.command = [binary, "run", "--model", str(folder), "--threads", str(threads), "--qpn8", route, "--json",
                        "--ignore-eos", "--log-level", "error", "--engine-arg", f"max_model_len={room}"]

    def run(self, prompt, tokens):
        ids = ",".join(map(str, prompt))
        result = subprocess.run(self.command + ["--prompt-ids", ids, "--max-tokens", str(tokens)], check=True,
                                capture_output=True, text=True)
        line = json.loads(result.stdout)
        return {"prefill": len(prompt) / (line["ttft_ms"] / 1e3), "decode": line["decode_tokens_per_s"],
                "output": line["output_ids"]}


BARS = [
    ("decode", "qpn8", "llama.cpp Q8_0", 2.0),
    ("decode", "dense", "llama.cpp F16", 1.5),
    ("prefill", "qpn8", "llama.cpp F16", 1.5),
    ("prefill", "dense", "llama.cpp F16", 1.5),
]


def measure(candidates, prompt, arguments):
    runs = {name: [] for name in candidates}
    for round_index in range(arguments.rounds + 1):
        for name, candidate in candidates.items():
            if sys.stderr.isatty():
                print(f"\r\033[Kround {round_index} of {arguments.rounds}: {name}", end="", file=sys.stderr)
            run = candidate.run(prompt, arguments.tokens)
            if round_index > 0:
                runs[name].append(run)
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
        candidates = {
            "dense": Qpn8(arguments.qpn8, arguments.model, arguments.threads, "off", room),
            "llama.cpp F16": LlamaCpp(files["F16"], arguments.threads, room, llama_cpp),
            "qpn8": Qpn8(arguments.qpn8, arguments.model, arguments.threads, "auto", room),
            "llama.cpp Q8_0": LlamaCpp(files["Q8_0"], arguments.threads, room, llama_cpp),
        }
        prompt = [1000 + 37 * i % 20000 for i in range(arguments.prompt)]
        runs = measure(candidates, prompt, arguments)
    ratios = ratios_of(runs)
    agreement = same_prefix(runs["dense"][-1]["output"], runs["llama.cpp F16"][-1]["output"])
    report(runs, ratios, agreement, arguments)
    sys.exit(0 if all(row["holds"] for row in ratios) else 1)


if __name__ == "__main__":
    main()
