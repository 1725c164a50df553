#include "model/config/index_config.h"

#include <algorithm>
#include <string>

#include "kernels/latent/choose_entries.h"
#include "kernels/latent/index_rows.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Status check_most(const ConfigFields& fields, const char* name, int32_t value, int32_t most) {
  if (value <= most) return {};
  return unsupported(fields.where() + ": " + name + " " + std::to_string(value) +
                     " is not supported; the most is " + std::to_string(most));
}

Status check_index_sizes(const ConfigFields& fields, const IndexConfig& index, int32_t rope_dim) {
  FT_RETURN_IF_ERROR(check_most(fields, "index_topk", index.top, kMaxChosen));
  FT_RETURN_IF_ERROR(check_most(fields, "index_n_heads", index.num_heads, kMaxIndexHeads));
  FT_RETURN_IF_ERROR(check_most(fields, "index_head_dim", index.head_dim, kMaxIndexDim));
  if (index.head_dim % kIndexDimStep == 0 && index.head_dim >= rope_dim) return {};
  return unsupported(fields.where() + ": index_head_dim " + std::to_string(index.head_dim) +
                     " is not supported; it must be a multiple of " +
                     std::to_string(kIndexDimStep) + " and not below qk_rope_head_dim");
}

// One entry a layer: whether it shares. `shares` and `owns` are the words for it.
Status mark_listed_layers(const ConfigFields& fields, const char* name, const Json& list,
                          const char* shares, const char* owns, std::vector<LayerConfig>* layers) {
  const bool fits = list.is_array() && list.size() >= layers->size() &&
                    std::all_of(list.begin(), list.end(), [&](const Json& entry) {
                      return entry == shares || entry == owns;
                    });
  if (!fits) {
    return fields.wrong(name, "\"" + std::string(owns) + "\" or \"" + shares + "\" for each layer");
  }
  for (size_t i = 0; i < layers->size(); ++i) (*layers)[i].shares_index = list[i] == shares;
  return {};
}

Status mark_layers(const ConfigFields& fields, std::vector<LayerConfig>* layers) {
  if (const Json* types = fields.find("indexer_types"); types != nullptr) {
    return mark_listed_layers(fields, "indexer_types", *types, "shared", "full", layers);
  }
  const char* name = "index_topk_pattern";
  if (const Json* pattern = fields.find(name); pattern != nullptr) {
    if (!pattern->is_string()) {
      return mark_listed_layers(fields, name, *pattern, "shared", "full", layers);
    }
    Json letters = Json::array();
    for (const char letter : pattern->get_ref<const std::string&>()) {
      letters.push_back(std::string(1, letter));
    }
    return mark_listed_layers(fields, name, letters, "S", "F", layers);
  }
  int32_t period = 1, offset = 2;
  FT_RETURN_IF_ERROR(fields.read_count("index_topk_freq", &period));
  FT_RETURN_IF_ERROR(fields.read_count("index_skip_topk_offset", &offset));
  for (size_t i = 0; i < layers->size(); ++i) {
    const auto behind = static_cast<int32_t>(i) - offset + 1;
    (*layers)[i].shares_index = std::max(behind, 0) % period != 0;
  }
  return {};
}

}  // namespace

Result<IndexConfig> read_index_config(const ConfigFields& fields, int32_t rope_dim) {
  IndexConfig index;
  if (fields.find("index_topk") == nullptr) return index;
  FT_RETURN_IF_ERROR(fields.need_count("index_topk", &index.top));
  FT_RETURN_IF_ERROR(fields.need_count("index_n_heads", &index.num_heads));
  FT_RETURN_IF_ERROR(fields.need_count("index_head_dim", &index.head_dim));
  FT_RETURN_IF_ERROR(fields.read_flag("indexer_rope_interleave", &index.paired));
  if (fields.find("q_lora_rank") == nullptr) return fields.missing("q_lora_rank");
  FT_RETURN_IF_ERROR(check_index_sizes(fields, index, rope_dim));
  return index;
}

Status read_index_sharing(const ConfigFields& fields, std::vector<LayerConfig>* layers) {
  FT_RETURN_IF_ERROR(mark_layers(fields, layers));
  if (layers->empty() || !layers->front().shares_index) return {};
  return invalid_argument(fields.where() +
                          ": the first layer attends to what a layer before it has chosen, and "
                          "there is none; correct 'indexer_types'");
}

}  // namespace foretoken
