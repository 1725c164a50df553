#include "model/json_file.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace foretoken {
namespace {

constexpr int kMaxDepth = 128;  // deeper values overflow the stack of whoever prints them

}  // namespace

Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& what) {
  using Json = nlohmann::json;
  std::set<std::string> keys;
  std::string repeated;
  bool too_deep = false;
  const Json::parser_callback_t note_keys = [&](int depth, Json::parse_event_t event, Json& value) {
    too_deep = too_deep || depth > kMaxDepth;
    if (depth == 1 && event == Json::parse_event_t::key &&
        !keys.insert(value.get<std::string>()).second) {
      repeated = value.get<std::string>();
    }
    return true;
  };
  try {
    Json json = Json::parse(text.begin(), text.end(), note_keys);
    if (too_deep) {
      return invalid_argument(what + ": values are nested deeper than " +
                              std::to_string(kMaxDepth) + " levels");
    }
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
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path, ignored)) {
    return not_found("cannot read " + path + "; check the path and the permissions");
  }
  std::ostringstream text;
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  return parse_json_object(text.str(), path);
}

}  // namespace foretoken
