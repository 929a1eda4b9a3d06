#!/usr/bin/env python3
"""Exports a Hugging Face checkpoint (model_type qwen2 or qwen3) to GGUF, so that llama.cpp can run or serve it.

Weights are stored as F16 or, with --q8-0, as Q8_0; the vocabulary, the end-of-text token and the chat template go along.
Needs numpy and gguf from PyPI.

    python3 tools/export_gguf.py --model models/wordmath-3m --out wordmath-3m-f16.gguf
"""

import argparse
import json
import pathlib
import struct


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
    writer.add_token_merges(merges or ["a b"])  # the reader insists on one


def add_chat(writer, folder):
    """What a server needs to hold a conversation; a prompt of ids needs none of it."""
    config = json.loads((folder / "config.json").read_text())
    tokenizer_file = folder / "tokenizer_config.json"
    tokenizer = json.loads(tokenizer_file.read_text()) if tokenizer_file.exists() else {}
    template_file = folder / "chat_template.jinja"
    template = template_file.read_text() if template_file.exists() else tokenizer.get("chat_template")
    if isinstance(template, str):
        writer.add_chat_template(template)
    if config.get("bos_token_id") is not None:
        writer.add_bos_token_id(config["bos_token_id"])
    end = config.get("eos_token_id")
    end = end[0] if isinstance(end, list) else end
    if end is not None:
        writer.add_eos_token_id(end)
    writer.add_add_bos_token(False)


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
    add_chat(writer, folder)

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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=pathlib.Path, metavar="DIR", help="a Hugging Face folder")
    parser.add_argument("--out", required=True, type=pathlib.Path, metavar="FILE", help="the GGUF file to write")
    parser.add_argument("--q8-0", action="store_true", help="8-bit weights instead of F16")
    arguments = parser.parse_args()
    try:
        import gguf
        import numpy
    except ImportError as error:
        raise SystemExit(f"{error}; see --help for what to install")
    export_gguf(arguments.model, arguments.out, arguments.q8_0, gguf, numpy)


if __name__ == "__main__":
    main()
