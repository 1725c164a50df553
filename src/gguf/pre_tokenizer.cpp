#include "gguf/pre_tokenizer.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr PreTokenizer kPreTokenizers[] = {
    {"llama-bpe", kLlama3, true, false, false, true},
    {"llama3", kLlama3, true, false, false, true},
    {"qwen2", kQwen2, false, true, false, false},
    {"tekken", kTekken, true, false, false, false},
    {"gpt-2", "", false, false, false, false},
    {"default", "", false, false, false, false},
    {"smollm", "", false, false, true, false},
    {"starcoder", "", false, false, true, false},
};

// The steps one after the other, without what changes no ids; fields that may be left out are
// there.
Json plain_steps(const Json& step) {
  if (!step.is_object()) return Json::array();
  Json steps = Json::array();
  if (step.value("type", "") == "Sequence") {
    for (const Json& inner : step.value("pretokenizers", Json::array())) {
      for (Json& plain : plain_steps(inner)) steps.push_back(std::move(plain));
    }
    return steps;
  }
  Json plain = step;
  plain.erase("trim_offsets");
  if (plain.value("type", "") == "ByteLevel" && !plain.contains("use_regex")) {
    plain["use_regex"] = true;
  }
  steps.push_back(std::move(plain));
  return steps;
}

bool composes(const Json& tokenizer) {
  const Json normalizer = tokenizer.value("normalizer", Json());
  return normalizer == Json{{"type", "NFC"}};
}

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizer& pre : kPreTokenizers) {
    if (pre.name == name) return &pre;
  }
  return nullptr;
}

std::string pre_tokenizer_names() {
  std::string names;
  for (const PreTokenizer& pre : kPreTokenizers) {
    names += (names.empty() ? "" : ", ") + std::string(pre.name);
  }
  return names;
}

Json byte_level_json(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

Json pre_tokenizer_json(const PreTokenizer& pre) {
  Json first = {{"type", "Split"},
                {"pattern", {{"Regex", pre.regex}}},
                {"behavior", "Isolated"},
                {"invert", false}};
  if (pre.splits_digits) first = {{"type", "Digits"}, {"individual_digits", true}};
  if (pre.regex.empty() && !pre.splits_digits) return byte_level_json(true);
  return {{"type", "Sequence"},
          {"pretokenizers", Json::array({first, byte_level_json(pre.splits_digits)})}};
}

Json normalizer_json(const PreTokenizer& pre) {
  return pre.composes ? Json{{"type", "NFC"}} : Json();
}

const PreTokenizer* match_pre_tokenizer(const Json& tokenizer) {
  const Json steps = plain_steps(tokenizer.value("pre_tokenizer", Json()));
  const Json model = tokenizer.value("model", Json::object());
  const bool has_other = !composes(tokenizer) && !tokenizer.value("normalizer", Json()).is_null();
  if (has_other || !model.is_object()) return nullptr;
  const Json ignores = model.value("ignore_merges", Json(false));
  for (const PreTokenizer& pre : kPreTokenizers) {
    const bool same = steps == plain_steps(pre_tokenizer_json(pre)) &&
                      ignores == pre.ignores_merges && composes(tokenizer) == pre.composes;
    if (same) return &pre;
  }
  return nullptr;
}

}  // namespace foretoken
