#include "base/json_object.h"

#include <set>

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 128;  // deeper values overflow the stack of whoever prints them

// Looks at a text while it is parsed.
struct ObjectChecks {
  std::set<std::string> keys;
  std::string repeated;
  bool too_deep = false;

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    too_deep = too_deep || depth > kMaxDepth;
    if (depth == 1 && event == Json::parse_event_t::key) {
      const std::string key = value.get<std::string>();
      if (!keys.insert(key).second) repeated = key;
    }
    return true;
  }
};

// Without the library's "[json.exception...] ".
std::string reason_of(const Json::exception& error) {
  const std::string text = error.what();
  const size_t bracket = text.find("] ");
  return bracket == std::string::npos ? text : text.substr(bracket + 2);
}

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& what) {
  ObjectChecks checks;
  try {
    const Json::parser_callback_t look = [&](int depth, Json::parse_event_t event, Json& value) {
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
  } catch (const Json::exception& error) {
    return invalid_argument(what + ": not valid JSON (" + reason_of(error) + ")");
  }
}

Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text, const std::string& what) {
  FT_RETURN_IF_ERROR(parse_json(text, what).status());
  return nlohmann::ordered_json::parse(text.begin(), text.end());
}

Result<Json> parse_json_object(std::string_view text, const std::string& what) {
  FT_ASSIGN_OR_RETURN(Json json, parse_json(text, what));
  if (json.is_object()) return json;
  return invalid_argument(what + ": must be a JSON object like {\"name\": value}, not " +
                          std::string(json.type_name()));
}

Result<nlohmann::ordered_json> parse_ordered_json_object(std::string_view text,
                                                         const std::string& what) {
  FT_RETURN_IF_ERROR(parse_json_object(text, what).status());
  return nlohmann::ordered_json::parse(text.begin(), text.end());
}

}  // namespace foretoken
