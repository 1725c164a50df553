#include "draft/pard.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "draft/draft_model.h"
#include "model/config/config.h"
#include "model/files/containers/json_file.h"

namespace foretoken {
namespace {

// Names that published models and vLLM have for it.
constexpr const char* kMaskNames[] = {"pard_token", "ptd_token_id"};

// The id under one of its names.
Result<int32_t> read_mask_id(const std::string& folder, int32_t vocab_size) {
  const std::string where = (std::filesystem::path(folder) / "config.json").string();
  FT_ASSIGN_OR_RETURN(const nlohmann::json config, read_model_json(folder, "config.json"));
  for (const char* name : kMaskNames) {
    const auto id = config.find(name);
    if (id == config.end() || id->is_null()) continue;
    if (id->is_number_integer() && *id >= 0 && *id < vocab_size) return id->get<int32_t>();
    return invalid_argument(where + ": '" + name + "' is " + id->dump().substr(0, 80) +
                            ", but must be an id below vocab_size " + std::to_string(vocab_size));
  }
  return invalid_argument(where +
                          ": 'pard_token' is missing, so that the model was not trained for "
                          "parallel drafts; use method draft_model");
}

}  // namespace

Result<std::unique_ptr<Drafter>> make_pard_drafter(const DrafterContext& context) {
  FT_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(context.folder, {}));
  FT_ASSIGN_OR_RETURN(const int32_t mask_id, read_mask_id(context.folder, config.vocab_size));
  return make_parallel_model_drafter(context, "pard", mask_id);
}

std::optional<int32_t> pard_mask_id(const std::string& folder) {
  const Result<nlohmann::json> file = read_model_json(folder, "config.json");
  if (!file.ok()) return std::nullopt;
  for (const char* name : kMaskNames) {
    const auto found = file.value().find(name);
    if (found != file.value().end() && found->is_number_integer()) return found->get<int32_t>();
  }
  return std::nullopt;
}

}  // namespace foretoken
