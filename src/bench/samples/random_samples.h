#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/samples/sample.h"
#include "bench/samples/token_coder.h"

namespace foretoken::bench {

// Random prompts, by vLLM's flags.
struct RandomOptions {
  int input_len = 1024;
  int output_len = 128;
  int prefix_len = 0;      // tokens that all prompts begin with
  double input_ratio = 0;  // lengths are drawn from [len (1 - ratio), len (1 + ratio)]
  double output_ratio = 0;
};

// "0.3", or {"input": 0.3, "output": 0.5}; each in [0, 1).
Status parse_range_ratio(const std::string& text, RandomOptions* options);

struct PrefixOptions {
  int prefix_len = 256;
  int suffix_len = 256;
  int num_prefixes = 10;
  int output_len = 128;
};

// With a `coder`, texts that are made of runs of consecutive ids, so long that the server finds
// the wanted number of tokens in them (some tokenizers miss it by a few; prompt_len tells). Without
// one (null), token ids of such runs between 256 and 1023, which every vocabulary has.
Result<std::vector<Sample>> random_samples(const RandomOptions& options, int num_prompts,
                                           uint64_t seed, const TokenCoder* coder);

// num_prompts / num_prefixes prompts (rounded down) for each prefix, in random order unless
// `in_order`.
Result<std::vector<Sample>> prefix_samples(const PrefixOptions& options, int num_prompts,
                                           uint64_t seed, const TokenCoder* coder, bool in_order);

// `ids` as text that is encoded to about as many ids: decoded and encoded again, filled up with
// random ids or cut, at most ten times. `*ids` becomes what the text is encoded to.
Result<std::string> text_of_length(const TokenCoder& coder, std::mt19937_64& generator,
                                   std::vector<int32_t>* ids);

}  // namespace foretoken::bench
