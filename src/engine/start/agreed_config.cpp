#include "engine/start/agreed_config.h"

#include <foretoken/version.h>

#include <filesystem>

#include "base/files/text_file.h"
#include "config/engine_drafter_fields.h"
#include "config/engine_fields.h"

namespace foretoken {
namespace {

std::string model_identity(const std::string& model) {
  const Result<std::string> text = read_text_file(std::filesystem::path(model) / "config.json");
  return text.ok() ? group::digest(text.value()) : model;
}

// A path may differ by host.
std::string file_identity(const std::string& file) {
  const Result<std::string> text = read_text_file(file);
  return text.ok() ? group::digest(text.value()) : file;
}

// A value as ranks compare it.
std::string agreed_text(FieldAgreement agreement, const std::string& value) {
  switch (agreement) {
    case FieldAgreement::kDigest:
      return group::digest(value);
    case FieldAgreement::kModelConfig:
      return model_identity(value);
    case FieldAgreement::kFileText:
      return file_identity(value);
    case FieldAgreement::kNone:
    case FieldAgreement::kValue:
      break;
  }
  return value;
}

std::string text_of(const SpeculativeConfig& drafter) {
  std::string text;
  for (const DrafterField& field : drafter_fields()) {
    const std::string value = drafter_field_text(field, drafter);
    text += std::string(field.name) + "=" +
            (value.empty() ? value : agreed_text(field.agreement, value)) + " ";
  }
  text +=
      std::to_string(drafter.prompt_lookup_min) + " " + std::to_string(drafter.prompt_lookup_max);
  if (drafter.leads) text += " leads";
  for (const auto& [name, value] : drafter.method_fields) {
    text += " " + name + "=" + std::to_string(value);
  }
  return text;
}

std::string text_of(const std::vector<SpeculativeConfig>& drafters) {
  if (drafters.empty()) return "none";
  std::string text;
  for (const SpeculativeConfig& drafter : drafters) text += text_of(drafter) + ";";
  return drafters.front().method + " " + group::digest(text);
}

}  // namespace

group::AgreedParts agreed_parts(const EngineConfig& config) {
  group::AgreedParts parts = {{"foretoken of version", kVersion}};
  for (const EngineField& field : engine_fields()) {
    if (field.agreement == FieldAgreement::kNone) continue;
    const bool is_model = field.agreement == FieldAgreement::kModelConfig;
    const std::string name = engine_flag(field);
    parts.push_back({is_model ? "a " + name + " whose config.json is" : name,
                     agreed_text(field.agreement, engine_field_text(field, config))});
  }
  parts.push_back({"--speculative-config", text_of(config.speculative)});
  return parts;
}

}  // namespace foretoken
