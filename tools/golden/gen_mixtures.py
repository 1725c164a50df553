"""Makes tests/golden/architectures/ of mixtures of experts and latent attention with Hugging Face transformers on a CPU.

    python3 tools/golden/gen_mixtures.py            # all; some minutes
    python3 tools/golden/gen_mixtures.py --only glm4_moe

Needs torch, transformers and safetensors. mixtures.py has the models, tests/golden/README.md the form.
"""

import argparse
import copy
import json
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.longcat_flash import modeling_longcat_flash

import deepseek_v1
import families
import few_bits
import mixtures
from published import names as published_names
from gen_golden import GOLDEN, SEED, error_against, greedy, logits_of, write_json

CLOSE_TO_TIES = 2e-3
ROUNDING = 6e-3     # of a row's norm: what roundings to bf16 may do to stored logits
MODULE_TOKENS, DRAFTS, PREFIXES = 18, 3, (2, 3, 5, 9, 14, 18)
DRAFT_GAP = 0.02
MODULE_ROUNDING = 0.016  # as ROUNDING, of the rows of a draft module


# Modules of this folder that compute what transformers has no class for.
OWN_CLASSES = {"deepseek_v1": deepseek_v1}


class SharedHead(torch.nn.Module):
    def __init__(self, norm, head):
        super().__init__()
        self.norm, self.head = norm, head


def without_empty_experts(experts):
    """LongCat's experts, without the matrices that transformers gives those that compute nothing: files have none."""
    start = experts.__init__

    def __init__(self, config):
        start(self, config)
        self.gate_up_proj = torch.nn.Parameter(self.gate_up_proj[:config.n_routed_experts].detach())

    experts.__init__ = __init__


def parsed_config(name, config):
    config = {**config, **mixtures.REFERENCES.get(name, {})}
    config = {key: value for key, value in config.items() if key not in mixtures.OUTSIDE.get(name, ())}
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(config))
        parsed = transformers.AutoConfig.from_pretrained(folder)
    parsed._attn_implementation = "eager"
    return parsed, config["architectures"][0]


def add_draft_module(model):
    """Appends a module's layer, which the model's forward does not reach, with what DeepSeek's modules have beside it."""
    config = copy.deepcopy(model.config)
    hidden, index = config.hidden_size, config.num_hidden_layers
    if getattr(config, "mlp_layer_types", None):
        config.mlp_layer_types = [*config.mlp_layer_types, "sparse"]
    if getattr(config, "indexer_types", None):
        config.indexer_types = [*config.indexer_types, "full"]
    layer = type(model.model.layers[0])(config, index)
    norm = lambda: type(model.model.norm)(hidden, eps=config.rms_norm_eps)
    layer.enorm, layer.hnorm = norm(), norm()
    layer.eh_proj = torch.nn.Linear(2 * hidden, hidden, bias=False)
    layer.embed_tokens = torch.nn.Embedding(config.vocab_size, hidden)
    layer.shared_head = SharedHead(norm(), torch.nn.Linear(hidden, config.vocab_size, bias=False))
    model.model.layers.append(layer)


def fix_longrope(model, max_model_len):
    """PhiMoE's factors and scales as they are for max_model_len; transformers takes a forward's length."""
    rope = model.config.rope_parameters
    rotary = model.model.rotary_emb
    table = ROPE_INIT_FUNCTIONS["longrope"](model.config, seq_len=max_model_len)[0]
    scale = rope["long_mscale" if max_model_len > rope["original_max_position_embeddings"] else "short_mscale"]

    def forward(x, position_ids=None):
        angles = position_ids[..., None].float() * table
        angles = torch.cat((angles, angles), -1)
        return angles.cos() * scale, angles.sin() * scale

    rotary.forward = forward


def with_own_sizes(model, blocks):
    """Mixtures of a Nemotron whose layers differ in size."""
    for layer, block in zip(model.model.layers, blocks):
        if block["block_type"] == "moe":
            config = copy.deepcopy(model.config)
            for key in block.keys() - {"block_type"}:
                setattr(config, key, block[key])
            layer.mixer = type(layer.mixer)(config)


def new_model(name, config, max_model_len):
    """The model of a config.json, with its draft module if it has one, unloaded."""
    if name in OWN_CLASSES:
        return OWN_CLASSES[name].new_model(config).eval()
    parsed, architecture = parsed_config(name, config)
    model = getattr(transformers, architecture)(parsed)
    if "block_configs" in config:
        with_own_sizes(model, config["block_configs"])
    if config.get("num_nextn_predict_layers"):
        add_draft_module(model)
    if (getattr(parsed, "rope_parameters", None) or {}).get("rope_type") == "longrope":
        fix_longrope(model, max_model_len)
    return model.eval()


def first_block(key, config):
    """The name of a tensor of Zamba's block in the first layer that has it; others keep theirs."""
    head, found, rest = key.partition(".shared_transformer.")
    return f"model.layers.{config['layers_block_type'].index('hybrid')}{found}{rest}" if found else key


def follows_from_config(key):
    """Buffers of MiniMax's decays, which transformers keeps among the weights."""
    return key.endswith(("slope_rate", "query_decay", "key_decay", "diagonal_decay"))


def random_state(name, model, config, seed):
    """Weights that are exact in bf16; a module's embedding and output matrix are the model's."""
    torch.manual_seed(seed)
    random = OWN_CLASSES[name].random_weight if name in OWN_CLASSES else mixtures.random_weight
    state = {key: weight.float() if follows_from_config(key) else
             random(key, weight.float(), config).bfloat16().float()
             for key, weight in model.state_dict().items()}
    for key in state:
        if key.endswith("shared_head.head.weight"):
            state[key] = state["lm_head.weight"]
        elif key.startswith("model.layers.") and key.endswith("embed_tokens.weight"):
            state[key] = state["model.embed_tokens.weight"]
        elif name == "zamba2":  # transformers ties blocks only where embeddings are tied, too
            state[key] = state[first_block(key, config)]
    return state


def kept(key, weight):
    """As it lies in files: routers' biases stay floats, and so do buffers."""
    if not weight.is_floating_point():
        return weight
    floats = key.endswith(("e_score_correction_bias", "expert_bias")) or follows_from_config(key)
    return weight.float() if floats else weight.bfloat16()


def write_weights(name, model, folder, config):
    """The state under published names, as transformers writes and reads them."""
    if name in OWN_CLASSES:
        stored = {key: kept(key, weight).contiguous() for key, weight in model.state_dict().items()}
        save_file(OWN_CLASSES[name].as_stored(stored), folder / "model.safetensors", metadata={"format": "pt"})
        return
    with tempfile.TemporaryDirectory() as temporary:
        model.save_pretrained(temporary)
        stored = load_file(pathlib.Path(temporary) / "model.safetensors")
    stored = {key: kept(key, weight).contiguous() for key, weight in stored.items()}
    if few_bits.quant_method(config) == "mxfp4":
        stored = few_bits.with_mxfp4(stored)
    if few_bits.quant_method(config) == "fp8":
        stored = few_bits.with_fp8(stored)
    if name in mixtures.BAILING:
        stored = published_names.with_bailing_module(stored, f"model.layers.{config['num_hidden_layers']}.")
    if name == "olmo_hybrid":
        stored = published_names.with_olmo_names(stored)
    if name == "kimi_linear":
        stored = published_names.with_kimi_names(stored)
    if name == "minimax_m3":
        stored = published_names.with_minimax_names(stored)
    if name == "kimi_vl":
        stored = published_names.with_kimi_vl_names(stored)
    if name == "kimi_k25":
        stored = published_names.with_kimi_k25_names(stored)
    if name == "bailing_moe":
        stored = published_names.with_ling_names(stored)
    if name == "zamba2":
        stored = {key: weight for key, weight in stored.items() if key == first_block(key, config)}
    if name == "bailing_moe_v3":
        stored = published_names.with_ling3_names(stored)
    if name.startswith("molmo2"):
        stored = published_names.with_molmo_tables(stored, config["text_config"]["vocab_size"])
    if name == "hy_v4":
        stored = published_names.with_hy_v4_names(stored)
    if name == "deepseek_v4":
        stored = published_names.with_deepseek_v4_names(stored)
    if name == "qwen3_5_moe":
        stored = published_names.with_stacked_experts(stored)
    if name == "axk1":  # a norm that is there and not applied, as in published files
        stored["model.layers.0.post_mlp_layernorm.weight"] = stored["model.norm.weight"].clone()
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})


def check_file(name, folder, model, config):
    """What transformers loads from the folder computes the same."""
    parsed, architecture = parsed_config(name, config)
    with tempfile.TemporaryDirectory() as temporary:
        parsed.save_pretrained(temporary)
        (pathlib.Path(temporary) / "model.safetensors").symlink_to(folder / "model.safetensors")
        loaded, info = getattr(transformers, architecture).from_pretrained(
            temporary, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    module = f"model.layers.{model.config.get_text_config().num_hidden_layers}."
    assert not info["missing_keys"], info["missing_keys"]
    assert all(key.startswith(module) for key in info["unexpected_keys"]), info["unexpected_keys"]
    ids = list(range(2, 40))
    difference = (logits_of(loaded.eval(), ids) - logits_of(model, ids)).abs().max()
    assert difference < 1e-5, difference


class Rounded:
    """While it lasts, what the parts of a model return is off by a random half of so many bf16 steps."""

    def __init__(self, model, steps=1):
        self.steps = steps
        self.hooks = [module.register_forward_hook(self.round) for module in model.modules()
                      if not list(module.children()) or "Experts" in type(module).__name__]

    def round(self, module, inputs, output):
        if isinstance(output, torch.Tensor) and output.is_floating_point():
            return output * (1 + (torch.rand_like(output) - 0.5) * self.steps * 2 ** -8)
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for hook in self.hooks:
            hook.remove()


def rounding_error(model, ids, logits, keep):
    """The largest error of a stored row, over its norm, that some random roundings make."""
    worst = 0.0
    with Rounded(model):
        for _ in range(6):
            difference = (logits_of(model, ids) - logits)[-keep:]
            worst = max(worst, (difference.norm(dim=-1) / logits[-keep:].norm(dim=-1)).max().item())
    return worst


def best_case(model, length, keep):
    """A random prompt whose routes bf16 does not turn, whose greedy text varies and stays far from ties."""
    best = None
    for seed in range(64):
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(2, families.COMMON["vocab_size"] - 16, (length,), generator=generator).tolist()
        logits = logits_of(model, ids)
        error = rounding_error(model, ids, logits, keep)
        if error > ROUNDING:
            continue
        tokens, gaps = greedy(model, ids)
        rank = min(len(set(tokens)), 8), min(gaps)
        if best is None or rank > best[0]:
            best = rank, ids, tokens, logits, error
        if rank > (7, CLOSE_TO_TIES):
            break
    return best and (*best[1:], best[0][1], len(set(best[2])))


def all_cases(name, config, state):
    """The variants' JSON and tensors of one draw of weights, or None when a prompt is not to be had."""
    variants, tensors = [], {}
    for variant, (changes, max_model_len) in mixtures.VARIANTS[name].items():
        model = new_model(name, {**config, **changes}, max_model_len)
        own = {key: state[key] for key in model.state_dict()}
        model.load_state_dict(own)
        cases = []
        for i, (length, keep) in enumerate(((4, 2), (70, 4))):
            found = best_case(model, length, keep)
            if found is None or found[4] < CLOSE_TO_TIES / 2:
                return None
            ids, tokens, logits, error, gap, distinct = found
            tensors[f"{variant}.prompt{i}.logits.fp32"] = logits[-keep:].contiguous()
            cases.append({"ids": ids, "positions": list(range(length))[-keep:], "greedy": tokens,
                          "smallest_gap": gap})
            print(name, variant, length, "gap", gap, "distinct", distinct, "std", round(logits.std().item(), 2),
                  "rounding", round(error, 5), flush=True)
        variants.append({"name": variant, "hf_overrides": changes, "max_model_len": max_model_len, "fp32": cases})
    return variants, tensors


class Module:
    """A model's draft module over one text. An entry of token i pairs its embedding with the state of token i - 1."""

    def __init__(self, model, passes_normed):
        self.passes_normed = passes_normed
        self.model, self.layer = model.model, model.model.layers[model.config.num_hidden_layers]

    def final(self, ids):
        """The model's states after its final norm."""
        return self.model(torch.tensor([ids])).last_hidden_state[0]

    def entries(self, ids, hidden):
        """What is passed on and logits of the entries that `hidden`, the states before them, belong to."""
        layer, count = self.layer, len(hidden)
        both = torch.cat((layer.enorm(layer.embed_tokens(torch.tensor(ids))), layer.hnorm(hidden)), -1)
        positions = torch.arange(count)[None]
        mask = torch.full((count, count), float("-inf")).triu(1)[None, None]
        x = layer.eh_proj(both)[None]
        out = layer(x, attention_mask=mask, position_ids=positions,
                    position_embeddings=self.model.rotary_emb(x, positions))
        out = (out[0] if isinstance(out, tuple) else out)[0]
        normed = layer.shared_head.norm(out)
        return normed if self.passes_normed else out, layer.shared_head.head(normed)

    def drafts(self, ids):
        """Greedy chained drafts after `ids`, and how far each was from the runner-up."""
        tokens, hidden, drafts, gaps = ids[1:], self.final(ids)[:-1], [], []
        for _ in range(DRAFTS):
            out, logits = self.entries(tokens, hidden)
            top = logits[-1].topk(2)
            drafts.append(int(top.indices[0]))
            gaps.append(round((top.values[0] - top.values[1]).item(), 5))
            tokens, hidden = [*tokens, drafts[-1]], torch.cat((hidden, out[-1:]))
        return drafts, gaps


@torch.no_grad()
def module_case(name, config, state):
    """Entries and drafts of the draft module, or None when a draft lies close to a tie."""
    model = new_model(name, config, mixtures.LENGTH)
    model.load_state_dict(state)
    module = Module(model, name in mixtures.BAILING)
    generator = torch.Generator().manual_seed(SEED)
    ids = torch.randint(2, families.COMMON["vocab_size"] - 16, (MODULE_TOKENS,), generator=generator).tolist()
    drafts = []
    for length in PREFIXES:
        tokens, gaps = module.drafts(ids[:length])
        if min(gaps) < DRAFT_GAP:
            return None
        drafts.append({"prefix": length, "ids": tokens, "gaps": gaps})
    hidden, logits = module.entries(ids[1:], module.final(ids)[:-1])
    with Rounded(model):
        for _ in range(4):
            difference = module.entries(ids[1:], module.final(ids)[:-1])[1] - logits
            if (difference.norm(dim=-1) / logits.norm(dim=-1)).max() > MODULE_ROUNDING:
                return None  # bf16 turns a route
    print(name, "module", [row["ids"] for row in drafts], "std", round(logits.std().item(), 2), flush=True)
    return {"ids": ids, "drafts": drafts}, {"module.hidden": hidden.contiguous(), "module.logits": logits.contiguous()}


def generate(name):
    """The first draw of weights that stays away from ties in all that is asked."""
    folder, config = GOLDEN / "architectures" / name, mixtures.MODELS[name]
    folder.mkdir(parents=True, exist_ok=True)
    has_module = bool(config.get("num_nextn_predict_layers"))
    for draw in range(20):
        model = new_model(name, config, mixtures.LENGTH)
        state = random_state(name, model, config, SEED + 1000 * draw + list(mixtures.MODELS).index(name))
        module = module_case(name, config, state) if has_module else ({}, {})
        found = module and all_cases(name, config, state)
        if found:
            break
    model.load_state_dict(state)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_weights(name, model, folder, config)
    if name not in OWN_CLASSES and name not in ("minimax_m3", "zamba2", "kimi_vl", "bailing_moe", "deepseek_v3-fp8",
                                                                 "nemotron_h-puzzle", "bailing_moe_v3"):  # which read others
        check_file(name, folder, model, config)
    half = copy.deepcopy(model).to(torch.bfloat16)
    for case in found[0][0]["fp32"]:
        case["hugging_face_bf16_error"] = error_against(logits_of(model, case["ids"]), logits_of(half, case["ids"]))
    result = {"transformers": transformers.__version__, "torch": torch.__version__, "variants": found[0]}
    write_json(folder / "golden.json", {**result, **({"module": module[0]} if has_module else {})})
    save_file({**found[1], **module[1]}, folder / "golden.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=list(mixtures.MODELS), nargs="*", help="some models")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    without_empty_experts(modeling_longcat_flash.LongcatFlashExperts)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for name in arguments.only or mixtures.MODELS:
        generate(name)


if __name__ == "__main__":
    main()
