#include "draft/config_check.h"

#include "draft/drafter_parts.h"
#include "kernels/step_types.h"

namespace foretoken {
namespace {

Status check_count(const SpeculativeConfig& config, const DrafterTraits& traits) {
  const int count = config.num_speculative_tokens;
  if (count >= 1 && count <= kMaxDraftTokens) return {};
  if (count == 0 && traits.counts_itself) return {};
  return invalid_argument("speculative config: num_speculative_tokens is " + std::to_string(count) +
                          (count == 0 ? " or not given" : "") + "; give a number from 1 to " +
                          std::to_string(kMaxDraftTokens) +
                          (count == 0 ? ", or no speculative config at all" : ""));
}

Status useless(const std::string& field, const std::string& method, const std::string& reason) {
  return compat({.drafter = method, .idle_field = field, .idle_because = reason});
}

// A drafter that reads no files has no use for what is about them.
Status check_without_files(const SpeculativeConfig& config, const DrafterEntry& entry) {
  if (!config.model.empty()) {
    const Result<const DrafterEntry*> named = find_drafter(config.model);
    if (!named.ok() || named.value() != &entry) {
      return useless("model", entry.name, "which reads the sequence's own tokens");
    }
  }
  if (config.draft_vocab_size != 0 || !config.draft_vocab_file.empty()) {
    return useless(config.draft_vocab_size != 0 ? "draft_vocab_size" : "draft_vocab_file",
                   entry.name, "which has no output matrix");
  }
  if (config.draft_sample_method != "greedy") {
    return useless("draft_sample_method " + config.draft_sample_method, entry.name,
                   "which has no distribution");
  }
  if (!config.revision.empty()) return useless("revision", entry.name, "which has no files");
  if (!config.quantization.empty()) {
    return useless("quantization", entry.name, "which has no weights");
  }
  return {};
}

// Fields of other methods do nothing; the method judges its own.
Status check_fields(const SpeculativeConfig& config, const DrafterEntry& entry) {
  for (const DrafterEntry& other : drafters()) {
    if (&other == &entry) continue;
    for (const MethodField& field : other.fields) {
      if (!is_given(config, field)) continue;
      return useless(field.name, entry.name, "it belongs to method " + std::string(other.name));
    }
  }
  return entry.check == nullptr ? Status() : entry.check(config);
}

}  // namespace

Status check_config(const SpeculativeConfig& config, const DrafterEntry& entry) {
  const DrafterTraits& traits = entry.traits;
  FT_RETURN_IF_ERROR(check_count(config, traits));
  if (!traits.reads_files) FT_RETURN_IF_ERROR(check_without_files(config, entry));
  FT_RETURN_IF_ERROR(check_fields(config, entry));
  Combination c;
  add_drafter(config, entry, &c);
  FT_RETURN_IF_ERROR(compat(c));
  if (config.model.empty() && traits.needs_model) {
    return invalid_argument("speculative config: method " + std::string(entry.name) +
                            " needs `model` (--spec-model), the folder or Hub id of its weights");
  }
  return {};
}

}  // namespace foretoken
