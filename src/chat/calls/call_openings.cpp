#include "chat/calls/call_openings.h"

#include <algorithm>
#include <initializer_list>

namespace foretoken {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), name) != known.end();
}

std::vector<std::string> behind(const std::string& marker, const std::vector<std::string>& next) {
  std::vector<std::string> openings;
  for (const std::string& text : next) {
    openings.push_back(marker + text);
    openings.push_back(marker + "\n" + text);
  }
  return openings;
}

}  // namespace

std::vector<std::string> call_openings(std::string_view tool_parser,
                                       const std::vector<std::string>& names) {
  if (is_one_of(tool_parser, {"qwen3_coder", "qwen3_xml", "mimo", "step3p5"})) {
    return behind("<tool_call>", {"<function="});
  }
  if (!is_one_of(tool_parser, {"glm45", "glm47"})) return {};
  std::vector<std::string> calls;
  for (const std::string& name : names) {
    for (const char* end : {"\n", "<arg_key>", "</tool_call>"}) calls.push_back(name + end);
  }
  return behind("<tool_call>", calls);
}

}  // namespace foretoken
