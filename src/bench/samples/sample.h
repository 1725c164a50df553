#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace foretoken::bench {

// One prompt of a benchmark: exactly one of the first three is not empty.
struct Sample {
  std::string text;
  std::vector<int32_t> ids;
  std::string messages_json;  // array of chat messages
  int prompt_len = 0;         // tokens; 0 where no tokenizer counted them
  int output_len = 0;         // tokens to ask for
};

}  // namespace foretoken::bench
