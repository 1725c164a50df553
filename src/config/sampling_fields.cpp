#include "config/sampling_fields.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>

namespace foretoken {
namespace sampling_table {

using P = SamplingParams;
using enum SamplingGroup;
using enum LlamaReading;

constexpr SamplingField kTable[] = {
    {.name = "n",
     .member = &P::n,
     .group = kLength,
     .help = "Choices for each prompt",
     .range = {1, kMaxChoices},
     .bodies = kOpenAiTexts | kLlamaBody},
    {.name = "presence_penalty",
     .member = &P::presence_penalty,
     .group = kDistribution,
     .help = "Taken from logits of tokens that the output has, once each",
     .range = {-2, 2}},
    {.name = "frequency_penalty",
     .member = &P::frequency_penalty,
     .group = kDistribution,
     .help = "Taken from logits of tokens that the output has, for each use",
     .range = {-2, 2}},
    {.name = "repetition_penalty",
     .member = &P::repetition_penalty,
     .group = kDistribution,
     .help = "Divides positive logits of tokens of prompt and output; 1: off",
     // Beyond these a logit would leave the range of floats.
     .range = {1e-6, 1e6},
     .llama_name = "repeat_penalty",
     .model_name = "repetition_penalty"},
    {.name = "temperature",
     .member = &P::temperature,
     .group = kDistribution,
     .help = "Divides the logits; 0: always the likeliest token",
     .range = {0, 1e6},
     .llama = kClamped,
     .model_name = "temperature"},
    {.name = "top_p",
     .member = &P::top_p,
     .group = kDistribution,
     .help = "Sample from the likeliest tokens of this total probability",
     .range = {0, 1, true},
     .llama = kOwn,
     .model_name = "top_p"},
    {.name = "top_k",
     .member = &P::top_k,
     .group = kDistribution,
     .help = "Sample from so many likeliest tokens; 0 or -1: all",
     .range = {-1, INT_MAX, false, "be -1 or 0 (off), or at least 1"},
     .llama = kOwn,
     .model_name = "top_k"},
    {.name = "min_p",
     .member = &P::min_p,
     .group = kDistribution,
     .help = "Least share of the likeliest token's probability",
     .range = {0, 1},
     .llama = kClamped,
     .model_name = "min_p"},
    {.name = "seed",
     .member = &P::seed,
     .group = kDistribution,
     .help = "Of the noise; none: drawn from the engine's seed",
     .llama = kOwn,
     .flag = "--sampling-seed"},
    {.name = "stop",
     .member = &P::stop,
     .group = kText,
     .help = "Strings that end the text",
     .bodies = kOpenAiTexts | kResponsesBody | kLlamaBody,
     .llama = kOwn,
     .python_type = "str | list[str] | None"},
    {.name = "stop_token_ids",
     .member = &P::stop_token_ids,
     .group = kText,
     .help = "Token ids that end the text"},
    {.name = "ignore_eos",
     .member = &P::ignore_eos,
     .group = kText,
     .help = "Go on after the model's end token"},
    {.name = "max_tokens",
     .member = &P::max_tokens,
     .group = kLength,
     .help = "Most output tokens",
     .range = {1, INT_MAX},
     .bodies = kOpenAiTexts | kAnthropicBodies | kLlamaBody,
     .llama = kOwn,
     .model_name = "max_new_tokens",
     .schema = R"({"anyOf":[{"type":"integer","minimum":1},
        {"enum":[-1,-2],"description":"As many as fit."}]})",
     .python_type = "int | None"},
    {.name = "min_tokens",
     .member = &P::min_tokens,
     .group = kLength,
     .help = "No stop before so many output tokens",
     .range = {0, INT_MAX},
     .note = "At most max_tokens."},
    {.name = "logprobs",
     .member = &P::logprobs,
     .group = kLogprobs,
     .help = "Log-probabilities of each token and of so many likeliest ones; -1: all",
     .range = {-1, INT_MAX, false, "be -1 (all) or at least 0"},
     .bodies = 0},
    {.name = "prompt_logprobs",
     .member = &P::prompt_logprobs,
     .group = kLogprobs,
     .help = "The same for the tokens of the prompt",
     .range = {-1, INT_MAX, false, "be -1 (all) or at least 0"},
     .bodies = kOpenAiTexts},
    {.name = "detokenize",
     .member = &P::detokenize,
     .group = kText,
     .help = "Make text of the tokens",
     .bodies = kOpenAiTexts,
     .note = "Stop strings need it true."},
    {.name = "skip_special_tokens",
     .member = &P::skip_special_tokens,
     .group = kText,
     .help = "Leave special tokens out of the text"},
    {.name = "spaces_between_special_tokens",
     .member = &P::spaces_between_special_tokens,
     .group = kText,
     .help = "Spaces around kept special tokens"},
    {.name = "include_stop_str_in_output",
     .member = &P::include_stop_str_in_output,
     .group = kText,
     .help = "Keep the stop string in the text"},
    {.name = "logit_bias",
     .member = &P::logit_bias,
     .group = kTokens,
     .help = "Added to logits by token id: {\"42\": -100}",
     .range = {-100, 100}},
    {.name = "allowed_token_ids",
     .member = &P::allowed_token_ids,
     .group = kTokens,
     .help = "The only token ids that can be sampled"},
    {.name = "bad_words",
     .member = &P::bad_words,
     .group = kTokens,
     .help = "Texts that never appear"},
};

// 1000000, 0.5 or 1e-6.
std::string number_text(double value) {
  char text[32];
  const bool is_whole = value == std::floor(value) && std::abs(value) < 1e15;
  std::snprintf(text, sizeof text, is_whole ? "%.0f" : "%g", value);
  std::string shown = text;
  const size_t zero = shown.find("e-0");
  if (zero != std::string::npos) shown.erase(zero + 2, 1);
  return shown;
}

}  // namespace sampling_table

std::span<const SamplingField> sampling_fields() { return sampling_table::kTable; }

const SamplingField* find_sampling_field(std::string_view name) {
  const auto fields = sampling_fields();
  const auto found = std::ranges::find(fields, name, &SamplingField::name);
  return found == fields.end() ? nullptr : &*found;
}

bool shapes_draws(const SamplingField& field) {
  return field.group == SamplingGroup::kDistribution && field.range.is_set();
}

std::string sampling_flag(const SamplingField& field) {
  if (field.flag != nullptr) return field.flag;
  std::string flag = "--" + std::string(field.name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::string range_text(const SamplingRange& range) {
  if (!range.is_set()) return "";
  const std::string low = sampling_table::number_text(range.low);
  if (range.high == INT_MAX) return "at least " + low;
  return (range.above_low ? "(" : "[") + low + ", " + sampling_table::number_text(range.high) + "]";
}

nlohmann::ordered_json sampling_value(const SamplingField& field, const SamplingParams& sampling) {
  nlohmann::ordered_json json;
  visit_sampling_member(field, sampling, [&](const auto& value) {
    if constexpr (requires { value.has_value(); }) {
      if (value) json = *value;
    } else {
      json = value;
    }
  });
  return json;
}

}  // namespace foretoken
