#include "model/config/index_config.h"

#include <algorithm>
#include <string>

#include "kernels/latent/choose_blocks.h"
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

namespace {

Status check_block_index(const ConfigFields& fields, const BlockIndexConfig& index,
                         int32_t num_kv_heads, int32_t rotary_dim) {
  FT_RETURN_IF_ERROR(check_most(fields, "sparse_topk_blocks", index.top, kMaxChosenBlocks));
  FT_RETURN_IF_ERROR(check_most(fields, "sparse_index_dim", index.head_dim, kMaxIndexDim));
  if (index.head_dim % kIndexDimStep != 0 || index.head_dim < rotary_dim) {
    return unsupported(fields.where() + ": sparse_index_dim " + std::to_string(index.head_dim) +
                       " is not supported; it must be a multiple of " +
                       std::to_string(kIndexDimStep) + " and not below the turning part of a head");
  }
  if (index.block < num_kv_heads) {
    return unsupported(fields.where() + ": sparse_block_size " + std::to_string(index.block) +
                       " is not supported; it must be at least num_key_value_heads");
  }
  if (index.first + index.nearest <= index.top) return {};
  return invalid_argument(fields.where() +
                          ": sparse_init_block and sparse_local_block are more than "
                          "sparse_topk_blocks; correct the file");
}

// One number a layer, 1 where it chooses. Layers whose keys choose must not have values beside.
Status mark_choosing_layers(const ConfigFields& fields, std::vector<LayerConfig>* layers) {
  const auto read = [&](const char* name, const auto& set) -> Status {
    const Json* list = fields.find(name);
    if (list == nullptr) return {};
    const bool fits = list->is_array() && list->size() >= layers->size() &&
                      std::all_of(list->begin(), list->end(),
                                  [](const Json& each) { return each == 0 || each == 1; });
    if (!fits) return fields.wrong(name, "a list of 0 or 1 for each layer");
    for (size_t i = 0; i < layers->size(); ++i) FT_RETURN_IF_ERROR(set(i, (*list)[i] == 1));
    return {};
  };
  for (LayerConfig& layer : *layers) layer.chooses_blocks = true;
  FT_RETURN_IF_ERROR(read("sparse_attention_freq", [&](size_t i, bool chooses) -> Status {
    (*layers)[i].chooses_blocks = chooses;
    return {};
  }));
  return read("sparse_disable_index_value", [&](size_t i, bool disabled) -> Status {
    if (disabled || !(*layers)[i].chooses_blocks) return {};
    return unsupported(fields.where() +
                       ": sparse_disable_index_value 0 asks for indexers with values, which are "
                       "not supported; use a model like MiniMax M3, whose indexers have none");
  });
}

}  // namespace

Result<BlockIndexConfig> read_block_index(const ConfigFields& fields, int32_t num_kv_heads,
                                          int32_t rotary_dim, std::vector<LayerConfig>* layers) {
  BlockIndexConfig index;
  const char* name = "sparse_attention_config";
  const Json* found = fields.find(name);
  if (found == nullptr) return index;
  if (!found->is_object()) return fields.wrong(name, "an object");
  const ConfigFields own(*found, fields.where() + " (" + name + ")");
  bool is_sparse = true;
  FT_RETURN_IF_ERROR(own.read_flag("use_sparse_attention", &is_sparse));
  if (!is_sparse) return index;
  const Json* type = own.find("sparse_score_type");
  if (type != nullptr && *type != "max") {
    return unsupported(own.where() + ": sparse_score_type " + type->dump().substr(0, 80) +
                       " is not supported; supported: max");
  }
  int32_t heads = num_kv_heads;
  FT_RETURN_IF_ERROR(own.read_count("sparse_num_index_heads", &heads));
  if (heads != num_kv_heads) {
    return unsupported(own.where() + ": sparse_num_index_heads " + std::to_string(heads) +
                       " is not supported; it must be num_key_value_heads, " +
                       std::to_string(num_kv_heads));
  }
  FT_RETURN_IF_ERROR(own.need_count("sparse_index_dim", &index.head_dim));
  FT_RETURN_IF_ERROR(own.need_count("sparse_block_size", &index.block));
  FT_RETURN_IF_ERROR(own.need_count("sparse_topk_blocks", &index.top));
  FT_RETURN_IF_ERROR(own.read_count_or_none("sparse_init_block", &index.first));
  FT_RETURN_IF_ERROR(own.read_count("sparse_local_block", &index.nearest));
  FT_RETURN_IF_ERROR(check_block_index(own, index, num_kv_heads, rotary_dim));
  FT_RETURN_IF_ERROR(mark_choosing_layers(own, layers));
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
