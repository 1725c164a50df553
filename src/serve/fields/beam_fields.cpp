#include "serve/fields/beam_fields.h"

#include <cmath>
#include <string>
#include <utility>

namespace foretoken {

std::optional<float> read_beams(JsonFields& fields, SamplingParams* sampling) {
  bool searches = false;
  float length_penalty = 1;
  fields.read("use_beam_search", &searches);
  fields.read("length_penalty", &length_penalty);
  if (!searches) return std::nullopt;
  if (!std::isfinite(length_penalty)) fields.fail("'length_penalty' must be a number");
  const std::pair<const char*, bool> unused[] = {
      {"stop", !sampling->stop.empty()},
      {"stop_token_ids", !sampling->stop_token_ids.empty()},
      {"min_tokens", sampling->min_tokens > 0},
      {"logit_bias", !sampling->logit_bias.empty()},
      {"bad_words", !sampling->bad_words.empty()},
      {"allowed_token_ids", sampling->allowed_token_ids.has_value()},
      {"prompt_logprobs", sampling->prompt_logprobs.has_value()}};
  for (const auto& [name, is_set] : unused) {
    if (is_set) fields.warn("'" + std::string(name) + "' has no effect on 'use_beam_search'");
  }
  sampling->temperature = 1;
  return length_penalty;
}

}  // namespace foretoken
