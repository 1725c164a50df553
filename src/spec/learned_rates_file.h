#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "spec/learned_rates.h"

// The file that learned rates are kept in.
namespace foretoken {

std::string learned_rates_to_json(const LearnedRates& learned);
// Positions behind those of the text are as in an engine that knows nothing. InvalidArgument begins
// with `what`, the name of the file, and names the first part that is missing or out of range.
Result<LearnedRates> parse_learned_rates(std::string_view json, const std::string& what);

}  // namespace foretoken
