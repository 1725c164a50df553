#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/answer/output_sum.h"
#include "serve/answer/serve_error.h"
#include "serve/openai/openai_request.h"

namespace foretoken {

// What a response says about itself.
struct OpenAiLabel {
  std::string id;       // "chatcmpl-...", "cmpl-...", "embd-..."
  std::string model;    // as the response names it
  int64_t created = 0;  // seconds since 1970
  OutputTimes::Time submitted{};
  // > 0: "metrics" tell of the speculation, with at most so many drafts a step; null where there
  // are several choices, as in vLLM.
  int num_spec_tokens = 0;
  // Says that drafts were accepted by chance and the text is not the model's
  // ("system_fingerprint").
  bool synthetic_acceptance = false;
};

// The text of each prompt, where a completion echoes it.
using PromptTexts = std::vector<std::string>;

// The body of a response: one finished, faultless OutputSum for each of request.requests; choices
// are numbered through all of them. Key order as OpenAI documents it.
nlohmann::ordered_json openai_response(const OpenAiRequest& request,
                                       const std::vector<const OutputSum*>& sums,
                                       const PromptTexts& prompts, const OpenAiLabel& label);

// The pooled state with the `dimensions` that the request asks for (the first ones, to length 1
// again where the whole is), as numbers or base64.
nlohmann::ordered_json embedding_value(const OpenAiRequest& request, std::vector<float> values);

// {"id", "object", "created", "model"} and what else all answers begin with.
nlohmann::ordered_json start_openai_body(const char* object, const OpenAiLabel& label);

// The prompt's ids as far as truncation kept them. Empty where the request has only text.
std::vector<int32_t> prompt_ids_of(const Request& request, const RequestStats& stats);

// "prefix-" and 32 random hexadecimal digits.
std::string make_openai_id(const std::string& prefix);

}  // namespace foretoken
