"""Makes tests/golden/heads/{mimo_v2,longcat_flash}: tiny random MTP modules of targets in tests/golden/architectures.

heads/mimo_v2-following has modules for MiMo that follow the first golden text, so that their drafts are accepted.
That of ernie4_5_moe goes into the files of its target, as it reads its last norm: run this again behind gen_mixtures.py.
So do those of qwen3_next, qwen3_5 and nemotron_h-latent, as published (behind gen_recurrent.py), of hy_v4 and
glm5_next, and of deepseek_v4, which reads all streams that leave the last layer.

    python3 tools/golden/gen_mtp_modules.py
    python3 tools/golden/gen_mtp_modules.py --only mimo_v2

Attention, MLP and norms are those of Hugging Face transformers, which has no class for the modules; what stands around
them is written here. Needs torch, transformers and safetensors. tests/golden/heads/README.md describes the output.
"""

import argparse
import copy
import json
import pathlib
import tempfile
import types

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.models.deepseek_v4 import modeling_deepseek_v4 as deepseek_v4
from transformers.models.ernie4_5_moe import modeling_ernie4_5_moe as ernie
from transformers.models.longcat_flash import modeling_longcat_flash as longcat
from transformers.models.mimo_v2_flash import modeling_mimo_v2_flash as mimo
from transformers.models.nemotron_h import modeling_nemotron_h as nemotron
from transformers.models.qwen3_5 import modeling_qwen3_5 as qwen3_5
from transformers.models.qwen3_next import modeling_qwen3_next as qwen3_next

import gen_mixtures
from published import names as published_names
from gen_golden import GOLDEN, SEED, write_json
from modules.streams import Glm5NextModule, HyV4Module, Module

TOKENS, DRAFTS, PREFIXES = 18, 3, (2, 3, 5, 9, 14, 18)
DRAFT_GAP = 0.02
ROUNDING = 2.5e-2  # of a row's norm: what roundings to bf16 may do to LongCat's states and logits
WINDOW = 7  # of MiMo's modules: positions that an entry sees, less than the target's, so that the short text shows it


def target_of(name):
    """The golden model with its stored weights, and its config.json."""
    folder = GOLDEN / "architectures" / name
    config = json.loads((folder / "config.json").read_text())
    parsed, architecture = gen_mixtures.parsed_config(name, config)
    model = getattr(transformers, architecture).from_pretrained(folder, config=parsed, dtype=torch.float32,
                                                                attn_implementation="eager")
    if hasattr(model.model, "language_model"):
        body, head = model.model.language_model.eval(), model.lm_head
        model = types.SimpleNamespace(config=model.config.text_config, model=body, lm_head=head,
                                      modules=lambda: (*body.modules(), *head.modules()))
        return model, config["text_config"]
    return model.eval(), config


class MimoModule(Module):
    together = {}
    own = {"enorm": "enorm", "hnorm": "hnorm", "projection": "eh_proj", "before": "input_layernorm",
           "between": "pre_mlp_layernorm", "last": "final_layernorm", "attention.sinks": "self_attn.attention_sink_bias",
           "attention": "self_attn", "mlp": "mlp"}

    def __init__(self, model):
        config = model.config
        super().__init__(config, mimo.MiMoV2FlashRMSNorm)
        self.rope = model.model.rotary_emb
        self.attention = mimo.MiMoV2FlashAttention(config, config.layer_types.index("sliding_attention"))
        self.mlp = mimo.MiMoV2FlashMLP(config)

    def attend(self, x, positions):
        count = x.shape[1]
        distance = torch.arange(count)[:, None] - torch.arange(count)[None]
        mask = torch.zeros(count, count).masked_fill((distance < 0) | (distance >= WINDOW), float("-inf"))
        return self.attention(x, position_embeddings=self.rope(x, positions, "sliding_attention"),
                              attention_mask=mask[None, None])[0]


class LongcatModule(Module):
    together = {"last": "model.mtp.norm"}
    own = {"enorm": "enorm.m", "hnorm": "hnorm.m", "projection": "eh_proj", "before": "input_layernorm",
           "between": "post_attention_layernorm", "attention": "self_attn", "mlp": "transformer_layer.mlp"}

    def __init__(self, model):
        config = model.config
        super().__init__(config, longcat.LongcatFlashRMSNorm)
        self.rope = model.model.rotary_emb
        self.attention = longcat.LongcatFlashMLA(config, 0)
        self.mlp = longcat.LongcatFlashMLP(config, config.ffn_hidden_size)

    def attend(self, x, positions):
        count = x.shape[1]
        mask = torch.full((count, count), float("-inf")).triu(1)[None, None]
        return self.attention(x, position_embeddings=self.rope(x, positions), attention_mask=mask)[0]


class ErnieModule(Module):
    together = {"last": "model.norm"}
    own = {"enorm": "mtp_emb_norm.0", "hnorm": "mtp_hidden_norm.0", "projection": "mtp_linear_proj.0",
           "before": "mtp_block.0.input_layernorm", "between": "mtp_block.0.post_attention_layernorm",
           "attention": "mtp_block.0.self_attn", "mlp": "mtp_block.0.mlp"}

    def __init__(self, model):
        config = model.config
        super().__init__(config, ernie.Ernie4_5_MoeRMSNorm)
        self.rope = model.model.rotary_emb
        self.attention = ernie.Ernie4_5_MoeAttention(config, 0)
        self.mlp = ernie.Ernie4_5_MoeMLP(config)
        self.last_of_model = model.model.norm.weight.detach()

    def attend(self, x, positions):
        count = x.shape[1]
        mask = torch.full((count, count), float("-inf")).triu(1)[None, None]
        return self.attention(x, position_embeddings=self.rope(x, positions), attention_mask=mask)[0]


class QwenModule(Module):
    """A layer with attention, and around it what lies beside the layers."""

    together = {}
    own = {"enorm": "mtp.pre_fc_norm_embedding", "hnorm": "mtp.pre_fc_norm_hidden", "projection": "mtp.fc",
           "before": "mtp.layers.0.input_layernorm", "between": "mtp.layers.0.post_attention_layernorm",
           "attention": "mtp.layers.0.self_attn", "mlp": "mtp.layers.0.mlp", "last": "mtp.norm"}

    def __init__(self, model):
        config = model.config
        is_next = config.model_type == "qwen3_next"
        code = qwen3_next if is_next else qwen3_5
        super().__init__(config, code.Qwen3NextRMSNorm if is_next else code.Qwen3_5RMSNorm)
        self.rope = model.model.rotary_emb
        self.attention = (code.Qwen3NextAttention if is_next else code.Qwen3_5Attention)(config, 1)
        self.mlp = (code.Qwen3NextSparseMoeBlock(config) if is_next
                    else code.Qwen3_5MLP(config, config.intermediate_size))

    def attend(self, x, positions):
        count = x.shape[1]
        mask = torch.full((count, count), float("-inf")).triu(1)[None, None]
        return self.attention(x, position_embeddings=self.rope(x, positions), attention_mask=mask)[0]


class NemotronModule(Module):
    """Two layers of one part each in the file: attention, then a mixture."""

    together = {}
    own = {"enorm": "mtp.layers.0.enorm", "hnorm": "mtp.layers.0.hnorm", "projection": "mtp.layers.0.eh_proj",
           "before": "mtp.layers.0.norm", "attention": "mtp.layers.0.mixer", "between": "mtp.layers.1.norm",
           "mlp": "mtp.layers.1.mixer", "last": "mtp.layers.1.final_layernorm"}

    def __init__(self, model):
        config = model.config
        super().__init__(config, nemotron.NemotronHRMSNorm)
        self.attention, self.mlp = nemotron.NemotronHAttention(config, 0), nemotron.NemotronHMoE(config)

    def attend(self, x, positions):
        count = x.shape[1]
        return self.attention(x, attention_mask=torch.full((count, count), float("-inf")).triu(1)[None, None])[0]


class DeepseekV4Module(torch.nn.Module):
    """A layer with a window whose rows choose experts, and a way out of the streams. Rows are all streams side by side."""

    together, own = {}, {}

    def __init__(self, model):
        super().__init__()
        config = copy.deepcopy(model.config)
        config.num_hidden_layers = 1
        config.layer_types, config.mlp_layer_types = ["sliding_attention"], ["moe"]
        self.config = config
        self.inner = deepseek_v4.DeepseekV4ForCausalLM(config)
        del self.inner.lm_head, self.inner.model.embed_tokens
        self.enorm, self.hnorm = (deepseek_v4.DeepseekV4RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
                                  for _ in range(2))
        self.e_proj, self.h_proj = (torch.nn.Linear(config.hidden_size, config.hidden_size, bias=False)
                                    for _ in range(2))

    def forward(self, embedded, hidden, positions):
        count, body = len(embedded), self.inner.model
        streams = self.h_proj(self.hnorm(hidden.view(count, self.config.hc_mult, -1)))
        x = (self.e_proj(self.enorm(embedded))[:, None] + streams)[None]
        distance = torch.arange(count)[:, None] - torch.arange(count)[None]
        hides = (distance < 0) | (distance >= self.config.sliding_window)
        mask = torch.zeros(count, count).masked_fill(hides, float("-inf"))[None, None]
        ropes = {kind: body.rotary_emb(embedded[None], position_ids=positions, layer_type=kind)
                 for kind in ("main", "compress")}
        out = body.layers[0](x, position_embeddings=ropes, position_ids=positions, attention_mask=mask)
        return out[0].flatten(1)

    def read(self, out):
        """What the output matrix reads."""
        streams = out.view(1, len(out), self.config.hc_mult, -1)
        return self.inner.model.norm(self.inner.model.hc_head(streams))[0]

    def states(self, model, ids):
        """The streams that leave the model's last layer."""
        seen = []
        hook = model.model.hc_head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        model.model(torch.tensor([ids]))
        hook.remove()
        return seen[0][0].flatten(1)

    def stored(self):
        """The weights under their published names."""
        with tempfile.TemporaryDirectory() as temporary:
            self.inner.save_pretrained(temporary)
            layer = load_file(pathlib.Path(temporary) / "model.safetensors")
        tensors = {"mtp.0." + name.removeprefix("layers.0."): weight
                   for name, weight in published_names.with_deepseek_v4_names(layer).items()}
        for name in ("enorm", "hnorm", "e_proj", "h_proj"):
            tensors[f"mtp.0.{name}.weight"] = getattr(self, name).weight.detach()
        return {name: weight.bfloat16().contiguous() for name, weight in tensors.items()}


class Chain:
    """All modules over one text. Entry i of module m pairs token i with a state and has rotary position i - 1 - m."""

    def __init__(self, model, modules, passes_states):
        self.model, self.modules, self.passes_states = model, modules, passes_states

    def final(self, ids):
        """What the first module pairs with: the model's states after its final norm, or its streams."""
        if isinstance(self.modules[0], DeepseekV4Module):
            return self.modules[0].states(self.model, ids)
        return self.model.model(torch.tensor([ids])).last_hidden_state[0]

    def run(self, module, ids, paired):
        """States and logits of the entries of `ids`, each of which pairs with a row of `paired`."""
        embedded = self.model.model.get_input_embeddings()(torch.tensor(ids))
        out = self.modules[module](embedded, paired, torch.arange(len(ids))[None])
        read = getattr(self.modules[module], "read", lambda rows: rows)
        return out, self.model.lm_head(read(out))

    def catch_up(self, ids):
        """Per module the tokens of its entries, what they pair with, hand on, and their logits; all from true tokens."""
        paired, rows = self.final(ids)[:-1], []
        for module in range(len(self.modules)):
            known = ids[1 + module:]
            out, logits = self.run(module, known, paired) if known else (paired, None)
            passed = paired if self.passes(module) else out
            rows.append((known, paired, passed, logits))
            paired = passed[:-1]
        return rows

    def passes(self, module):
        """Whether the module after it pairs with the same state of the target."""
        return self.passes_states and module + 1 < len(self.modules)

    def drafts(self, ids):
        """Greedy drafts after `ids`, and how far each was from the runner-up."""
        entries = [(known, paired) for known, paired, _, _ in self.catch_up(ids)]
        tokens, gaps, last = [], [], None
        for number in range(DRAFTS):
            module = min(number, len(self.modules) - 1)
            if number > 0:
                known, paired = entries[module]
                entries[module] = [*known, tokens[-1]], torch.cat((paired, last))
            known, paired = entries[module]
            out, logits = self.run(module, known, paired)
            top = logits[-1].topk(2)
            tokens.append(int(top.indices[0]))
            gaps.append(round((top.values[0] - top.values[1]).item(), 5))
            last = (paired if self.passes(module) else out)[-1:]
        return tokens, gaps


LAYOUTS = {"mimo_v2": (MimoModule, 2, True), "longcat_flash": (LongcatModule, 1, False),
           "ernie4_5_moe": (ErnieModule, 1, False), "qwen3_next": (QwenModule, 1, False),
           "qwen3_5": (QwenModule, 1, False), "nemotron_h-latent": (NemotronModule, 1, False),
           "hy_v4": (HyV4Module, 1, False), "glm5_next": (Glm5NextModule, 1, False),
           "deepseek_v4": (DeepseekV4Module, 1, False)}
# Whose modules lie in the files of their target.
INSIDE = ("ernie4_5_moe", "qwen3_next", "qwen3_5", "nemotron_h-latent", "hy_v4", "glm5_next", "deepseek_v4")
# Where a route that roundings turn would show.
ROUTED = {"longcat_flash": ROUNDING, "hy_v4": 1e-2, "glm5_next": 1.6e-2, "deepseek_v4": 1e-2}


def config_of(name, config):
    """As published: MiMo's says nothing of modules, and its rotary embeddings in fields of their own."""
    if name == "longcat_flash":
        return {**config, "num_nextn_predict_layers": 1}
    derived = ("rope_parameters", "layer_types", "mlp_layer_types", "rms_norm_eps")
    full = config["rope_parameters"]["full_attention"]
    return {**{key: value for key, value in config.items() if key not in derived},
            "rope_theta": full["rope_theta"], "sliding_window": WINDOW - 1, "sliding_window_size": WINDOW - 1}


def random_modules(make, count, model, generator):
    """Exact in bf16; wide enough that logits vary by several units."""
    modules = [make(model) for _ in range(count)]
    for module in modules:
        for key, weight in module.named_parameters():
            values = torch.randn(weight.shape, generator=generator)
            if "sinks" not in key and weight.dim() == 1:
                values = torch.rand(weight.shape, generator=generator) + (-0.5 if make is QwenModule else 0.5)
            elif weight.dim() == 3:
                values *= 1.5 * weight.shape[2] ** -0.5
            elif weight.dim() == 2:
                values *= (1.0 if make in (LongcatModule, DeepseekV4Module) else 1.5) * weight.shape[1] ** -0.5
            weight.data = values.bfloat16().float()
        if hasattr(module, "last_of_model"):
            module.last.weight.data = module.last_of_model
    return torch.nn.ModuleList(modules).eval()


def each_expert(name, weight):
    """Matrices of all experts, as published files of Qwen 3 Next and Nemotron 3 have them."""
    base, kind = name.rsplit(".", 1)
    for number, matrix in enumerate(weight):
        parts = {"gate_proj": matrix[:len(matrix) // 2], "up_proj": matrix[len(matrix) // 2:]}
        for part, rows in (parts if kind == "gate_up_proj" else {kind: matrix}).items():
            yield f"{base}.{number}.{part}.weight", rows.bfloat16().contiguous()


def stored(modules):
    """The weights under their published names."""
    if isinstance(modules[0], DeepseekV4Module):
        return modules[0].stored()
    tensors = {}
    for number, module in enumerate(modules):
        for key, weight in module.state_dict().items():
            part, rest = next((part, key[len(part):]) for part in (*module.together, *module.own)
                              if key.startswith(part))
            layer = "model." if "0" in module.own.get(part, "") else f"model.mtp.layers.{number}."
            name = module.together.get(part) or layer + module.own[part]
            if isinstance(module, (QwenModule, NemotronModule, Glm5NextModule)):
                name = module.own[part]
            if weight.dim() == 3:
                tensors.update(each_expert(name + rest, weight))
            else:
                tensors[name + rest] = weight.bfloat16().contiguous()
    return tensors


def draw(chain, ids):
    """The drafts behind all prefixes, or None when one lies close to a tie."""
    drafts = []
    for length in PREFIXES:
        tokens, gaps = chain.drafts(ids[:length])
        if min(gaps) < DRAFT_GAP:
            return None
        drafts.append({"prefix": length, "ids": tokens, "gaps": gaps})
    return drafts if len({token for row in drafts for token in row["ids"]}) > 7 else None


def rounding_error(chain, ids):
    """The largest error of a stored row, over its norm, that some random roundings make."""
    exact, worst = chain.catch_up(ids), 0.0
    with gen_mixtures.Rounded(chain.model), gen_mixtures.Rounded(chain.modules):
        for _ in range(12):
            for row, other in zip(exact, chain.catch_up(ids)):
                for right, wrong in zip(row[2:], other[2:]):
                    worst = max(worst, ((right - wrong).norm(dim=-1) / right.norm(dim=-1)).max().item())
    return worst


def add_to_target(name, module, files, tensors):
    folder = GOLDEN / "architectures" / name
    golden = json.loads((folder / "golden.json").read_text())
    write_json(folder / "golden.json", {**golden, "module": module})
    if name == "nemotron_h-latent":
        config = json.loads((folder / "config.json").read_text())
        config.update({"num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*E"})
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    if name == "glm5_next":
        config = json.loads((folder / "config.json").read_text())
        config["text_config"]["num_nextn_predict_layers"] = 1
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    if name in ("hy_v4", "deepseek_v4"):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "num_nextn_predict_layers": 1}, indent=1) + "\n")
    for file, more in (("model.safetensors", files), ("golden.safetensors", tensors)):
        save_file({**load_file(folder / file), **more}, folder / file, metadata={"format": "pt"})


@torch.no_grad()
def generate(name):
    model, config = target_of(name)
    make, count, passes_states = LAYOUTS[name]
    generator = torch.Generator().manual_seed(SEED)
    torch.manual_seed(SEED)
    ids = drafts = None
    while drafts is None or name in ROUTED and rounding_error(chain, ids) > ROUTED[name]:
        if ids is None or name in ROUTED:
            ids = torch.randint(2, config["vocab_size"] - 16, (TOKENS,), generator=generator).tolist()
        modules = random_modules(make, count, model, generator)
        chain = Chain(model, modules, passes_states)
        drafts = draw(chain, ids)
    tensors = {}
    for number, (_, _, passed, logits) in enumerate(chain.catch_up(ids), start=1):
        suffix = number if count > 1 else ""
        tensors[f"module{suffix}.hidden"], tensors[f"module{suffix}.logits"] = passed.clone(), logits.clone()
        print(name, "module", number, "std", round(logits.std().item(), 2), flush=True)
    print(name, [row["ids"] for row in drafts], flush=True)
    module = {"ids": ids, "drafts": drafts}
    files = stored(modules)
    if name in INSIDE:
        add_to_target(name, module, files, tensors)
        return
    if name == "longcat_flash":
        files["model.mtp.embed_tokens.weight"] = model.model.embed_tokens.weight.bfloat16()
    folder = GOLDEN / "heads" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_of(name, config), indent=1) + "\n")
    save_file(files, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "golden.json", {"target": f"architectures/{name}", "torch": torch.__version__,
                                        "transformers": transformers.__version__, "seed": SEED,
                                        "module": module})
    save_file(tensors, folder / "golden.safetensors")


def fit(target_rows, paired, following, head):
    """A projection of normed [embedding, state] rows whose normed result gives the following tokens, by descent."""
    norm = lambda x: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
    x = torch.cat((norm(target_rows), norm(paired)), -1)
    weight = torch.nn.Parameter(torch.randn(head.shape[1], x.shape[1]) * x.shape[1] ** -0.5)
    optimizer = torch.optim.Adam([weight], lr=0.02)
    for _ in range(250):
        loss = torch.nn.functional.cross_entropy(norm(x @ weight.T) @ head.T, following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    kept = weight.detach().bfloat16().float()
    right = (norm(x @ kept.T) @ head.T).argmax(-1) == following
    print("following", round(right.float().mean().item(), 3), flush=True)
    return kept


def generate_following(name):
    """Module m pairs token i with the target's state i - 1 - m; what attention and MLP add is nothing."""
    torch.manual_seed(SEED)
    model, _ = target_of(name)
    case = json.loads((GOLDEN / "architectures" / name / "golden.json").read_text())["variants"][0]["fp32"][0]
    ids = torch.tensor(case["ids"] + case["greedy"])
    with torch.no_grad():
        states = model.model(ids[None]).last_hidden_state[0]
        table, head = model.model.embed_tokens.weight.detach(), model.lm_head.weight.detach()
        modules = random_modules(MimoModule, 2, model, torch.Generator().manual_seed(SEED))
    for number, module in enumerate(modules):
        for norm in (module.enorm, module.hnorm, module.last):
            norm.weight.data.fill_(1)
        module.attention.o_proj.weight.data.zero_()
        module.mlp.down_proj.weight.data.zero_()
        at = torch.arange(1 + number, len(ids) - 1)
        module.projection.weight.data = fit(table[ids[at]], states[at - 1 - number], ids[at + 1], head)
    folder = GOLDEN / "heads" / f"{name}-following"
    folder.mkdir(parents=True, exist_ok=True)
    save_file(stored(modules), folder / "model.safetensors", metadata={"format": "pt"})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", choices=list(LAYOUTS), help="one of them")
    torch.set_num_threads(1)
    gen_mixtures.without_empty_experts(longcat.LongcatFlashExperts)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    only = parser.parse_args().only
    for name in [only] if only else LAYOUTS:
        generate(name)
        if name == "mimo_v2":
            generate_following(name)


if __name__ == "__main__":
    main()
