#include "draft/config_check.h"

#include "draft/ngram.h"
#include "kernels/step_types.h"

namespace foretoken {
namespace {

Status check_num_drafts(const SpeculativeConfig& config, const std::string& method) {
  const int count = config.num_speculative_tokens;
  if (count >= 1 && count <= kMaxDrafts) return {};
  if (count == 0 && method == "mtp") return {};
  return invalid_argument("speculative config: num_speculative_tokens is " + std::to_string(count) +
                          "; give a number from 1 to " + std::to_string(kMaxDrafts) +
                          (count == 0 ? ", or no speculative config at all" : ""));
}

Status useless(const std::string& field, const std::string& method, const std::string& reason) {
  return invalid_argument("speculative config: " + field + " does nothing with method " + method +
                          ", " + reason + "; leave it out");
}

Status check_ngram(const SpeculativeConfig& config) {
  if (!config.model.empty() && config.model != "ngram" && config.model != "[ngram]" &&
      config.model != "ngram_gpu") {
    return useless("model", "ngram", "which reads the sequence's own tokens");
  }
  if (config.draft_vocab_size != 0 || !config.draft_vocab_file.empty()) {
    return useless(config.draft_vocab_size != 0 ? "draft_vocab_size" : "draft_vocab_file", "ngram",
                   "which has no output matrix");
  }
  if (config.draft_sample_method != "greedy") {
    return useless("draft_sample_method " + config.draft_sample_method, "ngram",
                   "which has no distribution");
  }
  if (!config.revision.empty()) return useless("revision", "ngram", "which has no files");
  return lookup_range(config).status();
}

}  // namespace

Status check_config(const SpeculativeConfig& config, const std::string& method) {
  FT_RETURN_IF_ERROR(check_num_drafts(config, method));
  if (config.use_heterogeneous_vocab && method != "draft_model") {
    return invalid_argument(
        "speculative config: use_heterogeneous_vocab goes with method "
        "draft_model only, not with " +
        method + "; leave it out");
  }
  if (method == "ngram") return check_ngram(config);
  if (config.prompt_lookup_min != 0 || config.prompt_lookup_max != 0) {
    return useless(config.prompt_lookup_min != 0 ? "prompt_lookup_min" : "prompt_lookup_max",
                   method, "it belongs to method ngram");
  }
  if (config.model.empty() && method != "mtp") {
    return invalid_argument("speculative config: method " + method +
                            " needs `model` (--spec-model), the folder or Hub id of its weights");
  }
  return {};
}

}  // namespace foretoken
