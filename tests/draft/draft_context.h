#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "draft/drafter_cases.h"

namespace foretoken::test {

// A dialled target, and what a drafter on it is made from.
class DraftContext {
 public:
  explicit DraftContext(const DialledShape& shape = dialled_target())
      : folder_(dialled_folder(shape)) {
    LoadOptions options;
    options.max_rows = 16;
    options.max_logits_rows = 4;
    target_ = load_model(*test_device(), folder_, options).value();
  }

  Result<std::unique_ptr<Drafter>> make(const SpeculativeConfig& config, bool dummy = false) const {
    return make_drafter(context(config, dummy));
  }
  // The folder is config.model. `config` must outlive it.
  DrafterContext context(const SpeculativeConfig& config, bool dummy = false) const {
    return {.config = config,
            .device = *test_device(),
            .target = *target_,
            .target_folder = folder_,
            .folder = config.model,
            .attention = find_attention_backend("auto", *test_device()).value(),
            .max_model_len = 256,
            .max_rows = 16,
            .max_spans = 4,
            .dummy = dummy,
            .token_map = {},
            .token_map_back = {},
            .draft_vocab_ids = {}};
  }
  const std::string& target_folder() const { return folder_; }

 private:
  const std::string folder_;
  std::unique_ptr<Model> target_;
};

// The message of a drafter that cannot be made: one line.
inline std::string refusal(const Result<std::unique_ptr<Drafter>>& drafter) {
  if (drafter.ok()) return "(made)";
  EXPECT_EQ(drafter.status().message().find('\n'), std::string::npos);
  return drafter.status().message();
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

}  // namespace foretoken::test
