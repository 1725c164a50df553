#include "model/arch/recurrent/nemotron_blocks.h"

#include <nlohmann/json.hpp>
#include <string>

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kBlocks = "block_configs";
constexpr const char* kModuleBlocks = "mtp_block_configs";

// A field of a block, and whether layers of one kind may differ in it.
struct BlockField {
  const char* type;
  const char* name;
  bool differs;
};
constexpr BlockField kBlockFields[] = {
    {"moe", "n_routed_experts", false},
    {"moe", "num_experts_per_tok", true},
    {"moe", "moe_intermediate_size", true},
    {"moe", "moe_shared_expert_intermediate_size", false},
    {"moe", "moe_latent_size", false},
    {"moe", "routed_scaling_factor", false},
    {"moe", "n_group", false},
    {"moe", "topk_group", false},
    {"moe", "norm_topk_prob", false},
    {"mamba", "ssm_state_size", false},
    {"mlp", "intermediate_size", true},
};

const BlockField* find_block_field(const std::string& type, const std::string& name) {
  for (const BlockField& field : kBlockFields) {
    if (type == field.type && name == field.name) return &field;
  }
  return nullptr;
}

Status refuse_block(const ConfigFields& fields, const char* list, size_t index,
                    const std::string& what) {
  return unsupported(fields.where() + ": " + list + " " + std::to_string(index) + ": " + what +
                     "; use a model such as Nemotron 3 Puzzle");
}

// Takes a block's fields to where those of all layers stand.
Status take_block(const ConfigFields& fields, const char* list, size_t index, Json* common,
                  Json* types) {
  const Json& block = (*fields.find(list))[index];
  const auto type = block.is_object() ? block.find("block_type") : block.end();
  if (!block.is_object() || type == block.end() || !type->is_string()) {
    return fields.wrong(list, "a list of objects, each with its block_type");
  }
  types->push_back(*type);
  for (const auto& [name, value] : block.items()) {
    if (name == "block_type" || value.is_null()) continue;
    const BlockField* known = find_block_field(type->get<std::string>(), name);
    if (known == nullptr) {
      return refuse_block(fields, list, index, "'" + name.substr(0, 80) + "' is not supported");
    }
    const auto [at, added] = common->emplace(name, value);
    if (added || known->differs || *at == value) continue;
    return refuse_block(fields, list, index,
                        "'" + name + "' " + value.dump().substr(0, 40) +
                            " is not supported, as other layers have " + at->dump().substr(0, 40));
  }
  return {};
}

Status take_blocks(const ConfigFields& fields, const char* list, Json* common, Json* types) {
  const Json* blocks = fields.find(list);
  if (blocks == nullptr) return {};
  if (!blocks->is_array()) return fields.wrong(list, "a list with an object for each layer");
  for (size_t i = 0; i < blocks->size(); ++i) {
    FT_RETURN_IF_ERROR(take_block(fields, list, i, common, types));
  }
  return {};
}

}  // namespace

Status write_block_configs(const ConfigFields& fields, Json* json) {
  if (fields.find(kBlocks) == nullptr) return {};
  Json common = Json::object(), types = Json::array(), module_types = Json::array();
  FT_RETURN_IF_ERROR(take_blocks(fields, kModuleBlocks, &common, &module_types));
  FT_RETURN_IF_ERROR(take_blocks(fields, kBlocks, &common, &types));
  json->update(common);
  (*json)["layers_block_type"] = std::move(types);
  if (!module_types.empty()) (*json)["mtp_layers_block_type"] = std::move(module_types);
  return {};
}

Status read_block_sizes(const ConfigFields& fields, std::vector<LayerConfig>* layers) {
  const Json* blocks = fields.find(kBlocks);
  if (blocks == nullptr) return {};
  for (size_t i = 0; i < layers->size() && i < blocks->size(); ++i) {
    const Json& block = (*blocks)[i];
    const ConfigFields own = fields.of(block, std::string(kBlocks) + " " + std::to_string(i));
    LayerConfig& layer = (*layers)[i];
    FT_RETURN_IF_ERROR(own.read_count("moe_intermediate_size", &layer.expert_inner));
    FT_RETURN_IF_ERROR(own.read_count("num_experts_per_tok", &layer.top_experts));
    FT_RETURN_IF_ERROR(own.read_count("intermediate_size", &layer.intermediate_size));
  }
  return {};
}

}  // namespace foretoken
