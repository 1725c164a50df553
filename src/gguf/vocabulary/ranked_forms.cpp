#include <algorithm>
#include <array>
#include <span>

#include "gguf/vocabulary/ranked_tokenizer.h"
#include "gguf/vocabulary/tokenizer_build.h"

namespace foretoken {
namespace {

// tiktoken's cl100k_base: blanks at a text's end are one piece.
constexpr std::string_view kCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+$|\s*[\r\n]|\s+(?!\S)|\s)";
constexpr std::string_view kGpt2 =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A special token by its distance from the number of ranks.
struct SpecialToken {
  std::string_view text;
  int64_t offset;
};

// Tokens that are numbered: `start`, a number from `first` on, "|>" or the like.
struct NumberedTokens {
  std::string_view start;
  std::string_view end;
  int64_t first_number = 0;
  int64_t first_offset = 0;
  int64_t count = 0;
};

constexpr SpecialToken kGpt2Special[] = {{"<|endoftext|>", 0}};
constexpr SpecialToken kCl100kSpecial[] = {{"<|endoftext|>", 1},
                                           {"<|fim_prefix|>", 2},
                                           {"<|fim_middle|>", 3},
                                           {"<|fim_suffix|>", 4},
                                           {"<|endofprompt|>", 20}};
constexpr SpecialToken kO200kSpecial[] = {{"<|endoftext|>", 1}, {"<|endofprompt|>", 20}};
constexpr SpecialToken kQwenSpecial[] = {
    {"<|endoftext|>", 0}, {"<|im_start|>", 1}, {"<|im_end|>", 2}};
constexpr SpecialToken kLlama3Special[] = {{"<|begin_of_text|>", 0},
                                           {"<|end_of_text|>", 1},
                                           {"<|reserved_special_token_0|>", 2},
                                           {"<|reserved_special_token_1|>", 3},
                                           {"<|finetune_right_pad_id|>", 4},
                                           {"<|reserved_special_token_2|>", 5},
                                           {"<|start_header_id|>", 6},
                                           {"<|end_header_id|>", 7},
                                           {"<|eom_id|>", 8},
                                           {"<|eot_id|>", 9},
                                           {"<|python_tag|>", 10}};
constexpr SpecialToken kGlm4Special[] = {{"<|endoftext|>", 0},
                                         {"[MASK]", 1},
                                         {"[gMASK]", 2},
                                         {"[sMASK]", 3},
                                         {"<sop>", 4},
                                         {"<eop>", 5},
                                         {"<|system|>", 6},
                                         {"<|user|>", 7},
                                         {"<|assistant|>", 8},
                                         {"<|observation|>", 9},
                                         {"<|begin_of_image|>", 10},
                                         {"<|end_of_image|>", 11},
                                         {"<|begin_of_video|>", 12},
                                         {"<|end_of_video|>", 13}};

// A family of tiktoken files.
struct RankedFamily {
  std::string_view name;
  size_t num_tokens;
  std::string_view file_start;  // of names that only its files have; empty: none
  std::string_view class_name;  // of its tokenizer; empty: none
  std::string_view pattern;
  std::span<const SpecialToken> special;
  NumberedTokens numbered = {};
  std::array<std::string_view, 2> before = {};
  std::string_view bos = {};
  std::string_view eos = "<|endoftext|>";
  bool composes = false;
};

constexpr RankedFamily kFamilies[] = {
    {"gpt2", 50256, "r50k", "", kGpt2, kGpt2Special},
    {"cl100k_base", 100256, "cl100k", "", kCl100k, kCl100kSpecial},
    {"o200k_base", 199998, "o200k", "", kO200kPattern, kO200kSpecial},
    {"Qwen",
     151643,
     "qwen",
     "QWenTokenizer",
     kOneDigitPattern,
     kQwenSpecial,
     {"<|extra_", "|>", 0, 3, 205},
     {},
     "",
     "<|endoftext|>",
     true},
    {"Llama 3",
     128000,
     "",
     "",
     kThreeDigitsPattern,
     kLlama3Special,
     {"<|reserved_special_token_", "|>", 3, 11, 245},
     {"<|begin_of_text|>"},
     "<|begin_of_text|>",
     "<|end_of_text|>"},
    {"GLM-4",
     151329,
     "",
     "ChatGLM4Tokenizer",
     kThreeDigitsPattern,
     kGlm4Special,
     {},
     {"[gMASK]", "<sop>"}},
    {"Kimi",
     163584,
     "tiktoken.model",
     "TikTokenTokenizer",
     kHanRunsPattern,
     {},
     {"<|reserved_token_", "|>", 163584, 0, 256},
     {},
     "[BOS]",
     "[EOS]"},
};

const RankedFamily* find_family(size_t num_tokens, const std::string& file_name,
                                const std::string& class_name) {
  const auto first = [](auto holds) -> const RankedFamily* {
    const auto* found = std::find_if(std::begin(kFamilies), std::end(kFamilies), holds);
    return found == std::end(kFamilies) ? nullptr : found;
  };
  const RankedFamily* found =
      first([&](const RankedFamily& family) { return family.num_tokens == num_tokens; });
  if (found == nullptr) {
    found = first([&](const RankedFamily& family) {
      return !family.class_name.empty() && class_name.starts_with(family.class_name);
    });
  }
  if (found == nullptr) {
    found = first([&](const RankedFamily& family) {
      return !family.file_start.empty() && file_name.starts_with(family.file_start);
    });
  }
  return found;
}

std::string family_names() {
  std::string names;
  for (const RankedFamily& family : kFamilies) {
    names += (names.empty() ? "" : ", ") + std::string(family.name);
  }
  return names;
}

RankedForm form_of(const RankedFamily& family, int64_t num_tokens) {
  RankedForm form;
  form.pattern = family.pattern;
  form.composes = family.composes;
  form.bos_token = family.bos;
  form.eos_token = family.eos;
  for (const SpecialToken& token : family.special) {
    form.special.push_back({num_tokens + token.offset, std::string(token.text)});
  }
  const NumberedTokens& numbered = family.numbered;
  for (int64_t i = 0; i < numbered.count; ++i) {
    form.special.push_back(
        {num_tokens + numbered.first_offset + i, std::string(numbered.start) +
                                                     std::to_string(numbered.first_number + i) +
                                                     std::string(numbered.end)});
  }
  for (const std::string_view text : family.before) {
    for (const AddedToken& token : form.special) {
      if (token.content == text) form.before.emplace_back(token.content, token.id);
    }
  }
  return form;
}

}  // namespace

Result<RankedForm> find_ranked_form(size_t num_tokens, const std::string& file_name,
                                    const TokenizerSettings& settings, const std::string& where) {
  const RankedFamily* family = find_family(num_tokens, file_name, settings.class_name);
  if (family != nullptr) return form_of(*family, static_cast<int64_t>(num_tokens));
  return unsupported(where + ": how a text is cut for a tiktoken vocabulary of " +
                     std::to_string(num_tokens) + " tokens is not known (" + family_names() +
                     " are); put a tokenizer.json into the folder");
}

}  // namespace foretoken
