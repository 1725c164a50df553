#pragma once
#include <foretoken/engine.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// The ids that a model was taught to fill gaps with. No id: the vocabulary has none.
struct InfillTokens {
  int32_t prefix = -1;
  int32_t suffix = -1;
  int32_t middle = -1;
  std::optional<int32_t> repository;
  std::optional<int32_t> file;
};

// Found by the names that families of models give them. Unsupported where there are none.
Result<InfillTokens> find_infill_tokens(const Engine& engine);

// What goes around a gap in a text.
struct InfillParts {
  std::string prefix;
  std::string suffix;
  std::string prompt;  // what the gap begins with
  // {"filename", "text"} of other files, for the model to look at.
  std::vector<std::pair<std::string, std::string>> extra;
};

// The prompt as ids, laid out as llama.cpp does it: other files, prefix, suffix, and the token that
// asks for the middle. With the special tokens that the model expects before a prompt.
Result<std::vector<int32_t>> infill_prompt(const Engine& engine, const InfillTokens& tokens,
                                           const InfillParts& parts);

}  // namespace foretoken
