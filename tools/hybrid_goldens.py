#!/usr/bin/env python3
"""Makes the tiny checkpoints of the relatives of qwen4_exp in tests/data, with the logits and the tokens that transformers
computes of them in float32 on the stored float16 weights. Needs torch, transformers (5.17 or later) and safetensors from
PyPI; the repository's tests need none of them.

    python3 tools/hybrid_goldens.py tests/data
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import (
    Qwen3_5ForCausalLM,
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeTextConfig,
    Qwen3_5TextConfig,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)

VOCABULARY = 128
NEW_TOKENS = 24
PROMPTS = (1, 9, 70)  # the last crosses a chunk of 64

COMMON = dict(
    vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
    head_dim=32, linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=16, linear_value_head_dim=24,
    linear_conv_kernel_dim=4, max_position_embeddings=512, eos_token_id=5, tie_word_embeddings=False,
    rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
)
EXPERTS = dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32, shared_expert_intermediate_size=48)

MODELS = {
    "tiny-qwen3-next": (Qwen3NextForCausalLM, Qwen3NextConfig,
                        dict(intermediate_size=80, mlp_only_layers=[1], norm_topk_prob=False, **EXPERTS)),
    "tiny-qwen3-5": (Qwen3_5ForCausalLM, Qwen3_5TextConfig, dict(intermediate_size=80)),
    "tiny-qwen3-5-moe": (Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig, dict(**EXPERTS)),
}


def randomise(model):
    """Every parameter random: what a fresh model has zero or one would hide a fault."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            values = torch.randn(parameter.shape, generator=generator)
            deviation = 0.2 if parameter.dim() == 1 else 1.0 / parameter.shape[-1] ** 0.5
            mean = 1.0 if name.endswith("linear_attn.norm.weight") else 0.0
            parameter.copy_((mean + deviation * values).half().float())


def goldens(model):
    generator = torch.Generator().manual_seed(11)
    tensors = {}
    for index, length in enumerate(PROMPTS):
        prompt = torch.randint(0, VOCABULARY, (length,), generator=generator)
        with torch.no_grad():
            tensors[f"prompt_{index}"] = prompt
            tensors[f"logits_{index}"] = model(prompt[None]).logits[0].float().contiguous()
            tokens = prompt[None]
            for _ in range(NEW_TOKENS):
                tokens = torch.cat([tokens, model(tokens).logits[:, -1:].argmax(-1)], dim=1)
            tensors[f"greedy_{index}"] = tokens[0, length:].contiguous()
    return tensors


def main():
    target = Path(sys.argv[1])
    for name, (model_class, config_class, own) in MODELS.items():
        config = config_class(**COMMON, **own, layer_types=["linear_attention"] * 3 + ["full_attention"])
        config._attn_implementation = "eager"
        model = model_class(config).eval().float()
        randomise(model)
        folder = target / name
        folder.mkdir(exist_ok=True)
        save_file(goldens(model), folder / "golden.safetensors")
        model.half().save_pretrained(folder)
        print(f"{name}: {sum(file.stat().st_size for file in folder.iterdir())} bytes")


if __name__ == "__main__":
    main()
