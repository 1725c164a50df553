#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "apps/options/engine_options.h"

namespace foretoken {
namespace {

// What a suffix multiplies with; 0: it is none. "Ki" and "KiB" are the same as "K".
double suffix_factor(std::string_view suffix) {
  constexpr std::string_view kLetters = "kmgtKMGT";
  const size_t letter = suffix.empty() ? std::string_view::npos : kLetters.find(suffix.front());
  if (letter == std::string_view::npos) return 0;
  const bool binary = letter >= 4;
  const std::string_view rest = suffix.substr(1);
  if (!rest.empty() && !(binary && (rest == "i" || rest == "iB"))) return 0;
  return std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(letter % 4 + 1));
}

// Replaces "1k" by "1000"; returns what is wrong, or nothing.
std::string expand(std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end == '\0') return {};
  const double factor = suffix_factor(end);
  const double product = value * factor;
  const bool whole = end != text.c_str() && factor != 0 && std::abs(product) < 9e15 &&
                     product == std::floor(product);
  if (!whole) return "'" + text + "' is not a number like 4096, 4k (4000) or 4K (4096)";
  text = std::to_string(static_cast<int64_t>(product));
  return {};
}

bool is_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

CLI::Validator human_integer() { return CLI::Validator(expand, ""); }

CLI::Validator human_integer_or_auto() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        if (text == "auto" || text == "-1") {
          text = "-1";
          return {};
        }
        const std::string given = text;
        const std::string problem = expand(text);
        if (!problem.empty()) return problem;
        const long long value = std::strtoll(text.c_str(), nullptr, 10);
        if (value > INT_MAX) return "must be from 1 to 2147483647, or auto, not " + given;
        return value >= 1 ? "" : "must be at least 1, or auto, not " + given;
      },
      "");
}

CLI::Validator token_id() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        if (is_digits(text) && text.size() < 11) return {};
        return "must be token ids like 5,17, not '" + text + "'";
      },
      "");
}

CLI::Validator seed_number() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        errno = 0;
        std::strtoull(text.c_str(), nullptr, 10);
        if (is_digits(text) && errno == 0) return {};
        return "must be an integer from 0 to 18446744073709551615, not " + text +
               "; leave it out for the default";
      },
      "");
}

CLI::Validator at_least(int64_t low) { return within(low, INT64_MAX); }

CLI::Validator within(int64_t low, int64_t high) {
  return CLI::Validator(
      [low, high](std::string& text) -> std::string {
        char* end = nullptr;
        const long long value = std::strtoll(text.c_str(), &end, 10);
        if (*end != '\0' || text.empty()) return "'" + text + "' is not an integer";
        if (value >= low && value <= high) return {};
        const std::string lowest = std::to_string(low);
        if (high >= INT_MAX) return "must be at least " + lowest + ", not " + text;
        // As CLI11 says it.
        return "Value " + text + " not in range " + lowest + " to " + std::to_string(high);
      },
      "");
}

}  // namespace foretoken
