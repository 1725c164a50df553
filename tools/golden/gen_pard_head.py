"""Makes tests/golden/pard_head/: a tiny random PARD draft model and what it drafts, by Hugging Face transformers.

    python3 tools/golden/gen_pard_head.py

PARD (arXiv 2504.18583) publishes ordinary language models whose config.json has `pard_token`; its own loop runs their
class of transformers over the text and K - 1 masks and takes the likeliest token of each of the last K rows. Needs
torch, transformers and safetensors. tests/golden/pard_head/README.md describes the output.
"""

import json

import torch
import transformers

from gen_heads import ROOT, SMALL

OUT = ROOT / "tests" / "golden" / "pard_head"
SEED, STEPS, FIRST, MASK, DRAFTS = 20261130, 64, 3, 255, 5
MIN_GAP = 2e-3


def random_model(generator):
    settings = transformers.LlamaConfig(**{**SMALL, "num_hidden_layers": 2, "bos_token_id": None, "eos_token_id": None})
    model = transformers.LlamaForCausalLM(settings).eval()
    with torch.no_grad():
        for weight in model.parameters():
            noise = torch.randn(weight.shape, generator=generator)
            value = 1 + 0.3 * noise if weight.dim() == 1 else 1.6 * noise / weight.shape[1] ** 0.5
            weight.copy_(value.to(torch.bfloat16))
    return model


def drafts_behind(model, ids):
    with torch.no_grad():
        rows = model(torch.tensor([ids + [MASK] * (DRAFTS - 1)])).logits[0, -DRAFTS:]
    best = rows.topk(2)
    return best.indices[:, 0].tolist(), (best.values[:, 0] - best.values[:, 1]).min().item()


def main():
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(SEED)
    ids = torch.randint(2, 250, (FIRST + STEPS,), generator=generator).tolist()
    while True:
        model = random_model(generator)
        cases = [drafts_behind(model, ids[:length]) for length in range(FIRST, FIRST + STEPS)]
        gap = min(gap for _, gap in cases)
        different = len({token for drafts, _ in cases for token in drafts})
        if gap > MIN_GAP and different >= 30:
            break
    print("smallest gap", gap, "different drafts", different)
    folder = OUT / "pard"
    model.to(torch.bfloat16).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "pard_token": MASK}, indent=1) + "\n")
    (OUT / "golden.json").write_text(json.dumps(
        {"target": "architectures/llama", "torch": torch.__version__, "transformers": transformers.__version__,
         "seed": SEED, "ids": ids, "first": FIRST, "gap": gap, "drafts": [drafts for drafts, _ in cases]},
        separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
