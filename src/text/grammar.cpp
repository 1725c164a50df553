#include "text/grammar.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/crate_buffers.h"

namespace foretoken {
namespace {

constexpr size_t kMaxText = 1 << 20;

class CrateMask final : public TokenMask {
 public:
  CrateMask(FtMatcher* matcher, std::vector<int32_t> eos_ids, bool ignore_eos)
      : matcher_(matcher, ft_matcher_free), eos_ids_(std::move(eos_ids)), ignore_eos_(ignore_eos) {}

  Status fill(std::span<uint32_t> words) override {
    CrateText error;
    if (ft_matcher_mask(matcher_.get(), words.data(), words.size(), error.out()) != FT_TEXT_OK) {
      return fault(error);
    }
    if (ignore_eos_) put_off_end(words);
    return {};
  }

  int32_t forced(std::span<const uint32_t> words) const override {
    return static_cast<int32_t>(ft_matcher_forced(matcher_.get(), words.data(), words.size()));
  }

  Status consume(int32_t id) override {
    CrateText error;
    const int32_t code = ft_matcher_consume(matcher_.get(), static_cast<uint32_t>(id), error.out());
    return code == FT_TEXT_OK ? Status() : fault(error);
  }

  bool ends(int32_t id) const override {
    return std::find(eos_ids_.begin(), eos_ids_.end(), id) != eos_ids_.end();
  }

  Status rollback(int count) override {
    CrateText error;
    const int32_t code =
        ft_matcher_rollback(matcher_.get(), static_cast<size_t>(count), error.out());
    return code == FT_TEXT_OK ? Status() : fault(error);
  }

  bool is_complete() override { return ft_matcher_is_complete(matcher_.get()); }

 private:
  static Status fault(const CrateText& error) {
    return invalid_argument("structured_outputs: " + error.str());
  }

  void put_off_end(std::span<uint32_t> words) const {
    const auto word = [&](int32_t id) -> uint32_t& { return words[static_cast<size_t>(id) / 32]; };
    if (eos_ids_.empty() || (word(eos_ids_[0]) >> (eos_ids_[0] % 32) & 1u) == 0) return;
    for (const int32_t id : eos_ids_) word(id) &= ~(1u << (id % 32));
    if (std::any_of(words.begin(), words.end(), [](uint32_t w) { return w != 0; })) return;
    for (const int32_t id : eos_ids_) word(id) |= 1u << (id % 32);
  }

  const std::unique_ptr<FtMatcher, void (*)(FtMatcher*)> matcher_;
  const std::vector<int32_t> eos_ids_;
  const bool ignore_eos_;
};

std::vector<const char*> forms_named(const StructuredOutputs& wanted) {
  std::vector<const char*> named;
  if (!wanted.json.empty()) named.push_back("json");
  if (wanted.json_object) named.push_back("json_object");
  if (!wanted.regex.empty()) named.push_back("regex");
  if (!wanted.choice.empty()) named.push_back("choice");
  if (!wanted.grammar.empty()) named.push_back("grammar");
  if (!wanted.structural_tag.empty()) named.push_back("structural_tag");
  return named;
}

Status check_options(const StructuredOutputs& wanted) {
  const bool is_json = !wanted.json.empty() || wanted.json_object;
  const bool has_schemas = is_json || !wanted.structural_tag.empty();
  const char* field = wanted.disable_any_whitespace && !has_schemas ? "disable_any_whitespace"
                      : wanted.disable_additional_properties && !has_schemas
                          ? "disable_additional_properties"
                      : !wanted.whitespace_pattern.empty() && !has_schemas ? "whitespace_pattern"
                                                                           : nullptr;
  if (field != nullptr) {
    return invalid_argument(std::string("structured_outputs: ") + field +
                            " goes with json, json_object and structural_tag only; leave it out");
  }
  if (wanted.disable_any_whitespace && !wanted.whitespace_pattern.empty()) {
    return invalid_argument(
        "structured_outputs: disable_any_whitespace and whitespace_pattern exclude one another; "
        "leave one of the two out");
  }
  return {};
}

std::string list_text(const std::vector<std::string>& texts) {
  return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string text_of(const StructuredOutputs& wanted, uint32_t& kind) {
  if (!wanted.json.empty()) return wanted.json;
  if (wanted.json_object) return R"({"type":"object"})";
  if (!wanted.regex.empty()) return kind = FT_GRAMMAR_REGEX, wanted.regex;
  if (!wanted.grammar.empty()) return kind = FT_GRAMMAR_GRAMMAR, wanted.grammar;
  if (!wanted.structural_tag.empty()) {
    return kind = FT_GRAMMAR_STRUCTURAL_TAG, wanted.structural_tag;
  }
  kind = FT_GRAMMAR_CHOICE;
  return list_text(wanted.choice);
}

}  // namespace

std::string GrammarText::key() const {
  std::string key = std::to_string(kind) + (no_whitespace ? "w" : "-") +
                    (no_additional_properties ? "p" : "-") + (lenient_schemas ? "l" : "-") +
                    (space_after_reasoning ? "s" : "-") +
                    std::to_string(whitespace_pattern.size()) + ":" + whitespace_pattern +
                    std::to_string(reasoning_ends.size()) + ":" + reasoning_ends;
  return key + text;
}

Result<GrammarText> grammar_text(const StructuredOutputs& wanted) {
  const std::vector<const char*> named = forms_named(wanted);
  if (named.size() != 1) {
    return invalid_argument(
        named.empty()
            ? std::string("structured_outputs names no form; set one of json, json_object, regex, "
                          "choice, grammar and structural_tag")
            : std::string("structured_outputs names both ") + named[0] + " and " + named[1] +
                  "; keep one of them");
  }
  FT_RETURN_IF_ERROR(check_options(wanted));
  GrammarText text;
  text.text = text_of(wanted, text.kind);
  text.whitespace_pattern = wanted.whitespace_pattern;
  text.no_whitespace = wanted.disable_any_whitespace;
  text.no_additional_properties = wanted.disable_additional_properties;
  text.lenient_schemas = !wanted.strict_schemas;
  text.space_after_reasoning = wanted.space_after_reasoning;
  if (!wanted.reasoning_ends.empty()) text.reasoning_ends = list_text(wanted.reasoning_ends);
  if (text.text.size() + text.whitespace_pattern.size() <= kMaxText) return text;
  return invalid_argument("structured_outputs: " + std::string(named[0]) + " has " +
                          std::to_string(text.text.size()) + " bytes; at most " +
                          std::to_string(kMaxText) + " are possible");
}

Result<std::unique_ptr<TokenMask>> Grammar::start(const std::vector<int32_t>& eos_ids,
                                                  bool ignore_eos) const {
  FtMatcher* matcher = nullptr;
  CrateText error;
  std::lock_guard lock(mutex_);
  if (ft_matcher_new(grammar_.get(), &matcher, error.out()) != FT_TEXT_OK) {
    return internal_error("structured_outputs: " + error.str());
  }
  return std::unique_ptr<TokenMask>(std::make_unique<CrateMask>(matcher, eos_ids, ignore_eos));
}

Result<std::shared_ptr<const Grammar>> GrammarCompiler::compile(const GrammarText& text) const {
  const FtGrammarText view{.kind = text.kind,
                           .text = text.text.data(),
                           .text_size = text.text.size(),
                           .whitespace_pattern = text.whitespace_pattern.data(),
                           .whitespace_pattern_size = text.whitespace_pattern.size(),
                           .no_whitespace = text.no_whitespace,
                           .no_additional_properties = text.no_additional_properties,
                           .lenient_schemas = text.lenient_schemas,
                           .reasoning_ends = text.reasoning_ends.data(),
                           .reasoning_ends_size = text.reasoning_ends.size(),
                           .space_after_reasoning = text.space_after_reasoning};
  FtGrammar* grammar = nullptr;
  CrateText error;
  if (ft_grammar_new(env_.get(), view, &grammar, error.out()) != FT_TEXT_OK) {
    return invalid_argument("structured_outputs: " + error.str());
  }
  return std::shared_ptr<const Grammar>(std::make_shared<Grammar>(grammar));
}

}  // namespace foretoken
