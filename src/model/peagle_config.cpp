#include "model/peagle_config.h"

#include <filesystem>

#include "model/files/containers/json_file.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kMaskNames[] = {"pard_token", "ptd_token_id", "mask_token_id"};

// SpecForge's training takes the id from here, too.
constexpr const char* kNested = "dflash_config";

// The id, where `fields` names it.
Result<bool> read_peagle_mask(const ConfigFields& fields, DraftHeadConfig* head) {
  for (const char* name : kMaskNames) {
    const Json* id = fields.find(name);
    if (id == nullptr) continue;
    if (!id->is_number_integer() || *id < 0 || *id >= head->layer.vocab_size) {
      return fields.wrong(name, "an id below vocab_size " + std::to_string(head->layer.vocab_size));
    }
    head->mask_id = id->get<int32_t>();
    return true;
  }
  return false;
}

}  // namespace

Status read_peagle_fields(const std::string& folder, const ConfigFields& fields,
                          DraftHeadConfig* head) {
  FT_ASSIGN_OR_RETURN(bool found, read_peagle_mask(fields, head));
  const Json* nested = fields.find(kNested);
  if (!found && nested != nullptr && nested->is_object()) {
    FT_ASSIGN_OR_RETURN(found, read_peagle_mask(fields.of(*nested, kNested), head));
  }
  const std::string where = (std::filesystem::path(folder) / "peagle_config.json").string();
  std::error_code ignored;
  if (!std::filesystem::exists(where, ignored)) {
    if (found) return {};
    return invalid_argument(fields.where() +
                            ": 'mask_token_id' is missing, and there is no peagle_config.json "
                            "beside it that has it; add the id of the masks that the head was "
                            "trained with to config.json");
  }
  FT_ASSIGN_OR_RETURN(const Json file, read_json_file(where));
  const ConfigFields beside(file, where, false);
  if (!found) {
    FT_ASSIGN_OR_RETURN(const bool found_beside, read_peagle_mask(beside, head));
    if (!found_beside) return beside.missing("mask_token_id");
  }
  return fields.find("norm_before_residual") != nullptr
             ? Status()
             : beside.read_flag("norm_before_residual", &head->norm_before_residual);
}

}  // namespace foretoken
