#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "config/sampling_field.h"

namespace foretoken {

// Every field of SamplingParams that is a value, in vLLM's order. What is none has its own readers:
// structured_outputs, logits_processors, and processed_logprobs, which only llama.cpp's routes set.
std::span<const SamplingField> sampling_fields();

// Null: there is none of this name.
const SamplingField* find_sampling_field(std::string_view name);

// Whether it is a number that shapes how tokens are drawn (temperature, min_p, ...).
bool shapes_draws(const SamplingField& field);

// "--min-p".
std::string sampling_flag(const SamplingField& field);

// "[0, 1]", "(0, 1]", or "at least 1"; empty without a range.
std::string range_text(const SamplingRange& range);

// The value as JSON, null for none; biases are [id, bias].
nlohmann::ordered_json sampling_value(const SamplingField& field, const SamplingParams& sampling);

}  // namespace foretoken
