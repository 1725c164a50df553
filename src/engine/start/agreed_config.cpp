#include "engine/start/agreed_config.h"

#include <foretoken/version.h>

#include <filesystem>

#include "base/text_file.h"
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

std::string text_of(const SpeculativeConfig& drafter) {
  std::string text = drafter.method + " " + drafter.revision + " " + drafter.length_policy + " " +
                     drafter.rejection_sample_method + " " + drafter.draft_sample_method;
  if (!drafter.model.empty()) text += " " + model_identity(drafter.model);
  if (!drafter.draft_vocab_file.empty()) text += " " + file_identity(drafter.draft_vocab_file);
  for (const int number :
       {drafter.num_speculative_tokens, drafter.prompt_lookup_min, drafter.prompt_lookup_max,
        drafter.max_model_len, drafter.draft_tensor_parallel_size, drafter.draft_vocab_size,
        int{drafter.use_heterogeneous_vocab}}) {
    text += " " + std::to_string(number);
  }
  for (const DraftSchedule& part : drafter.num_speculative_tokens_per_batch_size) {
    text += " " + std::to_string(part.first) + "-" + std::to_string(part.last) + ":" +
            std::to_string(part.num_speculative_tokens);
  }
  for (const auto& [name, value] : drafter.method_fields) {
    text += " " + name + "=" + std::to_string(value);
  }
  for (const double rate : drafter.synthetic_acceptance_rates) text += " " + std::to_string(rate);
  return text + " " + std::to_string(drafter.synthetic_acceptance_length);
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
    const std::string value = engine_field_text(field, config);
    const std::string flag = engine_flag(field);
    switch (field.agreement) {
      case FieldAgreement::kNone:
        break;
      case FieldAgreement::kValue:
        parts.push_back({flag, value});
        break;
      case FieldAgreement::kDigest:
        parts.push_back({flag, group::digest(value)});
        break;
      case FieldAgreement::kModelConfig:
        parts.push_back({"a " + flag + " whose config.json is", model_identity(value)});
        break;
    }
  }
  parts.push_back({"--speculative-config", text_of(config.speculative)});
  return parts;
}

}  // namespace foretoken
