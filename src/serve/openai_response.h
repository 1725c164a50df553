#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/openai_request.h"
#include "serve/output_sum.h"

namespace foretoken {

// What a response says about itself.
struct OpenAiLabel {
  std::string id;       // "chatcmpl-...", "cmpl-...", "embd-..."
  std::string model;    // as the response names it
  int64_t created = 0;  // seconds since 1970
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

// {"error": {"message", "type", "param", "code"}}; `http_status` is the code.
nlohmann::ordered_json openai_error(const Status& status);

// The HTTP status of an error: 400 for the caller's faults, 404 for what does not exist, 501 for
// the unsupported, 503 for a lack of room, 499 for aborted requests, 500 otherwise.
int http_status(const Status& status);

// "prefix-" and 32 random hexadecimal digits.
std::string make_openai_id(const std::string& prefix);

}  // namespace foretoken
