#include "model/json_file.h"

#include <fstream>
#include <set>
#include <sstream>

namespace foretoken {

Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& what) {
  using Json = nlohmann::json;
  std::set<std::string> keys;
  std::string repeated;
  const Json::parser_callback_t note_keys = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth == 1 && event == Json::parse_event_t::key &&
        !keys.insert(value.get<std::string>()).second) {
      repeated = value.get<std::string>();
    }
    return true;
  };
  try {
    Json json = Json::parse(text.begin(), text.end(), note_keys);
    if (!json.is_object()) return invalid_argument(what + ": a JSON object was expected");
    if (!repeated.empty()) {
      return invalid_argument(what + ": '" + repeated + "' appears twice; keep one of them");
    }
    return json;
  } catch (const Json::exception& error) {
    // The library begins its messages with "[json.exception...] ".
    const std::string text_of_error = error.what();
    const size_t bracket = text_of_error.find("] ");
    const std::string reason =
        bracket == std::string::npos ? text_of_error : text_of_error.substr(bracket + 2);
    return invalid_argument(what + ": broken JSON (" + reason + "); fetch or write the file again");
  }
}

Result<nlohmann::json> read_json_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return not_found("cannot read " + path + "; check the path and the permissions");
  }
  return parse_json_object(text.str(), path);
}

}  // namespace foretoken
