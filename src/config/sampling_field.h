#pragma once
#include <foretoken/request.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/api_body.h"

namespace foretoken {

inline constexpr int kMaxChoices = 128;  // SamplingParams::n

// What a field is about; flags and documents are ordered by it.
enum class SamplingGroup : uint8_t {
  kLength,        // how many tokens and choices
  kDistribution,  // how a token is drawn
  kLogprobs,      // each API spells these in its own way
  kTokens,        // which tokens can be drawn
  kText,          // where the text ends and what it holds
};

// What llama.cpp's own routes make of a value.
enum class LlamaReading : uint8_t {
  kSame,     // what the other APIs do
  kClamped,  // the nearest value in range
  kOwn,      // something else, which serve/llamacpp reads
};

// Bounds of a number, both included unless `above_low` leaves the lower one out; low above high:
// none. INT_MAX as the upper one of integers: any.
struct SamplingRange {
  double low = 0;
  double high = -1;
  bool above_low = false;
  const char* sentence = nullptr;  // what a value must, where "be in [low, high]" says too little

  constexpr bool is_set() const { return low <= high; }
  // In the precision of T; false for NaN.
  template <class T>
  bool holds(T value) const {
    const T least = static_cast<T>(low);
    return (above_low ? value > least : value >= least) && value <= static_cast<T>(high);
  }
};

using SamplingMember =
    std::variant<bool SamplingParams::*, int SamplingParams::*, float SamplingParams::*,
                 std::optional<int> SamplingParams::*, std::optional<uint64_t> SamplingParams::*,
                 std::vector<std::string> SamplingParams::*, std::vector<int32_t> SamplingParams::*,
                 std::optional<std::vector<int32_t>> SamplingParams::*,
                 std::vector<std::pair<int32_t, float>> SamplingParams::*>;

// One field of SamplingParams: all that APIs, command line, Python and documents know of it. The
// default is that of the member.
struct SamplingField {
  const char* name;  // of the member, in JSON and in Python
  SamplingMember member;
  SamplingGroup group;
  const char* help;  // without range and default, which are added
  SamplingRange range = {};
  unsigned bodies = kAllTexts;  // of the APIs that take it under its name
  LlamaReading llama = LlamaReading::kSame;
  const char* llama_name = nullptr;   // llama.cpp's and Ollama's name, taken by every API
  const char* model_name = nullptr;   // in generation_config.json; null: not read from there
  const char* flag = nullptr;         // null: "--" and the name with dashes
  const char* note = nullptr;         // a rule that OpenAPI tells
  const char* schema = nullptr;       // JSON schema, where type and range say too little
  const char* python_type = nullptr;  // likewise
};

// Calls f with the member of `sampling`, which may be const.
template <class Sampling, class F>
void visit_sampling_member(const SamplingField& field, Sampling&& sampling, F&& f) {
  std::visit([&](auto member) { f(sampling.*member); }, field.member);
}

}  // namespace foretoken
