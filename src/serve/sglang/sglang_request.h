#pragma once
#include <foretoken/request.h>

#include <nlohmann/json.hpp>

#include "serve/openai/openai_request.h"

namespace foretoken {

// A body of SGLang's /generate.
struct SglangRequest {
  OpenAiRequest text;             // one engine request for each prompt
  bool is_list = false;           // of prompts: so is the answer
  bool no_output = false;         // max_new_tokens 0: the prompt is only computed
  bool return_logprob = false;    // of each token of the output
  bool text_in_logprobs = false;  // beside the ids
  int num_top_logprobs = 0;       // likeliest tokens told for each token
  int logprob_start_len = -1;     // position of the prompt from which its tokens are told; -1: none
};

// Reads {"text" or "input_ids", "sampling_params", "return_logprob", "stream", ...}. What is
// unknown or has no effect is passed over with a warning; no length means 128 tokens, as there.
Result<SglangRequest> parse_sglang_request(const nlohmann::ordered_json& body,
                                           const OpenAiDefaults& defaults);

}  // namespace foretoken
