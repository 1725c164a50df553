#include "gguf/encoder_architectures.h"

#include <string>
#include <vector>

#include "gguf/vocabulary/encoder_tokenizer.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Of judges, too: llama.cpp has RoBERTa's names for all of them.
constexpr GgufName kBertModel[] = {{"position_embd.weight", "model.embed_positions.weight"},
                                   {"token_embd_norm.weight", "model.embed_norm.weight"},
                                   {"token_embd_norm.bias", "model.embed_norm.bias"},
                                   {"cls.weight", "classifier.dense.weight"},
                                   {"cls.bias", "classifier.dense.bias"},
                                   {"cls.output.weight", "classifier.out_proj.weight"},
                                   {"cls.output.bias", "classifier.out_proj.bias"}};
// Norms behind each part.
constexpr GgufName kBertTensors[] = {{"attn_qkv", "self_attn.qkv_proj"},
                                     {"attn_output_norm", "self_attn_layer_norm"},
                                     {"layer_output_norm", "final_layer_norm"}};
constexpr GgufName kNomicMixtureTensors[] = {
    {"attn_qkv", "self_attn.qkv_proj"},        {"attn_output_norm", "self_attn_layer_norm"},
    {"layer_output_norm", "final_layer_norm"}, {"ffn_gate_inp", "mlp.router.layer"},
    {"ffn_up_exps", "mlp.experts.mlp.w1"},     {"ffn_down_exps", "mlp.experts.mlp.w2"}};
constexpr GgufKey kNomicMixtureKeys[] = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                         {"moe_every_n_layers", "moe_every_n_layers"},
                                         {"expert_count", "num_experts"},
                                         {"expert_used_count", "moe_top_k"}};
constexpr GgufKey kBertKeys[] = {{"attention.layer_norm_epsilon", "layer_norm_eps"}};

constexpr const char* kBertJudge = "BertForSequenceClassification";

// Gates lie before ups in one matrix, and the first layer has no norm before its attention.
constexpr GgufName kModernModel[] = {{"token_embd_norm.weight", "model.embed_norm.weight"},
                                     {"cls.weight", "head.dense.weight"},
                                     {"cls.bias", "head.dense.bias"},
                                     {"cls.norm.weight", "head.norm.weight"},
                                     {"cls.output.weight", "classifier.weight"},
                                     {"cls.output.bias", "classifier.bias"}};
constexpr GgufName kModernTensors[] = {{"attn_norm", "self_attn_layer_norm"},
                                       {"attn_qkv", "self_attn.qkv_proj"},
                                       {"ffn_norm", "final_layer_norm"},
                                       {"ffn_up", "mlp.gate_up_proj"}};
constexpr GgufKey kModernKeys[] = {{"attention.layer_norm_epsilon", "norm_eps"},
                                   {"attention.sliding_window", "local_attention"}};

constexpr GgufName kJinaTensors[] = {{"attn_output_norm", "self_attn_layer_norm"},
                                     {"layer_output_norm", "final_layer_norm"},
                                     {"ffn_up", "mlp.gate_up_proj"}};

constexpr GgufName kGemmaTensorsToEmbed[] = {{"post_attention_norm", "post_attention_layernorm"},
                                             {"ffn_norm", "pre_feedforward_layernorm"},
                                             {"post_ffw_norm", "post_feedforward_layernorm"}};

Status read_labels(const GgufFile& file, const std::string& architecture, Json& config) {
  FT_ASSIGN_OR_RETURN(const auto* labels, file.texts(architecture + ".classifier.output_labels"));
  for (size_t i = 0; labels != nullptr && i < labels->size(); ++i) {
    config["id2label"][std::to_string(i)] = (*labels)[i];
  }
  return {};
}

// The first rows of a table of positions, of padding, are cut off in files, and so RoBERTa is BERT.
// The converter leaves out what BERT puts between a text's state and its judgement, and one word of
// DistilBERT's; RoBERTa's is whole.
Status read_bert_file(const GgufFile& file, Json& config) {
  const auto& tensors = file.tensors();
  const auto kinds = tensors.find("token_types.weight");
  if (kinds != tensors.end() && kinds->second.shape.size() == 2) {
    config["type_vocab_size"] = kinds->second.shape[0];
  }
  FT_ASSIGN_OR_RETURN(const int marks, gguf_pair_marks(file));
  // RoBERTa has one kind of texts, whatever its table says.
  if (marks == 2) config["type_vocab_size"] = 1;
  const bool judges = tensors.contains("cls.output.weight");
  if (!judges) return {};
  if (!tensors.contains("cls.weight") || kinds == tensors.end()) {
    return unsupported(file.path() +
                       ": files of BERT and DistilBERT that judge texts lack a part that their "
                       "converter leaves out (the pooler), without which scores are wrong; use the "
                       "model's Hugging Face folder");
  }
  config["architectures"] = Json::array({kBertJudge});
  return read_labels(file, "bert", config);
}

Status read_modern_file(const GgufFile& file, Json& config) {
  FT_ASSIGN_OR_RETURN(const auto activation, file.text("modern-bert.hidden_activation"));
  if (activation) config["hidden_activation"] = *activation;
  if (!config.contains("layer_types")) {
    FT_ASSIGN_OR_RETURN(const auto period,
                        file.integer("modern-bert.attention.sliding_window_pattern"));
    if (period) config["global_attn_every_n_layers"] = *period;
  }
  if (!file.tensors().contains("cls.output.weight")) return {};
  config["architectures"] = Json::array({"ModernBertForSequenceClassification"});
  return read_labels(file, "modern-bert", config);
}

// What the shapes of tensors tell of Jina's models of code and others beside the first ones.
Status read_jina_file(const GgufFile& file, Json& config) {
  const auto& tensors = file.tensors();
  const char* part = tensors.contains("cls.weight")                 ? "cls.weight"
                     : tensors.contains("blk.0.attn_q_norm.weight") ? "blk.0.attn_q_norm.weight"
                     : tensors.contains("blk.0.ffn_gate.weight")    ? "blk.0.ffn_gate.weight"
                                                                    : nullptr;
  const auto inner = config["intermediate_size"].get<int64_t>();
  const auto up = tensors.find("blk.0.ffn_up.weight");
  const bool has_gates = up != tensors.end() && up->second.shape.size() == 2 &&
                         up->second.shape[0] % 2 == 0 && up->second.shape[0] / 2 == inner;
  if (part == nullptr && has_gates) return {};
  return unsupported(file.path() + ": Jina's model with '" +
                     (part != nullptr ? part : "blk.0.ffn_up.weight without gates") +
                     "' is not built; use the model's Hugging Face folder");
}

// Scores are scaled by the size of a head.
void complete_gemma_embedding(Json& config) {
  config["query_pre_attn_scalar"] = config["head_dim"];
  config["use_bidirectional_attention"] = true;
}

constexpr GgufArchitecture kEncoderArchitectures[] = {
    {.name = "bert",
     .hf_class = "BertModel",
     .model_type = "bert",
     .tensors = kBertTensors,
     .model_tensors = kBertModel,
     .keys = kBertKeys,
     .fields = R"({"hidden_act": "gelu", "is_causal": false})",
     .read = read_bert_file},
    {.name = "nomic-bert",
     .hf_class = "NomicBertModel",
     .model_type = "nomic_bert",
     .tensors = kBertTensors,
     .model_tensors = kBertModel,
     .keys = kBertKeys,
     .fields = R"({"is_causal": false})"},
    {.name = "nomic-bert-moe",
     .hf_class = "NomicBertModel",
     .model_type = "nomic_bert",
     .tensors = kNomicMixtureTensors,
     .model_tensors = kBertModel,
     .keys = kNomicMixtureKeys,
     .fields = R"({"activation_function": "gelu", "qkv_proj_bias": true, "is_causal": false})"},
    {.name = "eurobert",
     .hf_class = "EuroBertModel",
     .model_type = "eurobert",
     .fields = R"({"is_causal": false})"},
    {.name = "modern-bert",
     .hf_class = "ModernBertModel",
     .model_type = "modernbert",
     .tensors = kModernTensors,
     .model_tensors = kModernModel,
     .keys = kModernKeys,
     .fields = R"({"hidden_activation": "gelu", "is_causal": false})",
     .read = read_modern_file},
    {.name = "jina-bert-v2",
     .hf_class = "JinaBertModel",
     .model_type = "bert",
     .tensors = kJinaTensors,
     .model_tensors = kBertModel,
     .keys = kBertKeys,
     .fields = R"({"hidden_act": "gelu", "mlp_bias": false, "is_causal": false})",
     .read = read_jina_file},
    {.name = "gemma-embedding",
     .hf_class = "Gemma3TextModel",
     .model_type = "gemma3_text",
     .whole_norms = true,
     .tensors = kGemmaTensorsToEmbed,
     .fields = R"({"hidden_activation": "gelu_pytorch_tanh", "is_causal": false})",
     .complete = complete_gemma_embedding},
    {.name = "llama-embed",
     .hf_class = "LlamaBidirectionalModel",
     .model_type = "llama_bidirec",
     .interleaves_heads = true,
     .fields = R"({"is_causal": false})"},
};

}  // namespace

std::span<const GgufArchitecture> encoder_gguf_architectures() { return kEncoderArchitectures; }

}  // namespace foretoken
