#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/samples/prompt_files.h"
#include "bench/samples/random_samples.h"
#include "bench/samples/sample.h"
#include "bench/samples/token_coder.h"

namespace foretoken::bench {

struct SonnetOptions {
  int input_len = 550;
  int output_len = 150;
  int prefix_len = 200;
};

// Which prompts a benchmark sends, by vLLM's flags.
struct DatasetSpec {
  std::string name = "random";
  std::string path;
  int num_prompts = 1000;
  uint64_t seed = 0;
  bool keeps_messages = false;       // the backend takes chats as they are
  bool skip_chat_template = false;   // else prompts of files become chats where a template is known
  std::string chat_template_kwargs;  // a JSON object, or empty
  bool no_oversample = false;        // a short file is not repeated
  bool disable_shuffle = false;

  RandomOptions random;
  PrefixOptions prefix;
  SonnetOptions sonnet;
  std::optional<int> sharegpt_output_len;  // default: as long as the answers of the file
  std::optional<int> custom_output_len;    // default: the entry's "output_tokens", else 256
  int spec_bench_output_len = 256;
  std::string spec_bench_category;
};

// All values of --dataset-name.
const std::vector<std::string>& dataset_names();
// Whether --dataset-path belongs to it.
bool reads_file(const std::string& dataset_name);

// The prompts, from `file_text` where the dataset reads a file. `coder` may be null: no tokenizer
// is known. Exactly num_prompts of them unless no_oversample stands in the way; the same seed gives
// the same prompts. Errors name the flag or the line of the file.
Result<std::vector<Sample>> make_samples(const DatasetSpec& spec, const std::string& file_text,
                                         const TokenCoder* coder);

// Prompts of about options.input_len tokens out of the lines of a text: the first ones, up to
// prefix_len, are the same for all.
Result<std::vector<Sample>> sonnet_samples(const SonnetOptions& options, int num_prompts,
                                           uint64_t seed, const std::string& text,
                                           const TokenCoder& coder);

}  // namespace foretoken::bench
