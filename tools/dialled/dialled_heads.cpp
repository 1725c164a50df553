#include "dialled/dialled_heads.h"

#include <foretoken/limits.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "dialled/dialled_parts.h"
#include "model/registry.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

// A layer of a head that disturbs as much as all layers of a target.
const float kDeviation = kDialledPerturbation / std::sqrt(2.0f);

// The dialled target's Llama layer, whatever its architecture is: heads have it.
DialledShape llama_shape(const DialledShape& target) {
  DialledShape shape = target;
  shape.architecture = kLlamaArchitecture.name;
  shape.num_layers = 1;
  shape.num_mtp_modules = 0;
  return shape;
}

// What the head proposes after each id; -1: nothing.
std::vector<int32_t> head_successors(const DialledShape& target, double agreement) {
  DialledShape shape = target;
  shape.agreement = agreement;
  return dialled_successors(shape);
}

void add_eagle(const DialledShape& target, const ModelConfig& config, const DialledHead& head,
               DialledTensors* out) {
  const DialledShape shape = llama_shape(target);
  out->add_blocks("fc.weight", shape.hidden_size, {1, 0}, kDialledPerturbation);
  for (int32_t i = 0; i < head.num_layers; ++i) {
    const DialledLayer layer{shape, config, kLlamaArchitecture.decoder, kDeviation, i > 0};
    add_dialled_layer(layer, "layers." + std::to_string(i) + ".", out);
  }
  out->add_codes("lm_head.weight",
                 dialled_head_words(shape, head_successors(target, head.agreement)),
                 dialled_head_scale(shape.hidden_size));
}

// Heads of 32 make a token's score with itself stand out (see add_eagle3).
int32_t eagle3_head_dim(int32_t hidden) {
  return hidden % 32 == 0 ? 32 : hidden % 16 == 0 ? 16 : 2;
}

std::vector<int32_t> eagle3_taps(int32_t layers) {
  if (layers >= 3) return {0, layers / 2, layers - 1};
  return layers == 2 ? std::vector<int32_t>{0, 1} : std::vector<int32_t>{0};
}

// The share of ids in the output matrix of an EAGLE-3 head.
int32_t eagle3_vocab(const DialledShape& target, const DialledHead& head) {
  if (head.draft_vocab_size > 0) return head.draft_vocab_size;
  return static_cast<int32_t>(std::lround((1 + head.agreement) / 2 * target.vocab_size));
}

// So many ids, ascending.
std::vector<int32_t> some_ids(int32_t vocab, int32_t count, uint64_t seed) {
  std::vector<int32_t> ids(static_cast<size_t>(vocab));
  std::iota(ids.begin(), ids.end(), 0);
  std::mt19937_64 engine(seed);
  for (size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[engine() % i]);
  ids.resize(static_cast<size_t>(count));
  std::sort(ids.begin(), ids.end());
  return ids;
}

void add_eagle3_head(const DialledShape& target, const DialledHead& head, DialledTensors* out) {
  const int32_t rows = eagle3_vocab(target, head);
  const std::vector<int32_t> ids = some_ids(target.vocab_size, rows, target.seed ^ 0xEA61Eull);
  const double share = static_cast<double>(rows) / target.vocab_size;
  const std::vector<int32_t> all =
      dialled_head_words(target, head_successors(target, std::min(1.0, head.agreement / share)));
  std::vector<int32_t> words;
  std::vector<int64_t> offsets;
  std::vector<bool> kept(static_cast<size_t>(target.vocab_size));
  for (size_t row = 0; row < ids.size(); ++row) {
    words.push_back(all[static_cast<size_t>(ids[row])]);
    offsets.push_back(ids[row] - static_cast<int64_t>(row));
    kept[static_cast<size_t>(ids[row])] = true;
  }
  out->add_codes("lm_head.weight", words, dialled_head_scale(target.hidden_size));
  out->add_integers("d2t", offsets);
  out->add_flags("t2d", kept);
}

// A layer that reads the rows before it and hardly changes the residual.
void add_quiet_layer(const DialledShape& shape, const ModelConfig& config, const std::string& base,
                     DialledTensors* out) {
  out->add_constant(base + "input_layernorm.weight", shape.hidden_size, 1);
  for (const char* name : {"q_proj", "k_proj"}) {
    out->add_blocks(base + "self_attn." + name + ".weight", shape.hidden_size, {0.5f}, 0.2f);
  }
  for (const char* name : {"v_proj", "o_proj"}) {
    const float gain = *name == 'v' ? 1.0f : 0.0f;
    out->add_blocks(base + "self_attn." + name + ".weight", shape.hidden_size, {gain}, kDeviation);
  }
  add_dialled_mlp({shape, config, kLlamaArchitecture.decoder, kDeviation}, base, out);
}

constexpr int32_t kMaskId = 1;  // no word

// The residual enters as the state of the token before, e(i-1), and has to leave as e(i). Queries
// and keys are the embedding times kSharpness, so that attention is nearly all on the token itself
// (its score is kSharpness^2 sqrt(head_dim), those of others have the deviation kSharpness^2);
// values are e(i) minus the normed state, which replaces the one by the other.
void add_eagle3(const DialledShape& target, const ModelConfig& config, const DialledHead& head,
                DialledTensors* out) {
  constexpr float kSharpness = 2;
  const DialledShape shape = llama_shape(target);
  const int32_t hidden = shape.hidden_size;
  std::vector<float> last_tap(eagle3_taps(target.num_layers).size(), 0.0f);
  last_tap.back() = 1;
  out->add_blocks("fc.weight", hidden, last_tap, kDialledPerturbation);
  const bool masks = head_traits(head.kind).learns_masks;
  if (masks) out->add_constant("mask_hidden", hidden * static_cast<int64_t>(last_tap.size()), 0.5f);
  const std::string base = masks ? "layers.0." : "midlayer.";
  out->add_constant(base + "hidden_norm.weight", hidden, 1);
  out->add_constant(base + "input_layernorm.weight", hidden, 1);
  for (const char* name : {"q_proj", "k_proj"}) {
    out->add_blocks(base + "self_attn." + name + ".weight", hidden, {kSharpness, 0}, 0.2f);
  }
  out->add_blocks(base + "self_attn.v_proj.weight", hidden, {1, -1}, kDeviation);
  out->add_blocks(base + "self_attn.o_proj.weight", hidden, {1}, 0);
  add_dialled_mlp({shape, config, kLlamaArchitecture.decoder, kDeviation}, base, out);
  for (int32_t i = 1; i < head.num_layers; ++i) {
    add_quiet_layer(shape, config, "layers." + std::to_string(i) + ".", out);
  }
  out->add_constant("norm.weight", hidden, 1);
  add_eagle3_head(target, head, out);
}

// What DFlash reads: the outputs of layers before the last, or the embedding.
std::vector<int32_t> dflash_taps(int32_t layers) {
  if (layers >= 3) return {0, layers - 2};
  return {layers - 2};
}

constexpr int32_t kDflashLayers = 2;

// Whether what follows a draft depends on it.
bool chains_drafts(const HeadTraits& traits) {
  return traits.reads_draft_before || traits.carries_drafts;
}

// The embedding has zeros for masks, so that their rows see everything alike: the token that is
// known last as its code, other masks as zeros, and what is kept of the target's states, which are
// small. What the first layer adds is hence that token's code, divided by the number of positions;
// all rows of a block propose what follows it.
void add_dflash(const DialledShape& target, const ModelConfig& config, const DialledHead& head,
                DialledTensors* out) {
  constexpr float kStates = 0.01f, kPositions = 200;
  const DialledShape shape = llama_shape(target);
  const int32_t hidden = shape.hidden_size;
  std::vector<float> last_tap(dflash_taps(target.num_layers).size(), 0.0f);
  last_tap.back() = 1;
  out->add_blocks("fc.weight", hidden, last_tap, kDialledPerturbation);
  out->add_constant("hidden_norm.weight", hidden, kStates);
  std::vector<int32_t> words(static_cast<size_t>(target.vocab_size));
  for (int32_t id = 0; id < target.vocab_size; ++id) {
    words[static_cast<size_t>(id)] = dialled_word(shape, id);
  }
  out->add_codes("embed_tokens.weight", words, 1);
  for (int32_t layer = 0; layer < kDflashLayers; ++layer) {
    const std::string base = "layers." + std::to_string(layer) + ".";
    out->add_constant(base + "input_layernorm.weight", hidden, 1);
    for (const char* name : {"q_proj", "k_proj"}) {
      out->add_blocks(base + "self_attn." + name + ".weight", hidden, {0.5f}, 0.2f);
    }
    const float gain = layer == 0 ? kPositions : 0;
    out->add_blocks(base + "self_attn.v_proj.weight", hidden, {1}, kDeviation);
    out->add_blocks(base + "self_attn.o_proj.weight", hidden, {gain}, kDeviation);
    add_dialled_mlp({shape, config, kLlamaArchitecture.decoder, kDeviation}, base, out);
  }
  out->add_constant("norm.weight", hidden, 1);
  out->add_codes(
      "lm_head.weight", dialled_head_words(shape, head_successors(target, head.agreement)),
      dialled_head_scale(hidden) * (chains_drafts(head_traits(head.kind)) ? 0.25f : 1));
}

// What follows the draft before weighs more than what follows the token before the block, so that
// all drafts can be right.
void add_markov(const DialledShape& target, const DialledHead& head, DialledTensors* out) {
  const DialledShape shape = llama_shape(target);
  std::vector<int32_t> words(static_cast<size_t>(target.vocab_size));
  for (int32_t id = 0; id < target.vocab_size; ++id) {
    words[static_cast<size_t>(id)] = dialled_word(shape, id);
  }
  out->add_codes("markov_head.markov_w1.weight", words, 1);
  out->add_codes("markov_head.markov_w2.weight",
                 dialled_head_words(shape, head_successors(target, head.agreement)),
                 dialled_head_scale(target.hidden_size));
  out->add_linear("confidence_head.proj", 1, 2 * int64_t{target.hidden_size}, 1, true);
}

// The same by a recurrent state, which both gates halve: n is nearly kRead x - state, so that half
// of it and half of the state leave kRead x / 2, whatever was read before. Its features are half of
// that, as silu is nearly x / 2 there.
void add_domino(const DialledShape& target, const DialledHead& head, DialledTensors* out) {
  constexpr float kRead = 0.2f;
  const int32_t hidden = target.hidden_size;
  out->add_gates("prefix_gru.weight_ih_l0", hidden, {0, 0, kRead});
  out->add_gates("prefix_gru.weight_hh_l0", hidden, {0, 0, -2});
  out->add_blocks("embed_proj.0.weight", hidden, {0, 1}, 0);
  out->add_codes(
      "embed_proj.2.weight",
      dialled_head_words(llama_shape(target), head_successors(target, head.agreement)),
      dialled_head_scale(hidden) * 4 / kRead);
}

struct Modules {
  int32_t count;
  double agreement;
};

void add_modules(const DialledShape& target, const ModelConfig& config, const DecoderTraits& traits,
                 const Modules& modules, DialledTensors* out) {
  const float norm = 1 - traits.norms.offset;
  for (int32_t i = 0; i < modules.count; ++i) {
    const std::string base = std::string(traits.places[0].body) + traits.layers +
                             std::to_string(target.num_layers + i) + ".";
    out->add_constant(base + "enorm.weight", target.hidden_size, norm);
    out->add_constant(base + "hnorm.weight", target.hidden_size, norm);
    out->add_blocks(base + "eh_proj.weight", target.hidden_size, {1, 0}, kDialledPerturbation);
    const bool experts = config.layers.back().experts;
    add_dialled_layer({target, config, traits, kDeviation, true, experts}, base, out);
    out->add_constant(base + "shared_head.norm.weight", target.hidden_size, norm);
    out->add_codes(base + "shared_head.head.weight",
                   dialled_head_words(target, head_successors(target, modules.agreement)),
                   dialled_head_scale(target.hidden_size));
  }
}

void add_block_fields(const DialledShape& target, const HeadTraits& traits, Json* config) {
  Json& file = *config;
  file["num_hidden_layers"] = kDflashLayers;
  file["block_size"] = kMaxOwnDrafts + (traits.anchor_drafts ? 0 : 1);
  file["dflash_config"] = {{"mask_token_id", kMaskId},
                           {"target_layer_ids", dflash_taps(target.num_layers)}};
  file["architectures"] = {"DFlashDraftModel"};
  if (traits.reads_draft_before) {
    file["architectures"] = {"DSparkDraftModel"};
    file["dflash_config"]["markov_rank"] = target.hidden_size;
    file["dflash_config"]["enable_confidence_head"] = true;
  }
  if (traits.carries_drafts) {
    file["architectures"] = {"DominoDraftModel"};
    file["dflash_config"]["gru_hidden_dim"] = target.hidden_size;
    file["dflash_config"]["emb_dim"] = target.hidden_size;
  }
}

Json head_config(const DialledShape& target, const DialledHead& head) {
  const HeadTraits& traits = head_traits(head.kind);
  if (traits.of_target) {
    DialledShape with_modules = target;
    with_modules.num_mtp_modules = head.num_modules;
    return dialled_config(with_modules);
  }
  Json config = dialled_config(llama_shape(target));
  config["num_hidden_layers"] = head.num_layers;
  if (!traits.reads_taps()) {
    config["architectures"] = {"EagleLlamaForCausalLM"};
    return config;
  }
  const int32_t head_dim = eagle3_head_dim(target.hidden_size);
  config["head_dim"] = head_dim;
  config["num_attention_heads"] = target.hidden_size / head_dim;
  config["num_key_value_heads"] = target.hidden_size / head_dim;
  if (traits.drafts_blocks()) {
    add_block_fields(target, traits, &config);
    return config;
  }
  config["architectures"] = {"LlamaForCausalLMEagle3"};
  if (traits.learns_masks) {
    config["architectures"] = {"PEagleDraftModel"};
    config["mask_token_id"] = kMaskId;
  }
  config["draft_vocab_size"] = eagle3_vocab(target, head);
  config["eagle_config"] = {{"eagle_aux_hidden_state_layer_ids", eagle3_taps(target.num_layers)}};
  return config;
}

Status check_head(const DialledShape& target, const DialledHead& head) {
  if (head.agreement < 0 || head.agreement > 1) {
    return invalid_argument("agreement must lie between 0 and 1");
  }
  if (head.num_modules < 1 || (!has_modules(head.kind) && head.num_modules != 1)) {
    return invalid_argument("only a dialled MTP head has several modules");
  }
  if (head.num_layers < 1 || (!has_layers(head.kind) && head.num_layers != 1)) {
    return invalid_argument("only a dialled EAGLE head has several layers");
  }
  if (head.draft_vocab_size < 0 || head.draft_vocab_size > target.vocab_size) {
    return invalid_argument("draft_vocab_size must lie between 1 and the target's vocab_size");
  }
  return {};
}

}  // namespace

bool has_modules(HeadKind kind) { return head_traits(kind).of_target; }

bool has_layers(HeadKind kind) { return !has_modules(kind) && !head_traits(kind).drafts_blocks(); }

void add_dialled_modules(const DialledShape& shape, const ModelConfig& config,
                         const DecoderTraits& traits, DialledTensors* out) {
  add_modules(shape, config, traits, {shape.num_mtp_modules, shape.mtp_agreement}, out);
}

Status write_dialled_head(const std::string& folder, const DialledShape& target,
                          const DialledHead& head) {
  FT_RETURN_IF_ERROR(check_dialled_shape(target));
  FT_RETURN_IF_ERROR(check_head(target, head));
  const Architecture* architecture = find_architecture(target.architecture);
  FT_ASSIGN_OR_RETURN(const ModelConfig config,
                      parse_model_config(nlohmann::json(dialled_config(target)),
                                         nlohmann::json::object(), {}, "the dialled config"));
  FT_ASSIGN_OR_RETURN(const ModelConfig llama,
                      parse_model_config(nlohmann::json(dialled_config(llama_shape(target))),
                                         nlohmann::json::object(), {}, "the dialled config"));
  DialledTensors tensors(target.dtype, target.hidden_size);
  const HeadTraits& traits = head_traits(head.kind);
  switch (traits.entry) {
    case HeadEntry::kSummed:
      add_eagle(target, llama, head, &tensors);
      break;
    case HeadEntry::kPaired:
      add_eagle3(target, llama, head, &tensors);
      break;
    case HeadEntry::kNormed:
      add_modules(target, config, architecture->decoder, {head.num_modules, head.agreement},
                  &tensors);
      break;
    case HeadEntry::kBlock:
      add_dflash(target, llama, head, &tensors);
      if (traits.reads_draft_before) add_markov(target, head, &tensors);
      if (traits.carries_drafts) add_domino(target, head, &tensors);
      break;
  }
  FT_RETURN_IF_ERROR(make_dialled_folder(folder));
  FT_RETURN_IF_ERROR(write_dialled_json(folder, "config.json", head_config(target, head)));
  return write_safetensors((std::filesystem::path(folder) / "model.safetensors").string(),
                           tensors.take());
}

}  // namespace foretoken
