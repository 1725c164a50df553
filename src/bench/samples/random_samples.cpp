#include "bench/samples/random_samples.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace foretoken::bench {
namespace {

constexpr int kMaxTries = 10;
constexpr int32_t kFirstCommonId = 256;
constexpr int32_t kEndOfCommonIds = 1024;

// From which ids prompts are made, and how.
struct Source {
  const TokenCoder* coder;
  std::vector<int32_t> ids;
  std::mt19937_64 generator;
};

Result<Source> make_source(const TokenCoder* coder, uint64_t seed) {
  Source source{coder, {}, std::mt19937_64(seed)};
  if (coder != nullptr) {
    source.ids = coder->plain_ids;
    if (source.ids.empty()) return invalid_argument("the tokenizer has no plain tokens");
  } else {
    source.ids.resize(kEndOfCommonIds - kFirstCommonId);
    std::iota(source.ids.begin(), source.ids.end(), kFirstCommonId);
  }
  return source;
}

int draw(std::mt19937_64& generator, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(generator);
}

int draw_length(std::mt19937_64& generator, int length, double ratio, int least) {
  const int low = static_cast<int>(std::floor(length * (1 - ratio)));
  const int high = static_cast<int>(std::ceil(length * (1 + ratio)));
  return draw(generator, std::max(low, least), std::max(high, least));
}

std::vector<int32_t> random_ids(Source& source, int count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) {
    id = source.ids[static_cast<size_t>(
        draw(source.generator, 0, static_cast<int>(source.ids.size()) - 1))];
  }
  return ids;
}

// A prefix that is the same for several prompts must survive being decoded and encoded.
Result<std::vector<int32_t>> stable_ids(Source& source, int count) {
  std::vector<int32_t> ids = random_ids(source, count);
  if (source.coder != nullptr && count > 0) {
    FT_RETURN_IF_ERROR(text_of_length(*source.coder, source.generator, &ids).status());
  }
  return ids;
}

Result<Sample> make_sample(Source& source, std::vector<int32_t> ids, int output_len) {
  Sample sample;
  sample.output_len = output_len;
  if (source.coder != nullptr) {
    FT_ASSIGN_OR_RETURN(sample.text, text_of_length(*source.coder, source.generator, &ids));
    FT_ASSIGN_OR_RETURN(sample.prompt_len, source.coder->count(sample.text));
  } else {
    sample.prompt_len = static_cast<int>(ids.size());
    sample.ids = std::move(ids);
  }
  return sample;
}

// Tokens that the tokenizer puts around every prompt.
Result<int> num_special(const TokenCoder* coder) {
  return coder == nullptr ? Result<int>(0) : coder->count("");
}

}  // namespace

Status parse_range_ratio(const std::string& text, RandomOptions* options) {
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  const auto number = [](const nlohmann::json& value) {
    return value.is_number() ? value.get<double>() : -1.0;
  };
  if (parsed.is_object()) {
    options->input_ratio = number(parsed.value("input", nlohmann::json()));
    options->output_ratio = number(parsed.value("output", nlohmann::json()));
  } else {
    options->input_ratio = options->output_ratio = number(parsed);
  }
  const auto fits = [](double ratio) { return ratio >= 0 && ratio < 1; };
  if (fits(options->input_ratio) && fits(options->output_ratio)) return {};
  return invalid_argument(
      "--random-range-ratio must be a number from 0 to below 1, or {\"input\": "
      "0.3, \"output\": 0.5}, not '" +
      text + "'");
}

Result<std::string> text_of_length(const TokenCoder& coder, std::mt19937_64& generator,
                                   std::vector<int32_t>* ids) {
  const size_t wanted = ids->size();
  for (int i = 0;; ++i) {
    FT_ASSIGN_OR_RETURN(std::string text, coder.decode(*ids));
    FT_ASSIGN_OR_RETURN(*ids, coder.encode(text, false));
    if (ids->size() == wanted || i == kMaxTries) return text;
    const int last = static_cast<int>(coder.plain_ids.size()) - 1;
    while (ids->size() < wanted) {
      ids->push_back(coder.plain_ids[static_cast<size_t>(draw(generator, 0, last))]);
    }
    ids->resize(wanted);
  }
}

Result<std::vector<Sample>> random_samples(const RandomOptions& options, int num_prompts,
                                           uint64_t seed, const TokenCoder* coder) {
  FT_ASSIGN_OR_RETURN(Source source, make_source(coder, seed));
  FT_ASSIGN_OR_RETURN(const int special, num_special(coder));
  const int input_len = std::max(0, options.input_len - special);
  if (options.prefix_len + std::floor(input_len * (1 - options.input_ratio)) < 1) {
    return invalid_argument(
        "--random-input-len is too small: with the special tokens and the range ratio no token is "
        "left; raise it or --random-prefix-len");
  }
  FT_ASSIGN_OR_RETURN(const std::vector<int32_t> prefix, stable_ids(source, options.prefix_len));
  std::vector<Sample> samples;
  for (int i = 0; i < num_prompts; ++i) {
    const int length = draw_length(source.generator, input_len, options.input_ratio, 0);
    const int output_len =
        draw_length(source.generator, options.output_len, options.output_ratio, 1);
    const int offset = draw(source.generator, 0, static_cast<int>(source.ids.size()) - 1);
    std::vector<int32_t> ids = prefix;
    for (int k = 0; k < length; ++k) {
      const size_t place = static_cast<size_t>(offset) + static_cast<size_t>(i + k);
      ids.push_back(source.ids[place % source.ids.size()]);
    }
    FT_ASSIGN_OR_RETURN(Sample sample, make_sample(source, std::move(ids), output_len));
    samples.push_back(std::move(sample));
  }
  return samples;
}

Result<std::vector<Sample>> prefix_samples(const PrefixOptions& options, int num_prompts,
                                           uint64_t seed, const TokenCoder* coder, bool in_order) {
  if (num_prompts < options.num_prefixes) {
    return invalid_argument("--num-prompts " + std::to_string(num_prompts) + " is less than " +
                            "--prefix-repetition-num-prefixes " +
                            std::to_string(options.num_prefixes));
  }
  FT_ASSIGN_OR_RETURN(Source source, make_source(coder, seed));
  std::vector<Sample> samples;
  for (int i = 0; i < options.num_prefixes; ++i) {
    FT_ASSIGN_OR_RETURN(const std::vector<int32_t> prefix, stable_ids(source, options.prefix_len));
    for (int k = 0; k < num_prompts / options.num_prefixes; ++k) {
      FT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, stable_ids(source, options.suffix_len));
      ids.insert(ids.begin(), prefix.begin(), prefix.end());
      FT_ASSIGN_OR_RETURN(Sample sample, make_sample(source, std::move(ids), options.output_len));
      samples.push_back(std::move(sample));
    }
  }
  if (!in_order) std::shuffle(samples.begin(), samples.end(), source.generator);
  return samples;
}

}  // namespace foretoken::bench
