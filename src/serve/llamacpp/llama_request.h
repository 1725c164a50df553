#pragma once
#include <string>
#include <vector>

#include "serve/openai/openai_request.h"

namespace foretoken {

// A body of llama.cpp's /completion.
struct LlamaRequest {
  OpenAiRequest text;  // one engine request for each prompt
  int num_probs = 0;   // likeliest tokens told for each token; 0: none
  // Told as probabilities of the distribution that tokens are drawn from.
  bool post_sampling_probs = false;
  bool return_tokens = false;
  bool no_output = false;                    // n_predict 0: the prompt is only computed
  std::vector<std::string> response_fields;  // paths like "timings/prompt_n"; empty: all
};

// Reads llama.cpp's field names. What its samplers do and this engine does not is passed over with
// a warning; what is missing has the model's defaults, and no length means to the end of the
// context. `body` without prompts that mix texts and ids in one list.
Result<LlamaRequest> parse_llama_request(const nlohmann::ordered_json& body,
                                         const OpenAiDefaults& defaults);

// "generation_settings" of an answer and of /props.
nlohmann::ordered_json llama_settings(const SamplingParams& sampling, bool stream);

// What "response_fields" asks for, all where it asks for nothing: what lies within others stands
// at the top under its path, "a/b", and what is not there is left out.
nlohmann::ordered_json chosen_fields(const nlohmann::ordered_json& body,
                                     const std::vector<std::string>& paths);

}  // namespace foretoken
