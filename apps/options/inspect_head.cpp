#include "apps/options/inspect_head.h"

#include <algorithm>
#include <utility>

#include "apps/terminal/report.h"
#include "draft/parts/method.h"
#include "draft/registry.h"
#include "model/draft_head_config.h"
#include "model/draft_head_spec.h"
#include "model/files/containers/json_file.h"
#include "model/model.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

// The first of these fields that has a number, in the file or one of its objects.
int32_t number_in(const nlohmann::json& file, std::initializer_list<const char*> names,
                  int32_t otherwise) {
  for (const char* name : names) {
    for (const char* object : {"", "transformer_layer_config", "dflash_config", "text_config"}) {
      const auto nested = file.find(object);
      const nlohmann::json& fields = nested != file.end() && nested->is_object() ? *nested : file;
      const auto found = fields.find(name);
      if (found == fields.end() || !found->is_number_integer()) continue;
      if (*found > 0 && *found < 1 << 24) return found->get<int32_t>();
    }
  }
  return otherwise;
}

bool names_layers(const nlohmann::json& file) {
  const std::string text = file.dump();
  return text.find("_layer_ids\"") != std::string::npos;
}

// A target that the head could be of, as far as its own file tells.
ModelConfig possible_target(const nlohmann::json& file) {
  ModelConfig target;
  target.architecture = "LlamaForCausalLM";
  target.dtype = DType::kBF16;
  target.vocab_size = number_in(file, {"vocab_size", "truncated_vocab_size"}, 0);
  target.hidden_size =
      number_in(file, {"target_hidden_size", "backbone_hidden_size", "hidden_size", "emb_dim"}, 0);
  target.num_layers = number_in(file, {"num_target_layers"}, 1 << 16);
  return target;
}

ModelConfig target_of(const std::string& folder, const nlohmann::json& file,
                      const DrafterEntry& entry) {
  // Modules of a target have its sizes, and often its name with an ending.
  if (!entry.may_be_targets()) return possible_target(file);
  const Result<ModelConfig> own = read_model_config(folder, {});
  if (own.ok()) return own.value();
  ModelConfig target = possible_target(file);
  target.num_layers = number_in(file, {"num_hidden_layers"}, target.num_layers);
  return target;
}

ordered_json head_sizes(const DrafterEntry& entry, const DraftHeadConfig& head,
                        const ModelConfig& target, const nlohmann::json& file) {
  const ModelConfig& layer = head.layer;
  const int64_t bytes = static_cast<int64_t>(dtype_size(target.dtype));
  const int32_t num_layers = head.num_modules * head.num_layers;
  const auto num_states = static_cast<int64_t>(head.tap_layers.size());
  ordered_json sizes = {{"vocab_size", layer.vocab_size},
                        {"hidden_size", layer.hidden_size},
                        {"intermediate_size", layer.intermediate_size},
                        {"num_layers", num_layers},
                        {"num_heads", layer.num_heads},
                        {"num_kv_heads", layer.num_kv_heads},
                        {"head_dim", layer.head_dim},
                        {"target_hidden_size", target.hidden_size}};
  if (head.draft_vocab_size > 0) sizes["draft_vocab_size"] = head.draft_vocab_size;
  if (head.tap_layers != std::vector<int32_t>{TapSink::kFinalNorm} && names_layers(file)) {
    std::vector<int32_t> layers = head.tap_layers;
    std::replace(layers.begin(), layers.end(), TapSink::kLastLayer, target.num_layers);
    sizes["target_layers"] = layers;
  }
  if (head.traits().drafts_blocks()) sizes["block_size"] = head.block_size;
  if (entry.traits.drafts_at_once) sizes["mask_token_id"] = head.mask_id;
  if (head.markov_rank > 0) {
    sizes["markov_rank"] = head.markov_rank;
    sizes["confidence"] = head.has_confidence;
  }
  if (head.gru_size > 0) {
    sizes["gru_hidden_dim"] = head.gru_size;
    sizes["emb_dim"] = head.gru_rank;
  }
  sizes["weights_mib"] = mebibytes(draft_head_weight_bytes(head, target));
  sizes["kv_cache_bytes_per_token"] =
      bytes *
      (2LL * num_layers * layer.num_kv_heads * layer.head_dim + num_states * target.hidden_size);
  return sizes;
}

std::string use_of(const std::string& folder, const std::string& method) {
  return "--spec-method " + method + " --spec-model " + folder +
         " beside the --model that it was trained for";
}

// Heads without keys and values of their own.
Result<std::optional<ordered_json>> inspect_chain(const std::string& folder,
                                                  const DrafterEntry& entry) {
  FT_ASSIGN_OR_RETURN(const nlohmann::json file, read_model_json(folder, "config.json"));
  FT_ASSIGN_OR_RETURN(const ChainFiles files, entry.read_chain(folder, possible_target(file)));
  return std::optional<ordered_json>({{"drafter", entry.name},
                                      {"holds", entry.files},
                                      {"num_speculative_tokens", files.max_draft_tokens},
                                      {"kv_cache_bytes_per_token", 0},
                                      {"use", use_of(folder, entry.name)}});
}

}  // namespace

Result<std::optional<ordered_json>> inspect_head(const std::string& folder) {
  const MethodGuess guess = method_of_files(folder);
  const Result<const DrafterEntry*> named = find_drafter(guess.method);
  if (!named.ok()) return std::optional<ordered_json>();
  const DrafterEntry* entry = named.value();
  if (guess.certain && entry->read_chain != nullptr) return inspect_chain(folder, *entry);
  // A target may hold its modules itself.
  if (!entry->head || (entry->may_be_targets() && !guess.certain)) {
    return std::optional<ordered_json>();
  }
  FT_ASSIGN_OR_RETURN(const nlohmann::json file, read_model_json(folder, "config.json"));
  const ModelConfig target = target_of(folder, file, *entry);
  FT_ASSIGN_OR_RETURN(const DraftHeadConfig head,
                      read_draft_head_config(folder, *entry->head, target, {}));
  ordered_json shown = {{"drafter", entry->name}, {"holds", entry->files}};
  shown.update(head_sizes(*entry, head, target, file));
  shown["use"] = use_of(folder, guess.method);
  return std::optional(shown);
}

std::optional<ParallelModel> find_parallel_model(const std::string& folder) {
  const Result<const DrafterEntry*> entry = find_drafter(method_of_files(folder).method);
  if (!entry.ok() || entry.value()->mask_id == nullptr) return std::nullopt;
  const std::optional<int32_t> mask = entry.value()->mask_id(folder);
  if (!mask) return std::nullopt;
  return ParallelModel{entry.value()->name, *mask};
}

}  // namespace foretoken
