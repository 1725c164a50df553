#include "base/files/json_object.h"

#include <set>

#include "base/files/half_pairs.h"

namespace foretoken {
namespace {

constexpr int kMaxDepth = 128;  // deeper values overflow the stack of whoever prints them

// Looks at a text while it is parsed.
template <class Json>
struct ObjectChecks {
  std::set<std::string> keys;
  std::string repeated;
  bool too_deep = false;

  bool operator()(int depth, typename Json::parse_event_t event, Json& value) {
    too_deep = too_deep || depth > kMaxDepth;
    if (depth == 1 && event == Json::parse_event_t::key) {
      const auto key = value.template get<std::string>();
      if (!keys.insert(key).second) repeated = key;
    }
    return true;
  }
};

// Without the library's "[json.exception...] ".
std::string reason_of(const nlohmann::json::exception& error) {
  const std::string text = error.what();
  const size_t bracket = text.find("] ");
  return bracket == std::string::npos ? text : text.substr(bracket + 2);
}

// An option's value less a pair of single quotes around an object or a list: files that no shell
// reads (Compose, Kubernetes, systemd) keep them.
std::string_view without_quotes(std::string_view text, const std::string& what) {
  const bool is_quoted = what.starts_with("--") && text.size() > 3 && text.front() == '\'' &&
                         text.back() == '\'' && (text[1] == '{' || text[1] == '[');
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

template <class Json>
Result<Json> parse(std::string_view text, const std::string& what) {
  text = without_quotes(text, what);
  const std::string repaired = may_have_half_pairs(text) ? without_half_pairs(text) : std::string();
  if (!repaired.empty()) text = repaired;
  ObjectChecks<Json> checks;
  try {
    const typename Json::parser_callback_t look = [&](int depth, typename Json::parse_event_t event,
                                                      Json& value) {
      return checks(depth, event, value);
    };
    Json json = Json::parse(text.begin(), text.end(), look);
    if (checks.too_deep) {
      return invalid_argument(what + ": values are nested deeper than " +
                              std::to_string(kMaxDepth) + " levels");
    }
    if (!checks.repeated.empty()) {
      return invalid_argument(what + ": '" + checks.repeated + "' appears twice; keep one of them");
    }
    return json;
  } catch (const nlohmann::json::exception& error) {
    // Most often the shell has taken the quotes away, or a page's example had single ones.
    const char* remedy = what.starts_with("--")
                             ? "; give JSON within single quotes, as '{\"name\": 1}' or '[\"a\"]'"
                             : "";
    return invalid_argument(what + ": not valid JSON (" + reason_of(error) + ")" + remedy);
  }
}

template <class Json>
Result<Json> parse_object(std::string_view text, const std::string& what) {
  FT_ASSIGN_OR_RETURN(Json json, parse<Json>(text, what));
  if (json.is_object()) return json;
  return invalid_argument(what + ": must be a JSON object like {\"name\": value}, not " +
                          std::string(json.type_name()));
}

template <class Json>
Json parsed(std::string_view text) {
  const std::string repaired = may_have_half_pairs(text) ? without_half_pairs(text) : std::string();
  if (!repaired.empty()) text = repaired;
  bool too_deep = false;
  const typename Json::parser_callback_t look = [&](int depth, typename Json::parse_event_t,
                                                    Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return true;
  };
  Json json = Json::parse(text.begin(), text.end(), look, /*allow_exceptions=*/false);
  if (too_deep) return Json(Json::value_t::discarded);
  return json;
}

}  // namespace

nlohmann::json parsed_json(std::string_view text) { return parsed<nlohmann::json>(text); }

nlohmann::ordered_json parsed_ordered_json(std::string_view text) {
  return parsed<nlohmann::ordered_json>(text);
}

Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text, const std::string& what) {
  return parse<nlohmann::ordered_json>(text, what);
}

Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& what) {
  return parse_object<nlohmann::json>(text, what);
}

Result<nlohmann::ordered_json> parse_ordered_json_object(std::string_view text,
                                                         const std::string& what) {
  return parse_object<nlohmann::ordered_json>(text, what);
}

}  // namespace foretoken
