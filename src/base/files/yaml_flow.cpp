#include "base/files/yaml_flow.h"

#include "base/files/json_object.h"
#include "base/files/yaml_list.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxFlowDepth = 32;

bool is_quote(char c) { return c == '"' || c == '\''; }

class FlowReader {
 public:
  explicit FlowReader(std::string_view text) : text_(text) {}

  std::optional<Json> whole() {
    Json value;
    if (!read_value(value, 0)) return std::nullopt;
    pass_blanks();
    if (at_ != text_.size()) return std::nullopt;
    return value;
  }

 private:
  void pass_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  bool take(char wanted) {
    pass_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  bool read_value(Json& value, int depth) {
    if (depth > kMaxFlowDepth) return false;
    if (take('{')) return read_members(value, depth);
    if (take('[')) return read_items(value, depth);
    std::string text;
    bool quoted = false;
    if (!read_scalar(",]}", text, quoted)) return false;
    value = quoted ? Json(text) : plain(text);
    return true;
  }

  bool read_members(Json& object, int depth) {
    object = Json::object();
    while (!take('}')) {
      std::string name;
      bool quoted = false;
      if (!read_scalar(":", name, quoted) || name.empty() || !take(':')) return false;
      if (object.contains(name) || !read_value(object[name], depth + 1)) return false;
      if (take(',')) continue;
      return take('}');
    }
    return true;
  }

  bool read_items(Json& list, int depth) {
    list = Json::array();
    while (!take(']')) {
      list.push_back(nullptr);
      if (!read_value(list.back(), depth + 1)) return false;
      if (take(',')) continue;
      return take(']');
    }
    return true;
  }

  // A text in quotes, or one up to any of `ends`.
  bool read_scalar(std::string_view ends, std::string& text, bool& quoted) {
    pass_blanks();
    if (at_ == text_.size()) return false;
    quoted = is_quote(text_[at_]);
    if (!quoted) {
      const size_t end = text_.find_first_of(ends, at_);
      if (end == std::string_view::npos) return false;
      text = trimmed_line(text_.substr(at_, end - at_));
      at_ = end;
      return text.find_first_of("{[\"") == std::string::npos;
    }
    const char quote = text_[at_];
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote)
      end += quote == '"' && text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return false;
    const std::string_view inner = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    text = inner;
    if (quote == '\'') return true;
    const Json read = parsed_ordered_json("\"" + text + "\"");
    if (!read.is_string()) return false;
    text = read.get<std::string>();
    return true;
  }

  static Json plain(const std::string& text) {
    if (text == "True" || text == "False") return text == "True";
    if (text.empty() || text == "~" || text == "None") return nullptr;
    Json value = parsed_ordered_json(text);
    return value.is_discarded() ? Json(text) : value;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<nlohmann::ordered_json> parse_yaml_flow(std::string_view text) {
  return FlowReader(text).whole();
}

int open_brackets(std::string_view text) {
  int open = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (quote == '"' && c == '\\')
        ++i;
      else if (c == quote)
        quote = 0;
    } else if (is_quote(c)) {
      quote = c;
    } else if (c == '{' || c == '[') {
      ++open;
    } else if (c == '}' || c == ']') {
      --open;
    }
  }
  return open;
}

}  // namespace foretoken
