#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "serve/openai/openai_request.h"

namespace foretoken {

// A body of text-generation-inference's /generate, /generate_stream and /.
struct TgiRequest {
  OpenAiRequest text;         // one engine request
  std::string prompt;         // as it was sent
  bool details = false;       // each token of a whole answer is told
  bool tells_prompt = false;  // with the details, the prompt's tokens too
  bool full_text = false;     // the text begins with the prompt
  int num_top_tokens = 0;     // likeliest tokens told for each token
};

// Reads {"inputs", "parameters", "stream"}. Without a length 100 tokens are made; without
// "do_sample" and what shapes draws, the likeliest token each time; the model's own sampling
// defaults do not count, all as there. Stop strings stay in the text. What is unknown or has no
// effect is passed over with a warning.
Result<TgiRequest> parse_tgi_request(const nlohmann::ordered_json& body,
                                     const OpenAiDefaults& defaults);

}  // namespace foretoken
