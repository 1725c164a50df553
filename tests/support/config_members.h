#pragma once
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "support/folders.h"

namespace foretoken::test {

// The names of the members of a struct of include/foretoken/config.h, in its order.
inline std::vector<std::string> config_members(const std::string& name) {
  std::ifstream file(std::string(foretoken::kSourceFolder) + "/include/foretoken/config.h");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = text.find("struct " + name + " {");
  const std::string body = text.substr(begin, text.find("\n};", begin) - begin);
  // A type, which may end its line, then the name, which may end it with `=`, and perhaps a value.
  const std::regex member(R"(\n  [\w:<>*&, ()]+?\s+\*?(\w+)(?: =\s[^;\n]*)?;)");
  std::vector<std::string> names;
  for (std::sregex_iterator at(body.begin(), body.end(), member), end; at != end; ++at) {
    names.push_back((*at)[1]);
  }
  return names;
}

}  // namespace foretoken::test
