"""The frozen model that heads are trained for: a Llama of this folder's making, or any causal model of transformers.

Both give `config`, `embed_tokens(ids)`, `states(ids, taps)`, `logits(states)`, `output_weight()`, `layers` (what may be
compiled) and `write(prompts, ...)`.
"""

import json

import torch

import generate
import llama


class OwnTarget(llama.Llama):
    """A model that llama.py computes whole: tied embeddings, plain rotary embedding, no biases."""

    def output_weight(self):
        return self.embed_tokens.weight

    def write(self, prompts, length, device, temperatures, seed):
        """What follows each prompt (lists of ids), up to `length` tokens of both together."""
        return generate.generate(self, prompts, length, device, temperatures, seed, length)


class TransformersTarget:
    """Any model that transformers.AutoModelForCausalLM opens and that has a Llama's sizes in its config."""

    layers = ()

    def __init__(self, folder, device, dtype):
        import transformers  # not needed for models made here
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device).eval()
        self.model.requires_grad_(False)
        values = self.model.config.get_text_config().to_dict()
        rope = values.get("rope_parameters") or {}
        values.setdefault("rope_theta", rope.get("rope_theta"))
        values["head_dim"] = values.get("head_dim") or values["hidden_size"] // values["num_attention_heads"]
        values["num_key_value_heads"] = values.get("num_key_value_heads") or values["num_attention_heads"]
        self.config = llama.Config.from_values({name: value for name, value in values.items() if value is not None})
        self.embed_tokens = self.model.get_input_embeddings()
        if getattr(self.model.config.get_text_config(), "final_logit_softcapping", None):
            raise SystemExit(f"{folder}: heads for models that cap their logits cannot be trained here")

    def states(self, ids, taps=()):
        out = self.model.base_model(ids, output_hidden_states=True, use_cache=False)
        return out.last_hidden_state, [out.hidden_states[tap] for tap in taps]

    def logits(self, states):
        return self.model.get_output_embeddings()(states)

    def output_weight(self):
        return self.model.get_output_embeddings().weight

    @torch.no_grad()
    def write(self, prompts, length, device, temperatures, seed):
        torch.manual_seed(seed)
        outputs = [None] * len(prompts)
        for heat in sorted(set(temperatures)):
            rows = [row for row, own in enumerate(temperatures) if own == heat]
            for row, output in zip(rows, self.write_at(heat, [prompts[row] for row in rows], length, device)):
                outputs[row] = output
        return outputs

    def write_at(self, heat, prompts, length, device):
        """One batch at one temperature, padded on the left."""
        widest, fill = max(map(len, prompts)), self.fill_token()
        ids = torch.tensor([[fill] * (widest - len(prompt)) + prompt for prompt in prompts], device=device)
        mask = torch.tensor([[0] * (widest - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device)
        choice = {"do_sample": True, "temperature": heat, "top_k": 0, "top_p": 1.0} if heat else {"do_sample": False}
        made = self.model.generate(ids, attention_mask=mask, max_new_tokens=max(1, length - widest), pad_token_id=fill,
                                   **choice)
        return [self.cut(row, length - len(prompt)) for row, prompt in zip(made[:, widest:].tolist(), prompts)]

    def ends(self):
        ends = self.model.generation_config.eos_token_id
        return set(ends if isinstance(ends, list) else [ends])

    def fill_token(self):
        return next((token for token in sorted(self.ends(), key=str) if token is not None), 0)

    def cut(self, ids, limit):
        ends, ids = self.ends(), ids[:max(0, limit)]
        first = next((index for index, token in enumerate(ids) if token in ends), len(ids))
        return ids[:first + 1]


def is_own(folder):
    """Whether llama.py computes this model whole."""
    values = json.loads((folder / "config.json").read_text())
    return (values.get("architectures") == ["LlamaForCausalLM"] and values.get("tie_word_embeddings", False)
            and not values.get("rope_scaling") and not values.get("rope_parameters") and "head_dim" in values
            and not values.get("attention_bias") and not values.get("mlp_bias")
            and (folder / "model.safetensors").exists())


def load_target(folder, device, dtype):
    if not is_own(folder):
        return TransformersTarget(folder, device, dtype)
    return llama.load(folder, device, dtype, OwnTarget).requires_grad_(False)
