#pragma once
#include <climits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/fields/api_fields.h"

namespace foretoken {

// What the document says of this server and its model.
struct OpenApiFacts {
  bool tokenizer_info = false;    // /tokenizer_info is served
  bool needs_key = false;         // there are API keys
  bool strict_fields = false;     // unknown fields are refused
  bool finds_tool_calls = false;  // with tool_choice "auto"
  bool fills_gaps = false;        // /infill does more than say that it cannot
  bool has_adapters = false;      // or clients may load some
  bool loads_adapters = false;    // clients may
  std::vector<std::string> model_names = {};
  bool any_model = false;                                    // and every other name
  std::vector<std::string> drafters = {};                    // as requests name them
  std::vector<std::vector<std::string>> drafter_lists = {};  // that a request may name
  int max_draft_tokens = 0;                                  // of any of them
  int vocab_size = INT_MAX;
  int max_logprobs = INT_MAX;
  int max_model_len = INT_MAX;
  int embedding_size = INT_MAX;
};

// Says in all objects of a schema that unknown members are passed over.
void allow_more_properties(nlohmann::ordered_json* schema);

// {"type": "object", "properties", "required", "additionalProperties", "allOf"} of a body.
nlohmann::ordered_json openapi_body(ApiBody body, const OpenApiFacts& facts);

}  // namespace foretoken
