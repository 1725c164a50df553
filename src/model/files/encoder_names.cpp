#include "model/files/encoder_names.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

namespace foretoken {
namespace {

struct NamePart {
  std::string_view own;
  std::string_view common;
};

constexpr std::string_view kWords[] = {"embeddings.word_embeddings.weight",
                                       "embeddings.tok_embeddings.weight"};

// Of a name behind its base: the first whose `own` it begins with.
constexpr NamePart kPlaces[] = {
    {"embeddings.word_embeddings.", "embed_tokens."},
    {"embeddings.tok_embeddings.", "embed_tokens."},
    {"embeddings.position_embeddings.", "embed_positions."},
    {"embeddings.LayerNorm.", "embed_norm."},
    {"embeddings.norm.", "embed_norm."},
    {"emb_ln.", "embed_norm."},
    {"encoder.albert_layer_groups.0.albert_layers.", "layers."},
    {"encoder.embedding_hidden_mapping_in.", "embed_proj."},
    {"embeddings_project.", "embed_proj."},
    {"encoder.layers.", "layers."},
    {"encoder.layer.", "layers."},
    {"transformer.layer.", "layers."},
    {"layers.", "layers."},
    {"final_norm.", "norm."},
    {"encoder.relative_attention_bias.", "relative_attention_bias."},
    {"encoder.rel_embeddings.", "rel_embeddings."},
    {"encoder.LayerNorm.", "rel_norm."},
};

// Inside a layer: the first that it has.
constexpr NamePart kParts[] = {
    {".attention.self.query.", ".self_attn.q_proj."},
    {".attention.self.key.", ".self_attn.k_proj."},
    {".attention.self.value.", ".self_attn.v_proj."},
    {".attention.self.query_proj.", ".self_attn.q_proj."},
    {".attention.self.key_proj.", ".self_attn.k_proj."},
    {".attention.self.value_proj.", ".self_attn.v_proj."},
    {".attention.output.dense.", ".self_attn.o_proj."},
    {".attention.output.LayerNorm.", ".self_attn_layer_norm."},
    {".intermediate.dense.", ".mlp.up_proj."},
    {".output.dense.", ".mlp.down_proj."},
    {".output.LayerNorm.", ".final_layer_norm."},
    {".attention.q_lin.", ".self_attn.q_proj."},
    {".attention.k_lin.", ".self_attn.k_proj."},
    {".attention.v_lin.", ".self_attn.v_proj."},
    {".attention.out_lin.", ".self_attn.o_proj."},
    {".sa_layer_norm.", ".self_attn_layer_norm."},
    {".ffn.lin1.", ".mlp.up_proj."},
    {".ffn.lin2.", ".mlp.down_proj."},
    {".output_layer_norm.", ".final_layer_norm."},
    {".attn.Wqkv.", ".self_attn.qkv_proj."},
    {".attn.out_proj.", ".self_attn.o_proj."},
    {".mixer.Wqkv.", ".self_attn.qkv_proj."},
    {".mixer.out_proj.", ".self_attn.o_proj."},
    {".mlp.fc1.", ".mlp.up_proj."},
    {".mlp.fc11.", ".mlp.up_proj."},
    {".mlp.fc12.", ".mlp.gate_proj."},
    {".mlp.fc2.", ".mlp.down_proj."},
    {".attention.attn.q.", ".self_attn.q_proj."},
    {".attention.attn.k.", ".self_attn.k_proj."},
    {".attention.attn.v.", ".self_attn.v_proj."},
    {".attention.attn.o.", ".self_attn.o_proj."},
    {".attention.LayerNorm.", ".self_attn_layer_norm."},
    {".mlp.gated_layers.", ".mlp.gate_up_proj."},
    {".mlp.wo.", ".mlp.down_proj."},
    {".mlp.layernorm.", ".final_layer_norm."},
    {".attention.qkv_proj.", ".self_attn.qkv_proj."},
    {".attention.o_proj.", ".self_attn.o_proj."},
    {".mlp.up_gate_proj.", ".mlp.gate_up_proj."},
    {".attn_ln.", ".self_attn_layer_norm."},
    {".mlp_ln.", ".final_layer_norm."},
    {".attn.Wo.", ".self_attn.o_proj."},
    {".mlp.Wi.", ".mlp.gate_up_proj."},
    {".mlp.Wo.", ".mlp.down_proj."},
    {".attn_norm.", ".self_attn_layer_norm."},
    {".mlp_norm.", ".final_layer_norm."},
    {".attention.query.", ".self_attn.q_proj."},
    {".attention.key.", ".self_attn.k_proj."},
    {".attention.value.", ".self_attn.v_proj."},
    {".attention.dense.", ".self_attn.o_proj."},
    {".ffn.", ".mlp.up_proj."},
    {".ffn_output.", ".mlp.down_proj."},
    {".full_layer_layer_norm.", ".final_layer_norm."},
    {".norm1.", ".self_attn_layer_norm."},
    {".norm2.", ".final_layer_norm."},
};

// Classes that tell the texts of a pair apart.
constexpr const char* kJudgesOfKinds[] = {
    "AlbertForSequenceClassification", "BertForSequenceClassification",
    "ElectraForSequenceClassification", "ErnieForSequenceClassification"};

// Norms of the first files of BERT.
constexpr NamePart kEndings[] = {{".gamma", ".weight"}, {".beta", ".bias"}};

// Of a matrix that is stored beside the adapters of tasks (Jina Embeddings 3).
constexpr std::string_view kAdapted = ".parametrizations.weight.";

// Empty: it is an adapter.
std::string without_adapters(std::string name) {
  const size_t at = name.find(kAdapted);
  if (at == std::string::npos) return name;
  if (name.substr(at + kAdapted.size()) != "original") return "";
  return name.substr(0, at) + ".weight";
}

std::string with_endings(std::string name) {
  for (const NamePart& ending : kEndings) {
    if (!name.ends_with(ending.own)) continue;
    name.replace(name.size() - ending.own.size(), ending.own.size(), ending.common);
  }
  return name;
}

std::string with_parts(std::string name) {
  for (const NamePart& part : kParts) {
    const size_t at = name.find(part.own);
    if (at != std::string::npos) return name.replace(at, part.own.size(), part.common);
  }
  return name;
}

}  // namespace

std::optional<std::string> encoder_base(const std::string& name) {
  const std::string plain = without_adapters(name);
  for (const std::string_view words : kWords) {
    if (plain.ends_with(words)) return plain.substr(0, plain.size() - words.size());
  }
  return std::nullopt;
}

bool tells_kinds(const nlohmann::json& config) {
  const auto names = config.find("architectures");
  const auto kinds = config.find("type_vocab_size");
  const bool are_names = names != config.end() && names->is_array() && !names->empty();
  const auto is_named = [&](const char* name) { return are_names && (*names)[0] == name; };
  return std::any_of(std::begin(kJudgesOfKinds), std::end(kJudgesOfKinds), is_named) &&
         kinds != config.end() && kinds->is_number_integer() && *kinds == 2;
}

std::string name_without_encoder(const std::string& base, const std::string& name) {
  if (!name.starts_with(base)) return name;
  const std::string own = with_endings(without_adapters(name.substr(base.size())));
  if (own == "embeddings.position_ids" || own == "embeddings.token_type_ids") return "";
  for (const NamePart& place : kPlaces) {
    if (!own.starts_with(place.own)) continue;
    return "model." + with_parts(std::string(place.common) + own.substr(place.own.size()));
  }
  return own;
}

}  // namespace foretoken
