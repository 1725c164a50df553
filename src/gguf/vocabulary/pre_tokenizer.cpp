#include "gguf/vocabulary/pre_tokenizer.h"

#include "gguf/vocabulary/tokenizer_build.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

using Step = PreTokenizerStep;
using StepKind = PreTokenizerStep::Kind;

constexpr Step kGpt2Steps[] = {{StepKind::kGpt2}};
constexpr Step kDigitsAndGpt2[] = {{StepKind::kDigits}, {StepKind::kGpt2}};
constexpr Step kLlama3[] = {{StepKind::kRegex, kThreeDigitsPattern}};
constexpr Step kQwen2[] = {{StepKind::kRegex, kOneDigitPattern}};
constexpr Step kQwen35[] = {
    {StepKind::kRegex,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
constexpr Step kTekken[] = {
    {StepKind::kRegex,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
constexpr Step kGpt4o[] = {{StepKind::kRegex, kO200kPattern}};
constexpr Step kSeedCoder[] = {
    {StepKind::kRegex,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
constexpr Step kBailing[] = {
    {StepKind::kRegex,
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}};
constexpr Step kExaoneMoe[] = {
    {StepKind::kRegex,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"}};
constexpr std::string_view kSymbolsAndWordsPattern =
    R"([!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr Step kDeepSeek3[] = {{StepKind::kRegex, R"(\p{N}{1,3})"},
                               {StepKind::kRegex, "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"},
                               {StepKind::kRegex, kSymbolsAndWordsPattern}};
constexpr Step kDeepSeekCoder[] = {{StepKind::kRegex, R"([\r\n])"},
                                   {StepKind::kRegex, R"(\s?\p{L}+)"},
                                   {StepKind::kRegex, R"(\s?\p{P}+)"},
                                   {StepKind::kRegex, "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"},
                                   {StepKind::kDigits}};
// Letters are those with an upper and a lower case.
constexpr Step kDeepSeekLlm[] = {
    {StepKind::kRegex, R"([\r\n])"},
    {StepKind::kRegex, R"(\s?[\p{Lu}\p{Ll}\p{Lt}]+)"},
    {StepKind::kRegex, "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"},
    {StepKind::kRegex, R"(\s+$)"},
    {StepKind::kRegex, "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"},
    {StepKind::kRegex, R"(\p{N}+)"}};
constexpr Step kFalcon[] = {
    {StepKind::kPunctuation}, {StepKind::kGpt2}, {StepKind::kRegex, "[0-9][0-9][0-9]"}};
constexpr std::string_view kWords = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+";
constexpr Step kBloom[] = {{StepKind::kRegex, kWords}};
constexpr Step kViking[] = {{StepKind::kRegex, kWords}, {StepKind::kDigits}};
constexpr Step kKimi[] = {{StepKind::kRegex, kHanRunsPattern}};
// Digits in threes from the end.
constexpr Step kTinyAya[] = {{StepKind::kRegex, R"(\d{1,3}(?=(?:\d{3})*\b))"},
                             {StepKind::kRegex, kO200kPattern}};
constexpr Step kAfmoe[] = {
    {StepKind::kRegex, R"(\p{Nd}{1,3}(?=(?:\p{Nd}{3})*(?!\p{Nd})))"},
    {StepKind::kRegex,
     "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f"
     "\u2f00-\u2fdf]+|[\u0e40-\u0e7f]+|[\u0e80-\u0eff]+|[\u1780-\u17ff]+|"
     "[\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff]+|[\uac00-\ud7af\u1100-\u11ff]+"},
    {StepKind::kRegex, kSymbolsAndWordsPattern}};
// Line breaks begin pieces.
constexpr Step kLaguna[] = {{StepKind::kRegex, R"((?:\r?\n)+(?!\r?\n))"},
                            {StepKind::kRegex, kOneDigitPattern}};
constexpr Step kSpark[] = {
    {StepKind::kRegex, R"(\p{N}{1,3})"},
    {StepKind::kRegex, "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"},
    {StepKind::kRegex,
     R"([!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)"},
    {StepKind::kDigits}};
constexpr Step kYoutu[] = {
    {StepKind::kRegex,
     "[\uac00-\ud7a3\u3131-\u318e]+|["
     "\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|["
     "\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"},
    {StepKind::kRegex,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};

// Runs of blanks in powers of two.
constexpr Step kJais2[] = {
    {StepKind::kRegex,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"}};
constexpr Step kMiniCpm5[] = {
    {StepKind::kRegex, R"(\p{N}{1,3})"},
    {StepKind::kRegex,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
// Endings behind an apostrophe stay with their word.
constexpr Step kUfakZeka[] = {
    {StepKind::kRegex,
     R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}};
// Words are not cut from one another.
constexpr Step kSuperBpe[] = {{StepKind::kRegex, R"(\p{N}+)"},
                              {StepKind::kRegex, R"((?=(\d{3})+(?!\d)))"}};

// The first of those that mean the same is the one that is written.
constexpr PreTokenizer kPreTokenizers[] = {
    {.name = "llama-bpe", .steps = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "llama3", .steps = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "llama-v3", .steps = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "falcon3", .steps = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "falcon-h1", .steps = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "pixtral", .steps = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "midm-2.0", .steps = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "lfm2", .steps = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "jina-v5-nano", .steps = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "qwen2", .steps = kQwen2, .composes = true},
    {.name = "tekken", .steps = kTekken, .ignores_merges = true, .adds_bos = true},
    {.name = "gpt-2", .steps = kGpt2Steps},
    {.name = "default", .steps = kGpt2Steps},
    {.name = "phi-2", .steps = kGpt2Steps},
    {.name = "gigachat", .steps = kGpt2Steps},
    {.name = "mellum", .steps = kGpt2Steps},
    {.name = "a.x-4.0", .steps = kGpt2Steps},
    {.name = "modern-bert", .steps = kGpt2Steps},
    {.name = "roberta-bpe", .steps = kGpt2Steps},
    {.name = "jina-v1-en", .steps = kGpt2Steps},
    {.name = "jina-v2-code", .steps = kGpt2Steps},
    {.name = "jina-v2-es", .steps = kGpt2Steps},
    {.name = "jina-v2-de", .steps = kGpt2Steps},
    {.name = "jais", .steps = kGpt2Steps},
    {.name = "trillion", .steps = kGpt2Steps},
    {.name = "exaone4", .steps = kGpt2Steps},
    {.name = "granite-docling", .steps = kGpt2Steps},
    {.name = "mpt", .steps = kGpt2Steps, .composes = true},
    {.name = "olmo", .steps = kGpt2Steps, .composes = true},
    {.name = "smollm", .steps = kDigitsAndGpt2},
    {.name = "starcoder", .steps = kDigitsAndGpt2},
    {.name = "refact", .steps = kDigitsAndGpt2},
    {.name = "codeshell", .steps = kDigitsAndGpt2},
    {.name = "exaone", .steps = kDigitsAndGpt2},
    {.name = "minerva-7b", .steps = kDigitsAndGpt2},
    {.name = "mellum2", .steps = kDigitsAndGpt2},
    {.name = "command-r", .steps = kDigitsAndGpt2, .composes = true},
    {.name = "deepseek-r1-qwen", .steps = kQwen2, .composes = true},
    {.name = "kormo", .steps = kQwen2, .composes = true},
    {.name = "f2llmv2", .steps = kQwen2, .composes = true},
    {.name = "megrez", .steps = kQwen2, .composes = true},
    {.name = "stablelm2", .steps = kQwen2, .composes = true},
    {.name = "hunyuan", .steps = kQwen2},
    {.name = "solar-open", .steps = kQwen2},
    {.name = "grok-2", .steps = kQwen2},
    {.name = "qwen35", .steps = kQwen35, .composes = true},
    {.name = "dbrx", .steps = kLlama3},
    {.name = "smaug-bpe", .steps = kLlama3},
    {.name = "chatglm-bpe", .steps = kLlama3},
    {.name = "glm4", .steps = kLlama3},
    {.name = "gpt-4o", .steps = kGpt4o},
    {.name = "llama4", .steps = kGpt4o},
    {.name = "kanana2", .steps = kGpt4o},
    {.name = "minimax-m2", .steps = kGpt4o},
    {.name = "talkie", .steps = kGpt4o},
    {.name = "deepseek-v3", .steps = kDeepSeek3},
    {.name = "hunyuan-dense", .steps = kDeepSeek3},
    {.name = "joyai-llm", .steps = kDeepSeek3},
    {.name = "hy_v4", .steps = kDeepSeek3},
    {.name = "deepseek-llm", .steps = kDeepSeekLlm},
    {.name = "deepseek-coder", .steps = kDeepSeekCoder},
    {.name = "falcon", .steps = kFalcon},
    {.name = "seed-coder", .steps = kSeedCoder},
    {.name = "bailingmoe", .steps = kBailing},
    {.name = "bailingmoe2", .steps = kBailing},
    {.name = "llada-moe", .steps = kBailing},
    {.name = "exaone-moe", .steps = kExaoneMoe},
    {.name = "viking", .steps = kViking},
    {.name = "bloom", .steps = kBloom},
    {.name = "poro-chat", .steps = kBloom},
    {.name = "gpt3-finnish", .steps = kBloom},
    {.name = "kimi-k2", .steps = kKimi},
    {.name = "tiny_aya", .steps = kTinyAya},
    {.name = "cohere2moe", .steps = kTinyAya},
    {.name = "youtu", .steps = kYoutu},
    {.name = "afmoe", .steps = kAfmoe},
    {.name = "laguna", .steps = kLaguna},
    {.name = "spark2_5", .steps = kSpark},
    {.name = "glm5", .steps = kLlama3, .ignores_merges = true},
    {.name = "jais-2", .steps = kJais2},
    {.name = "minicpm5", .steps = kMiniCpm5, .ignores_merges = true},
    {.name = "ufakzeka", .steps = kUfakZeka},
    {.name = "superbpe", .steps = kSuperBpe},
    {.name = "jina-es", .steps = kGpt2Steps},
    {.name = "jina-de", .steps = kGpt2Steps},
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

std::vector<std::string> pre_tokenizer_names() {
  std::vector<std::string> names;
  for (const PreTokenizer& pre : kPreTokenizers) names.emplace_back(pre.name);
  return names;
}

Json pre_tokenizer_json(const PreTokenizer& pre) {
  Json steps = Json::array();
  bool maps_bytes = false;
  for (const Step& step : pre.steps) {
    switch (step.kind) {
      case StepKind::kRegex:
        steps.push_back(split_step(step.regex));
        break;
      case StepKind::kGpt2:
        steps.push_back(byte_level_step(true));
        maps_bytes = true;
        break;
      case StepKind::kDigits:
        steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
        break;
      case StepKind::kPunctuation:
        steps.push_back({{"type", "Punctuation"}, {"behavior", "Contiguous"}});
        break;
    }
  }
  if (!maps_bytes) steps.push_back(byte_level_step(false));
  if (steps.size() == 1) return steps[0];
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
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
