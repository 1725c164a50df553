#include "base/files/python_json.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/files/json_object.h"

namespace foretoken {
namespace {

struct Word {
  std::string_view text;
  double value;
};

constexpr Word kWords[] = {
    {"-Infinity", -std::numeric_limits<double>::infinity()},
    {"Infinity", std::numeric_limits<double>::infinity()},
    {"NaN", std::numeric_limits<double>::quiet_NaN()},
};
// Stands before a word that was put into a string; no text of a configuration begins with it.
constexpr char kMark = '\x01';

// Whether what stands before `rest` is the key of an object.
bool is_key(std::string_view rest) {
  const size_t next = rest.find_first_not_of(" \t\r\n");
  return next != std::string_view::npos && rest[next] == ':';
}

// The text with the words outside of its strings made strings; none where there are none.
std::optional<std::string> quote_words(std::string_view text) {
  std::string quoted;
  bool found = false, inside = false;
  for (size_t i = 0; i < text.size();) {
    const Word* word = nullptr;
    for (const Word& candidate : kWords) {
      if (!inside && word == nullptr && text.substr(i).starts_with(candidate.text)) {
        word = &candidate;
      }
    }
    if (word != nullptr && !is_key(text.substr(i + word->text.size()))) {
      quoted += "\"\\u0001" + std::string(word->text) + '"';
      i += word->text.size();
      found = true;
      continue;
    }
    if (text[i] == '"') inside = !inside;
    const size_t count = inside && text[i] == '\\' && i + 1 < text.size() ? 2 : 1;
    quoted += text.substr(i, count);
    i += count;
  }
  if (!found) return std::nullopt;
  return quoted;
}

const Word* word_of(std::string_view text) {
  for (const Word& word : kWords) {
    if (text == word.text) return &word;
  }
  return nullptr;
}

// As deep as the parser allows.
template <class Json>
void restore(Json& value) {
  if (value.is_structured()) {
    for (Json& part : value) restore(part);
    return;
  }
  if (!value.is_string()) return;
  const std::string& text = value.template get_ref<const std::string&>();
  if (text.empty() || text[0] != kMark) return;
  const Word* word = word_of(std::string_view(text).substr(1));
  if (word != nullptr) value = word->value;
}

// What transformers writes in the place of such a word: {"__float__": "Infinity"}.
constexpr const char* kTag = "__float__";

template <class Json>
const Word* tagged_word(const Json& value) {
  if (!value.is_object() || value.size() != 1) return nullptr;
  const auto tag = value.find(kTag);
  if (tag == value.end() || !tag->is_string()) return nullptr;
  return word_of(tag->template get_ref<const std::string&>());
}

// Makes the tagged parts of a value numbers; as deep as the parser allows.
template <class Json>
void take_tags(Json& value) {
  if (!value.is_structured()) return;
  for (Json& part : value) {
    const Word* word = tagged_word(part);
    if (word != nullptr) {
      part = word->value;
    } else {
      take_tags(part);
    }
  }
}

// `parse` is the parser of files without such words.
template <class Json>
Result<Json> parse_with_words(std::string_view text, const std::string& what,
                              Result<Json> (*parse)(std::string_view, const std::string&)) {
  const std::optional<std::string> quoted = quote_words(text);
  FT_ASSIGN_OR_RETURN(Json value, parse(quoted ? std::string_view(*quoted) : text, what));
  if (quoted) restore(value);
  if (text.find(kTag) != std::string_view::npos) take_tags(value);
  return value;
}

}  // namespace

Result<nlohmann::json> parse_python_json_object(std::string_view text, const std::string& what) {
  return parse_with_words<nlohmann::json>(text, what, parse_json_object);
}

Result<nlohmann::ordered_json> parse_ordered_python_json_object(std::string_view text,
                                                                const std::string& what) {
  return parse_with_words<nlohmann::ordered_json>(text, what, parse_ordered_json_object);
}

std::string python_json_text(const nlohmann::json& value) {
  if (!value.is_number_float() || std::isfinite(value.get<double>())) return value.dump();
  const double number = value.get<double>();
  return std::isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity";
}

}  // namespace foretoken
