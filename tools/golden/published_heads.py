"""Compares the drafts of tests/golden with those of the heads' published code, run on the same tiny weights.

    python3 tools/golden/published_heads.py SOURCES [HEAD...]

SOURCES has clones of FasterDecoding/Medusa, foundation-model-stack/fms-extras, foundation-model-stack/foundation-model-stack,
SafeAILab/EAGLE, deepseek-ai/DeepSpec, sgl-project/SpecForge, vllm-project/speculators and vllm-project/vllm (of 0.10 or so,
which has Medusa), each in a folder of the repository's name; heads of those that are not there are passed over. Of their files
the classes that compute a draft are run as they are; what they import for training and serving is left out. Needs torch,
transformers and safetensors. Prints how many of the 64 prefixes have the same drafts; status 1 where one has others.
"""

import ast
import inspect
import math
import json
import pathlib
import sys
import types
import typing

import torch
import transformers
from safetensors.torch import load_file
from torch import nn

import gen_heads

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
TAPS = gen_heads.TAPS
UNPACK = type("Unpack", (), {"__class_getitem__": classmethod(lambda cls, item: item)})  # of annotations


def classes_of(path, names, scope):
    """Those classes and functions of a file, run in `scope`; all of them where no names are given."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kept = [node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))
            and (not names or node.name in names)]
    scope = {"torch": torch, "nn": nn, "F": nn.functional, "math": math, "__name__": "published",
             **{name: getattr(typing, name) for name in typing.__all__}, **scope}
    for node in kept:
        node.decorator_list = [one for one in node.decorator_list
                               if "register" not in ast.unparse(one) and "compile" not in ast.unparse(one)]
    exec(compile(ast.Module(kept, []), str(path), "exec"), scope)
    return types.SimpleNamespace(**scope)


def floats(weights):
    return {key: value.float() if value.is_floating_point() else value for key, value in weights.items()}


def weights_of(folder):
    for path in folder.glob("*.safetensors"):
        return floats(load_file(path))
    return floats(torch.load(next(folder.glob("*.pt")), weights_only=True))


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


def fill(model, weights, **extra):
    """The tensors that the model has names for; it may lack none but buffers and what is given apart."""
    rest = model.load_state_dict({**weights, **extra}, strict=False)
    missing = [name for name in rest.missing_keys if "rotary" not in name and "mask" not in name]
    assert not missing and not rest.unexpected_keys, (missing, rest.unexpected_keys)
    return model.eval()


class MappedMedusa:
    """vLLM's Medusa with a map of ids; its output matrices, cut over ranks there, are plain ones."""

    def __init__(self, sources, folder, target):
        matrix = lambda rows, hidden, **_: nn.Linear(hidden, rows, bias=False)
        scope = {"VllmConfig": object, "ParallelLMHead": matrix, "LogitsProcessor": lambda *_, **__: lambda head, x, *_: head(x),
                 "SamplerOutput": object, "SamplingMetadata": object, "Iterable": typing.Iterable,
                 "DEFAULT_VOCAB_PADDING_SIZE": 64, "maybe_prefix": lambda _, name: name,
                 "default_weight_loader": lambda to, value: to.data.copy_(value)}
        code = classes_of(sources / "vllm/vllm/model_executor/models/medusa.py", {"ResidualBlock", "Medusa"}, scope)
        settings = types.SimpleNamespace(**config_of(folder))
        draft = types.SimpleNamespace(draft_model_config=types.SimpleNamespace(hf_config=settings))
        self.model, self.target = code.Medusa(vllm_config=types.SimpleNamespace(speculative_config=draft)), target
        self.model.load_weights(weights_of(folder).items())
        self.takes_metadata = "sampling_metadata" in inspect.signature(self.model.compute_logits).parameters

    def drafts(self, ids, _):
        states = self.model(self.target["final"][None, len(ids) - 2])
        logits = self.model.compute_logits(states, *([None] if self.takes_metadata else []))
        return [one[0].argmax().item() for one in logits]


class Medusa:
    """FasterDecoding's heads: blocks and an output matrix each."""

    def __init__(self, sources, folder, target):
        block = classes_of(sources / "Medusa/medusa/model/medusa_model.py", {"ResBlock"}, {}).ResBlock
        config, weights, self.target = config_of(folder), weights_of(folder), target
        hidden, vocab = target["final"].shape[1], target["head"].shape[0]
        layers = config["medusa_num_layers"]
        self.heads = nn.ModuleList([
            nn.Sequential(*[block(hidden) for _ in range(layers)], nn.Linear(hidden, vocab, bias=False))
            for _ in range(config["medusa_num_heads"])])
        shared = {f"{head}.{layers}.weight": target["head"] for head in range(config["medusa_num_heads"])}
        fill(self.heads, {**shared, **weights})

    def drafts(self, ids, _):
        return [head(self.target["final"][len(ids) - 2]).argmax().item() for head in self.heads]


class MlpSpeculator:
    """IBM's speculator, the likeliest of its candidates where each step has one."""

    def __init__(self, sources, folder, target):
        norm = classes_of(sources / "foundation-model-stack/fms/modules/layernorm.py", {"LayerNormParameterized"},
                          {"DTensor": torch.Tensor})
        code = classes_of(sources / "fms-extras/fms_extras/models/speculator.py", {"MLPSpeculator"},
                          {"LayerNormParameterized": norm.LayerNormParameterized})
        config, self.target = config_of(folder), target
        names = ("emb_dim", "inner_dim", "vocab_size", "n_predict", "tie_weights", "scale_input")
        self.model = code.MLPSpeculator(**{name: config[name] for name in names})
        weights = {key.removeprefix("speculator."): value for key, value in weights_of(folder).items()}
        if config["tie_weights"]:
            for name in self.model.state_dict():
                kind, index, rest = (name.split(".", 2) + [""])[:3]
                first = "1" if kind == "proj" and int(index) > 1 else "0"
                weights.setdefault(name, weights.get(f"{kind}.{first}.{rest}"))
        fill(self.model, weights)

    def drafts(self, ids, _):
        state = self.target["final"][None, len(ids) - 2:len(ids) - 1]
        return self.model.generate_suffixes(state, torch.tensor([[ids[-1]]]), topk=[1] * self.model.n_predict, n=1)[0, 0].tolist()


class Dflash:
    """SpecForge's DFlash model, one block behind the text, under the masks that it is trained with."""

    def __init__(self, sources, folder, target):
        qwen3 = transformers.models.qwen3.modeling_qwen3
        names = ("ALL_ATTENTION_FUNCTIONS", "GradientCheckpointingLayer", "Qwen3Config", "Qwen3PreTrainedModel",
                 "Qwen3RotaryEmbedding", "eager_attention_forward", "rotate_half")
        scope = {name: getattr(qwen3, name) for name in names}
        kernels = types.SimpleNamespace(make_rms_norm=lambda size, eps: qwen3.Qwen3RMSNorm(size, eps=eps), make_mlp=qwen3.Qwen3MLP)
        scope |= {"Cache": object, "DynamicCache": object, "CausalLMOutputWithPast": object, "FlashAttentionKwargs": dict,
                  "Unpack": UNPACK, "DEFAULT_DFLASH_KERNELS": kernels, "DFlashKernels": object,
                  "FULL_ATTENTION": "full_attention", "SLIDING_ATTENTION": "sliding_attention",
                  "_VALID_DFLASH_LAYER_TYPES": {"full_attention", "sliding_attention"}}
        code = classes_of(sources / "SpecForge/specforge/modeling/draft/dflash.py", set(), scope)
        masks = classes_of(sources / "SpecForge/specforge/algorithms/common/dflash_family_model.py", {"create_dflash_sdpa_mask"}, {})
        self.mask = masks.create_dflash_sdpa_mask
        config, self.target = config_of(folder), target
        settings = transformers.Qwen3Config(**{key: value for key, value in config.items() if key != "architectures"})
        settings._attn_implementation = "sdpa"
        self.model = fill(self.made(sources, scope, code)(settings), weights_of(folder))

    def made(self, sources, scope, code):
        return code.DFlashDraftModel

    def rows(self, ids, block):
        """What leaves the rows of a block of ids, of which the first is the last known one."""
        seen = len(ids) - 1
        taps = torch.cat([self.target[f"tap{tap + 1}"] for tap in self.model.target_layer_ids], -1)[None, :seen]
        masks = {kind: self.mask(torch.tensor([[seen]]), torch.tensor([[True]]), seen, len(block), "cpu", window)
                 for kind, window in (("full_attention", None), ("sliding_attention", self.model.sliding_window))}
        return self.model(position_ids=torch.arange(seen + len(block))[None], target_hidden=taps, attention_mask=masks,
                          noise_embedding=self.target["embedding"][torch.tensor([block])])

    def drafts(self, ids, count):
        rows = self.rows(ids, [ids[-1]] + [self.model.mask_token_id] * count)[0, 1:]
        return (rows @ self.target["head"].T).argmax(-1).tolist()


class Domino(Dflash):
    """SpecForge's Domino model, whose own loop over a block chooses the drafts."""

    def made(self, sources, scope, code):
        names = {"DFlashDraftModel": code.DFlashDraftModel, "sample": code.sample, "get_device_type": lambda: "cpu"}
        return classes_of(sources / "SpecForge/specforge/modeling/draft/domino.py", set(), {**scope, **names}).DominoDraftModel

    def drafts(self, ids, count):
        block = [ids[-1]] + [self.model.mask_token_id] * (count - self.model.shift_label)
        rows = self.rows(ids, block)
        if self.model.shift_label:
            # The loop writes drafts behind the first id: a row that it does not read makes room for the last.
            block, rows = block + [self.model.mask_token_id], torch.cat([rows, rows[:, -1:]], 1)
        lent = types.SimpleNamespace(lm_head=lambda x: x @ self.target["head"].T,
                                     model=types.SimpleNamespace(embed_tokens=lambda x: self.target["embedding"][x]))
        return self.model._sample_draft_tokens(lent, rows, torch.tensor([block]))[0].tolist()


class DsparkSpeculators:
    """speculators' layers, Markov and confidence heads, put together as its training does."""

    def __init__(self, sources, folder, target):
        qwen3 = transformers.models.qwen3.modeling_qwen3
        names = ("ALL_ATTENTION_FUNCTIONS", "GradientCheckpointingLayer", "Qwen3MLP", "Qwen3RMSNorm", "eager_attention_forward")
        scope = {**{name: getattr(qwen3, name) for name in names}, "Cache": object, "FlashAttentionKwargs": dict,
                 "Qwen3Config": object, "Unpack": UNPACK}
        models = sources / "speculators/src/speculators/models"
        layers = classes_of(models / "dflash/model_definitions.py", set(), scope)
        heads = classes_of(models / "dspark/model_definitions.py", set(), {})
        config, weights, self.target = config_of(folder), weights_of(folder), target
        self.config, self.weights = config, weights
        settings = transformers.Qwen3Config(**config["transformer_layer_config"])
        settings._attn_implementation = "sdpa"
        hidden, rank = settings.hidden_size, config["markov_rank"]
        part = lambda prefix: {key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)}
        self.layers = [fill(layers.Qwen3DFlashDecoderLayer(settings, i), part(f"layers.{i}."))
                       for i in range(settings.num_hidden_layers)]
        self.norms = {name: fill(qwen3.Qwen3RMSNorm(hidden, eps=settings.rms_norm_eps), part(name + "."))
                      for name in ("hidden_norm", "norm")}
        self.rope = qwen3.Qwen3RotaryEmbedding(settings)
        self.markov = fill(heads.MarkovHead(verifier_vocab_size=settings.vocab_size, draft_vocab_size=config["draft_vocab_size"],
                                            markov_rank=rank, hidden_size=hidden), part("markov_head."))
        self.sure = fill(heads.ConfidenceHead(hidden + rank), part("confidence_head."))

    def rows(self, ids, count):
        taps = torch.cat([self.target[f"tap{tap}"] for tap in self.config["aux_hidden_state_layer_ids"]], -1)[None, :len(ids) - 1]
        context = self.norms["hidden_norm"](taps @ self.weights["fc.weight"].T)
        anchored = self.config["sample_from_anchor"]
        x = self.target["embedding"][torch.tensor([[ids[-1]] + [self.config["mask_token_id"]] * (count - anchored)])]
        turns = self.rope(x, torch.arange(context.shape[1] + x.shape[1])[None])
        for one in self.layers:
            x = one(hidden_states=x, target_hidden=context, attention_mask=None, position_embeddings=turns)
        return self.norms["norm"](x)[0, 0 if anchored else 1:]

    def drafts(self, ids, count):
        chosen, before = [], ids[-1]
        for row in self.rows(ids, count):
            logits = self.weights["lm_head.weight"] @ row + self.markov.block_bias(
                prev_token_ids=torch.tensor([[before]]), hidden_states=row[None, None])[0, 0]
            best = logits.argmax()
            before = (best + self.weights["d2t"][best]).item()
            chosen.append(before)
        return chosen

    def confidences(self, ids, drafts):
        before = self.markov.prev_embeddings(torch.tensor([ids[-1], *drafts[:-1]]))
        return self.sure(torch.cat([self.rows(ids, len(drafts)), before], -1)).tolist()


class Dspark:
    """DeepSpec's model for Qwen 3, whose block goes through the Markov head greedily."""

    def __init__(self, sources, folder, target):
        qwen3 = transformers.models.qwen3.modeling_qwen3
        names = ("ALL_ATTENTION_FUNCTIONS", "GradientCheckpointingLayer", "Qwen3MLP", "Qwen3PreTrainedModel",
                 "Qwen3RMSNorm", "Qwen3RotaryEmbedding", "eager_attention_forward", "rotate_half")
        scope = {name: getattr(qwen3, name) for name in names}
        scope |= {"Cache": object, "FlashAttentionKwargs": dict, "DSparkForwardOutput": object}
        scope["Unpack"] = UNPACK
        sampling = classes_of(sources / "DeepSpec/deepspec/utils/sampling.py", set(), {})
        scope["sample_tokens"] = sampling.sample_tokens
        markov = classes_of(sources / "DeepSpec/deepspec/modeling/dspark/markov_head.py", set(), scope)
        common = classes_of(sources / "DeepSpec/deepspec/modeling/dspark/common.py", {"AcceptRatePredictor"}, {})
        scope |= {"build_markov_head": markov.build_markov_head, "AcceptRatePredictor": common.AcceptRatePredictor}
        code = classes_of(sources / "DeepSpec/deepspec/modeling/dspark/qwen3/modeling.py", set(), scope)
        config, self.target = config_of(folder), target
        more = config.pop("dflash_config")
        settings = transformers.Qwen3Config(**{key: value for key, value in config.items() if key != "architectures"})
        for name, value in {**more, "num_anchors": 1}.items():
            setattr(settings, name, value)
        settings._attn_implementation = "sdpa"
        self.taps = more["target_layer_ids"]
        self.model = fill(code.Qwen3DSparkModel(settings), weights_of(folder),
                          **{"embed_tokens.weight": target["embedding"], "lm_head.weight": target["head"]})

    def drafts(self, ids, count):
        taps = torch.cat([self.target[f"tap{tap + 1}"] for tap in self.taps], -1)[None, :len(ids) - 1]
        block = torch.tensor([[ids[-1]] + [self.model.mask_token_id] * (count - 1)])
        rows = self.model._forward_backbone(position_ids=torch.arange(len(ids) - 1 + count)[None],
                                            noise_embedding=self.model.embed_tokens(block), target_hidden_states=taps,
                                            is_causal=False)
        return self.model.sample_draft_tokens(self.model.compute_logits(rows), first_prev_token_ids=block[:, 0],
                                              hidden_states=rows)[0][0].tolist()

    def confidences(self, ids, drafts):
        taps = torch.cat([self.target[f"tap{tap + 1}"] for tap in self.taps], -1)[None, :len(ids) - 1]
        block = torch.tensor([[ids[-1]] + [self.model.mask_token_id] * (len(drafts) - 1)])
        rows = self.model._forward_backbone(position_ids=torch.arange(len(ids) - 1 + len(drafts))[None],
                                            noise_embedding=self.model.embed_tokens(block), target_hidden_states=taps,
                                            is_causal=False)
        before = torch.tensor([[ids[-1], *drafts[:-1]]])
        return self.model.predict_confidence_step(rows, before)[0].tolist()


class Eagle:
    """SafeAILab's EAGLE head, greedily as a chain."""

    def __init__(self, sources, folder, target):
        code = classes_of(sources / "EAGLE/eagle/model/cnets1.py", set(), {"ACT2FN": transformers.activations.ACT2FN})
        settings = types.SimpleNamespace(**config_of(folder), pretraining_tp=1, pad_token_id=0)
        self.target = target
        self.model = fill(code.Model(settings, bias=True), weights_of(folder), **{"embed_tokens.weight": target["embedding"]})
        self.model.reset()

    def drafts(self, ids, count):
        states, tokens = self.target["final"][:len(ids) - 1], list(ids[1:])
        chosen = []
        while len(chosen) < count:
            out = self.model(states[None], torch.tensor([tokens]))[0]
            out = out[0] if out.dim() == 3 else out
            chosen.append((self.target["head"] @ out[-1]).argmax().item())
            states, tokens = torch.cat([states, out[-1:]]), tokens + chosen[-1:]
        return chosen


class Peagle:
    """SpecForge's P-EAGLE model; its attention, a compiled kernel there, is PyTorch's with the same mask."""

    def __init__(self, sources, folder, target):
        drafts = sources / "SpecForge/specforge/modeling/draft"
        scope = {"ACT2FN": transformers.activations.ACT2FN, "LlamaConfig": transformers.LlamaConfig, "Cache": object}
        parts = classes_of(drafts / "llama3_eagle.py",
                           {"LlamaMLP", "LlamaRMSNorm", "LlamaRotaryEmbedding", "get_rope_config", "rotate_half"}, scope)
        base = type("Eagle3DraftModel", (nn.Module,), {"__init__": lambda self, config: nn.Module.__init__(self)})
        scope |= {name: getattr(parts, name) for name in ("LlamaMLP", "LlamaRMSNorm", "LlamaRotaryEmbedding",
                                                          "get_rope_config", "rotate_half")}
        scope |= {"Eagle3DraftModel": base, "compile_friendly_flex_attention": self.attend}
        code = classes_of(drafts / "peagle.py", set(), scope)
        config = config_of(folder)
        beside = folder / "peagle_config.json"
        more = json.loads(beside.read_text()) if beside.exists() else config
        settings = transformers.LlamaConfig(**config.get("transformer_layer_config", config))
        settings.draft_vocab_size, settings.pad_token_id = config["draft_vocab_size"], 0
        self.mask, self.target = more["mask_token_id"], target
        weights = {key.replace("midlayer.", "layers.0."): value for key, value in weights_of(folder).items()}
        self.model = fill(code.PEagleDraftModel(settings, norm_before_residual=more["norm_before_residual"]),
                          {key: value for key, value in weights.items() if key != "embed_tokens.weight"},
                          **{"embed_tokens.weight": target["embedding"]})

    @staticmethod
    def attend(query, key, value, block_mask, enable_gqa, kernel_options):
        del block_mask, kernel_options
        return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=enable_gqa)

    def drafts(self, ids, count):
        taps = torch.cat([self.target[f"tap{tap}"] for tap in TAPS], -1)[:len(ids) - 1]
        taps = torch.cat([taps, self.model.mask_hidden.flatten()[None].repeat(count - 1, 1)])
        tokens = torch.tensor([list(ids[1:]) + [self.mask] * (count - 1)])
        rows = self.model(taps[None], self.model.embed_input_ids(tokens), position_ids=torch.arange(tokens.shape[1])[None])
        best = self.model.lm_head(rows)[0, -count:].argmax(-1)
        return (best + self.model.d2t[best]).tolist()


class NormedPeagle:
    """P-EAGLE with a norm of each tap: vLLM's own classes need its kernels; speculators' layer and what is before it are the same."""

    def __init__(self, sources, folder, target):
        llama = transformers.models.llama.modeling_llama
        scope = {name: getattr(llama, name) for name in ("LlamaDecoderLayer", "LlamaRMSNorm")}
        scope |= {"Cache": object, "Unpack": UNPACK, "TransformersKwargs": dict, "PretrainedConfig": object, "LlamaConfig": object}
        layers = classes_of(sources / "speculators/src/speculators/models/eagle3/model_definitions.py",
                            {"Eagle3FirstLayerMixin", "LlamaDecoderEagle3FirstLayer"}, scope)
        config, weights, self.target = config_of(folder), weights_of(folder), target
        settings = transformers.LlamaConfig(**{key: value for key, value in config.items() if key != "architectures"})
        settings._attn_implementation = "sdpa"
        part = lambda prefix: {key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)}
        self.layer = fill(layers.LlamaDecoderEagle3FirstLayer(settings, 0), part("layers.0."))
        norm = lambda name: fill(llama.LlamaRMSNorm(settings.hidden_size, eps=settings.rms_norm_eps), part(name + "."))
        self.tap_norms, self.norm = [norm(f"fc_norm.{i}") for i in range(len(TAPS))], norm("norm")
        self.rope, self.weights, self.mask = llama.LlamaRotaryEmbedding(settings), weights, config["ptd_token_id"]

    def drafts(self, ids, count):
        taps = torch.cat([self.target[f"tap{tap}"] for tap in TAPS], -1)[:len(ids) - 1]
        taps = torch.cat([taps, self.weights["mask_hidden"].flatten()[None].repeat(count - 1, 1)])
        taps = torch.cat([norm(tap) for norm, tap in zip(self.tap_norms, taps.chunk(len(TAPS), -1))], -1)
        tokens = torch.tensor(list(ids[1:]) + [self.mask] * (count - 1))
        x = torch.cat([self.target["embedding"][tokens], taps @ self.weights["fc.weight"].T], -1)[None]
        seen = torch.ones(len(tokens), len(tokens)).tril().bool()[None, None]
        x = self.layer(x, attention_mask=seen, position_embeddings=self.rope(x, torch.arange(len(tokens))[None]))
        best = (self.norm(x)[0, -count:] @ self.weights["lm_head.weight"].T).argmax(-1)
        return (best + self.weights["d2t"][best]).tolist()


HEADS = {"block_heads": {"dflash": Dflash, "dflash-windows": Dflash, "dspark": Dspark, "domino": Domino,
                         "domino-behind": Domino, "dspark-speculators": DsparkSpeculators},
         "chain_heads": {"medusa": Medusa, "medusa-shared": Medusa, "medusa-mapped": MappedMedusa, "mlp_speculator": MlpSpeculator,
                         "mlp_speculator-tied": MlpSpeculator},
         "layered_heads": {"eagle-3-layers": Eagle, "p_eagle": Peagle, "p_eagle-speculators": Peagle,
                          "p_eagle-vllm": NormedPeagle}}


def same_confidences(model, golden, head):
    """Whether the published code is as sure of each draft."""
    with torch.no_grad():
        found = [model.confidences(golden["ids"][:golden["first"] + i], drafts) for i, drafts in enumerate(head["drafts"])]
    worst = max(abs(a - b) for mine, other in zip(head["confidences"], found) for a, b in zip(mine, other))
    print(f"{head['name']}: confidences differ by {worst:.1e} at most", flush=True)
    return worst < 1e-3


def compare(sources, room):
    """How many prefixes of each head have the published code's drafts."""
    golden = json.loads((GOLDEN / room / "golden.json").read_text())
    target = gen_heads.run_target(golden["ids"])
    right = True
    for head in golden["heads"]:
        published = HEADS[room].get(head["name"])
        if published is None or (len(sys.argv) > 2 and head["name"] not in sys.argv[2:]):
            continue
        try:
            model = published(sources, GOLDEN / room / head["name"], target)
        except FileNotFoundError as missing:
            print(f"{room}/{head['name']}: not compared, {missing.filename} is not there", flush=True)
            continue
        with torch.no_grad():
            same = [model.drafts(golden["ids"][:golden["first"] + i], len(drafts)) == drafts
                    for i, drafts in enumerate(head["drafts"])]
        print(f"{room}/{head['name']}: {sum(same)} of {len(same)} as published", flush=True)
        right = right and all(same)
        if "confidences" in head:
            right = right and same_confidences(model, golden, head)
    return right


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    results = [compare(pathlib.Path(sys.argv[1]), room) for room in HEADS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
