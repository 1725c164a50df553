#include "dialled/dialled_chains.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "dialled/dialled_fill.h"
#include "dialled/dialled_parts.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

// What is emitted `after` ids, each of which is emitted after an id of its own.
std::vector<int32_t> behind(const std::vector<int32_t>& ids, const std::vector<int32_t>& after) {
  std::vector<int32_t> next(ids.size(), -1);
  for (size_t id = 0; id < ids.size(); ++id) {
    if (ids[id] >= 0) next[id] = after[static_cast<size_t>(ids[id])];
  }
  return next;
}

std::vector<int32_t> drafted_successors(const DialledShape& target, double agreement) {
  DialledShape shape = target;
  shape.agreement = agreement;
  return dialled_successors(shape);
}

// A state is nearly the code of its token. Head i proposes what follows the i + 1 ids that the
// target emits behind it, so that its draft is right where that of a chained head is.
Json add_medusa(const DialledShape& target, const DialledChain& chain, DialledTensors* out) {
  const std::vector<int32_t> emitted = dialled_successors(target);
  const std::vector<int32_t> drafted = drafted_successors(target, chain.agreement);
  std::vector<int32_t> known = emitted;
  for (int32_t head = 0; head < chain.num_draft_tokens; ++head) {
    const std::string base = std::to_string(head) + ".";
    out->add_blocks(base + "0.linear.weight", target.hidden_size, {0}, kDialledPerturbation);
    out->add_vector(base + "0.linear.bias", target.hidden_size, kDialledPerturbation);
    out->add_codes(base + "1.weight", dialled_head_words(target, behind(known, drafted)),
                   dialled_head_scale(target.hidden_size));
    known = behind(known, emitted);
  }
  return {{"medusa_num_heads", chain.num_draft_tokens},
          {"medusa_num_layers", 1},
          {"base_model_name_or_path", "dialled"}};
}

// The token's code outweighs the state by far, and is found again behind the activation.
Json add_speculator(const DialledShape& target, const DialledChain& chain, DialledTensors* out) {
  const int32_t hidden = target.hidden_size;
  std::vector<int32_t> words(static_cast<size_t>(target.vocab_size));
  for (int32_t id = 0; id < target.vocab_size; ++id) {
    words[static_cast<size_t>(id)] = dialled_word(target, id);
  }
  const std::string base = "speculator.";
  out->add_codes(base + "emb.0.weight", words, 1);
  for (const char* step : {"0", "1"}) {
    out->add_blocks(base + "proj." + step + ".weight", hidden, {0}, kDialledPerturbation);
  }
  out->add_constant(base + "ln.0.weight", hidden, 1);
  out->add_vector(base + "ln.0.bias", hidden, kDialledPerturbation);
  out->add_codes(base + "head.0.weight",
                 dialled_head_words(target, drafted_successors(target, chain.agreement)),
                 2 * dialled_head_scale(hidden));
  return {{"architectures", {"MLPSpeculatorPreTrainedModel"}},
          {"model_type", "mlp_speculator"},
          {"emb_dim", hidden},
          {"inner_dim", hidden},
          {"vocab_size", target.vocab_size},
          {"n_predict", chain.num_draft_tokens},
          {"tie_weights", true},
          {"scale_input", true}};
}

// A layer that attends to the target's keys and values and hardly changes the residual.
void add_reading_layer(const DialledShape& target, DialledTensors* out) {
  const int64_t hidden = target.hidden_size, inner = target.intermediate_size;
  const int64_t heads = int64_t{target.num_heads} * target.head_dim;
  const std::string base = "model.layers.0.";
  for (const char* name : {"input", "pre_feedforward"}) {
    out->add_constant(base + name + "_layernorm.weight", hidden, 1);
  }
  for (const char* name : {"post_attention", "post_feedforward"}) {
    out->add_constant(base + name + "_layernorm.weight", hidden, kDialledPerturbation / 2);
  }
  out->add_constant(base + "layer_scalar", 1, 1);
  out->add_constant(base + "self_attn.q_norm.weight", target.head_dim, 1);
  out->add_linear(base + "self_attn.q_proj", heads, hidden, 1, false);
  out->add_linear(base + "self_attn.o_proj", hidden, heads, 1, false);
  out->add_linear(base + "mlp.gate_proj", inner, hidden, 1, false);
  out->add_linear(base + "mlp.up_proj", inner, hidden, 1, false);
  out->add_linear(base + "mlp.down_proj", hidden, inner, 1, false);
}

// What enters is the token's code; the state before it and what its layer sees disturb it a little.
Json add_assistant(const DialledShape& target, const DialledChain& chain, DialledTensors* out) {
  const int32_t hidden = target.hidden_size;
  out->add_blocks("pre_projection.weight", hidden, {1, 0}, kDialledPerturbation);
  out->add_blocks("post_projection.weight", hidden, {1}, kDialledPerturbation);
  add_reading_layer(target, out);
  out->add_constant("model.norm.weight", hidden, 1);
  out->add_codes("model.embed_tokens.weight",
                 dialled_head_words(target, drafted_successors(target, chain.agreement)),
                 dialled_head_scale(hidden));
  Json config = {{"architectures", {"Gemma4AssistantForCausalLM"}},
                 {"model_type", "gemma4_assistant"},
                 {"backbone_hidden_size", hidden},
                 {"tie_word_embeddings", true},
                 {"text_config",
                  {{"model_type", "gemma4_text"},
                   {"vocab_size", target.vocab_size},
                   {"hidden_size", hidden},
                   {"intermediate_size", target.intermediate_size},
                   {"num_hidden_layers", 1},
                   {"num_attention_heads", target.num_heads},
                   {"num_key_value_heads", target.num_kv_heads},
                   {"head_dim", target.head_dim},
                   {"global_head_dim", target.head_dim},
                   {"layer_types", {"full_attention"}},
                   {"max_position_embeddings", target.max_position_embeddings}}}};
  if (chain.clusters == 0) return config;
  std::vector<int64_t> ids(static_cast<size_t>(target.vocab_size));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(ids.size() - 1 - i);
  out->add_integers("masked_embedding.token_ordering", ids);
  out->add_linear("masked_embedding.centroids", chain.clusters, hidden, 1, false);
  config["use_ordered_embeddings"] = true;
  config["num_centroids"] = chain.clusters;
  config["centroid_intermediate_top_k"] = chain.clusters;
  return config;
}

Json add_chain(const DialledShape& target, const DialledChain& chain, DialledTensors* out) {
  switch (chain.kind) {
    case DialledChain::Kind::kMlp:
      return add_speculator(target, chain, out);
    case DialledChain::Kind::kAssistant:
      return add_assistant(target, chain, out);
    case DialledChain::Kind::kMedusa:
      break;
  }
  return add_medusa(target, chain, out);
}

}  // namespace

Status write_dialled_chain(const std::string& folder, const DialledShape& target,
                           const DialledChain& chain) {
  FT_RETURN_IF_ERROR(check_dialled_shape(target));
  if (chain.agreement < 0 || chain.agreement > 1) {
    return invalid_argument("agreement must lie between 0 and 1");
  }
  if (chain.num_draft_tokens < 1 || chain.num_draft_tokens > 64) {
    return invalid_argument("num_draft_tokens of a dialled chain must lie between 1 and 64");
  }
  DialledTensors tensors(target.dtype, target.hidden_size);
  const Json config = add_chain(target, chain, &tensors);
  FT_RETURN_IF_ERROR(make_dialled_folder(folder));
  FT_RETURN_IF_ERROR(write_dialled_json(folder, "config.json", config));
  const bool is_medusa = chain.kind == DialledChain::Kind::kMedusa;
  const char* file = is_medusa ? "medusa_lm_head.safetensors" : "model.safetensors";
  return write_safetensors((std::filesystem::path(folder) / file).string(), tensors.take());
}

}  // namespace foretoken
