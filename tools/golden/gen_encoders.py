"""Makes tests/golden/encoders/ with Hugging Face transformers on a CPU: tiny random encoders and what
leaves their last layer.

    python3 tools/golden/gen_encoders.py [--only bert]

Needs torch, transformers and safetensors. tests/golden/README.md has the form.
"""

import argparse
import json
import pathlib
import shutil
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

import families
import plain_encoders
from gen_golden import GOLDEN, SEED, write_json
from gen_mixtures import Rounded

LENGTHS = (1, 5, 40)
ROUNDING = 0.02  # of a row's norm: what twice the roundings to bf16 may do to stored states of a mixture
PLAIN = {"model_type": "", "tie_word_embeddings": False}
SIZES = {"vocab_size": 128, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "max_position_embeddings": 64}
BERT = {**SIZES, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "pad_token_id": 0, "type_vocab_size": 2}
JUDGE = {"num_labels": 1}
MODERN = {**SIZES, "num_hidden_layers": 3, "hidden_activation": "gelu", "local_attention": 8,
          "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
          "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 160000.0},
                              "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}},
          "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1,
          "sep_token_id": 2}
GTE = {**BERT, "type_vocab_size": 1, "pad_token_id": 1, "bos_token_id": None, "eos_token_id": None,
       "rope_parameters": {"rope_type": "default", "rope_theta": 160000.0}}
DEBERTA = {**BERT, "type_vocab_size": 0, "layer_norm_eps": 1e-7, "relative_attention": True,
           "share_att_key": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"],
           "norm_rel_ebd": "layer_norm", "position_buckets": 8, "max_relative_positions": 32}
MODELS = {
    "bert": ("BertModel", "bert", BERT),
    "xlm_roberta": ("XLMRobertaModel", "xlm-roberta",
                    {**BERT, "pad_token_id": 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5,
                     "max_position_embeddings": 66}),
    "bert_judge": ("BertForSequenceClassification", "bert", {**BERT, **JUDGE}),
    "xlm_roberta_judge": ("XLMRobertaForSequenceClassification", "xlm-roberta",
                          {**BERT, **JUDGE, "pad_token_id": 1, "type_vocab_size": 1,
                           "layer_norm_eps": 1e-5, "max_position_embeddings": 66}),
    "distilbert": ("DistilBertModel", "distilbert",
                   {"vocab_size": 128, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4,
                    "max_position_embeddings": 64, "activation": "gelu", "dropout": 0.0,
                    "attention_dropout": 0.0}),
    "nomic_bert": ("NomicBertModel", "nomic_bert",
                   {**BERT, "hidden_act": "silu",
                    "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0}}),
    "eurobert": ("EuroBertModel", "eurobert",
                 {**SIZES, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "hidden_act": "silu",
                  "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None,
                  "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}),
    "modern_bert": ("ModernBertModel", "modernbert", MODERN),
    "modern_bert_judge": ("ModernBertForSequenceClassification", "modernbert",
                          {**MODERN, **JUDGE, "classifier_pooling": "cls"}),
    "embedding_gemma": ("Gemma3TextModel", "gemma3_text",
                        {**SIZES, "num_hidden_layers": 3, "num_key_value_heads": 2, "head_dim": 8,
                         "query_pre_attn_scalar": 8, "sliding_window": 8, "rms_norm_eps": 1e-6,
                         "layer_types": ["sliding_attention", "full_attention",
                                         "sliding_attention"],
                         "use_bidirectional_attention": True, "bos_token_id": None,
                         "eos_token_id": None, "pad_token_id": 0}),
    "gte": ("GteModel", "gte", GTE),
    "gte_judge": ("GteForSequenceClassification", "gte", {**GTE, **JUDGE}),
    "mpnet": ("MPNetModel", "mpnet",
              {**BERT, "pad_token_id": 1, "layer_norm_eps": 1e-5, "max_position_embeddings": 130}),
    "jina_bert": (None, None, BERT),
    "jina3": ("JinaEmbeddingsV3Model", "jina_embeddings_v3",
              {**GTE, "bos_token_id": 0, "eos_token_id": 2,
               "rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}}),
    "electra_judge": ("ElectraForSequenceClassification", "electra",
                      {**BERT, **JUDGE, "embedding_size": 32}),
    "ernie": ("ErnieModel", "ernie", {**BERT, "use_task_id": True, "task_type_vocab_size": 3}),
    "deberta": ("DebertaV2Model", "deberta-v2", DEBERTA),
    "deberta_judge": ("DebertaV2ForSequenceClassification", "deberta-v2",
                      {**DEBERTA, **JUDGE, "position_buckets": -1, "max_relative_positions": 12,
                       "norm_rel_ebd": "none"}),
    "electra": ("ElectraModel", "electra", {**BERT, "embedding_size": 16}),
    "albert_judge": ("AlbertForSequenceClassification", "albert",
                     {**BERT, **JUDGE, "hidden_act": "gelu_new", "embedding_size": 16,
                      "num_hidden_layers": 3, "classifier_dropout_prob": 0.0}),
    "nomic_moe": (None, None,
                  {"vocab_size": 128, "n_embd": 64, "n_inner": 96, "n_layer": 4, "n_head": 4,
                   "n_positions": 64, "type_vocab_size": 1, "layer_norm_epsilon": 1e-5,
                   "activation_function": "gelu", "qkv_proj_bias": True, "mlp_fc1_bias": True,
                   "mlp_fc2_bias": True, "rotary_emb_base": 10000, "rotary_emb_fraction": 1.0,
                   "rotary_emb_interleaved": False, "rotary_scaling_factor": None,
                   "prenorm": False, "moe_every_n_layers": 2, "num_experts": 5, "moe_top_k": 2,
                   "moe_normalize_expert_weights": False, "num_shared_experts": 0,
                   "expert_choice_router": False}),
}
WITHOUT_CLASS = {"jina_bert": plain_encoders.JinaBertModel,
                 "nomic_moe": plain_encoders.NomicBertModel}
# Texts of which some keys stand in the last bucket.
LONGER = {"mpnet": (1, 5, 110)}


def new_model(name):
    class_name, model_type, fields = MODELS[name]
    if class_name is None:
        return WITHOUT_CLASS[name](fields).eval()
    config = transformers.AutoConfig.for_model(model_type, **fields)
    config._attn_implementation = "eager"
    return getattr(transformers, class_name)(config).eval()


def write_encoder(name, folder):
    """Weights that are exact in bf16, under the names that transformers saves, which are the published ones."""
    torch.manual_seed(SEED + 900 + list(MODELS).index(name))
    model = new_model(name)
    state = {key: families.random_weight(key, weight, PLAIN).to(torch.bfloat16).float()
             for key, weight in model.state_dict().items() if weight.is_floating_point()}
    model.load_state_dict(state, strict=False)
    with tempfile.TemporaryDirectory() as saved:
        model.save_pretrained(saved)
        stored = load_file(pathlib.Path(saved) / "model.safetensors")
        config = json.loads((pathlib.Path(saved) / "config.json").read_text())
    folder.mkdir(parents=True)
    save_file({key: weight.to(torch.bfloat16) for key, weight in stored.items()},
              folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}, indent=1) + "\n")
    return model


def kinds_of(model, ids):
    """The second half of a text is the second one of a pair, where the model tells them apart."""
    kinds = torch.zeros_like(ids)
    if getattr(model.config, "type_vocab_size", 1) == 2:
        kinds[:, ids.shape[1] // 2:] = 1
    return kinds


def states_of(model, ids, **more):
    return getattr(model, model.base_model_prefix, model)(input_ids=ids, **more).last_hidden_state[0]


def turns_routes(model, ids):
    """Whether one of many random roundings to bf16 gives a token other experts: its state is another one then."""
    states = states_of(model, ids)
    with Rounded(model, steps=2):
        return any(((states_of(model, ids) - states).norm(dim=-1) / states.norm(dim=-1)).max() > ROUNDING
                   for _ in range(32))


def random_ids(model, length):
    """Of a mixture those whose routes bf16 does not turn, so that a state's error is that of its products."""
    while True:
        ids = torch.randint(3, 120, (1, length))
        if not hasattr(model.config, "num_experts") or not turns_routes(model, ids):
            return ids


@torch.no_grad()
def generate(name):
    folder = GOLDEN / "encoders" / name
    shutil.rmtree(folder, ignore_errors=True)
    model = write_encoder(name, folder)
    cases, tensors = [], {}
    for i, length in enumerate(LONGER.get(name, LENGTHS)):
        ids = random_ids(model, length)
        kinds, labels = kinds_of(model, ids), {}
        more = {"token_type_ids": kinds} if hasattr(model.config, "type_vocab_size") else {}
        if hasattr(model, "classifier"):
            labels = {"labels": model(input_ids=ids, **more).logits[0].tolist()}
        states = states_of(model, ids, **(more if labels else {}))
        tensors[f"prompt{i}.states"] = states.contiguous()
        told = ids + kinds * model.config.vocab_size if labels else ids
        cases.append({"ids": told[0].tolist(), **labels})
        print(name, length, "std", round(states.std().item(), 2), flush=True)
    write_json(folder / "golden.json", {"transformers": transformers.__version__,
                                        "torch": torch.__version__, "prompts": cases})
    save_file(tensors, folder / "golden.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=list(MODELS), nargs="*", help="some encoders")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.only or MODELS:
        generate(name)


if __name__ == "__main__":
    main()
