#pragma once
#include <cctype>
#include <string>
#include <vector>

namespace foretoken::bench {

// What keeps `text` from being well-formed XML, or nothing. Knows declarations, elements, quoted
// attributes and the five named entities: all that a plot needs.
inline std::string xml_problem(const std::string& text) {
  std::vector<std::string> open;
  size_t i = 0;
  const auto fail = [&](const std::string& what) { return what + " at " + std::to_string(i); };
  const auto is_name = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == ':'; };
  bool had_root = false;
  while (i < text.size()) {
    if (text[i] == '&') {
      bool known = false;
      for (const char* entity : {"&lt;", "&gt;", "&amp;", "&quot;", "&apos;"}) {
        known = known || text.compare(i, std::string(entity).size(), entity) == 0;
      }
      if (!known) return fail("bare &");
    }
    if (text[i] != '<') {
      if (open.empty() && !std::isspace(static_cast<unsigned char>(text[i]))) {
        return fail("text outside the root");
      }
      ++i;
      continue;
    }
    const bool declaration = text.compare(i, 2, "<?") == 0;
    const bool closing = text.compare(i, 2, "</") == 0;
    i += declaration || closing ? 2 : 1;
    std::string name;
    while (i < text.size() && is_name(text[i])) name += text[i++];
    if (name.empty()) return fail("< without a name");
    bool quoted = false;
    bool empty = false;
    for (; i < text.size() && (quoted || text[i] != '>'); ++i) {
      if (quoted && text[i] == '<') return fail("< in an attribute");
      if (text[i] == '"') {
        if (!quoted && text[i - 1] != '=') return fail("value without a name");
        quoted = !quoted;
      }
      if (!quoted) empty = text[i] == '/';
    }
    if (i == text.size()) return fail("tag without its end");
    ++i;
    if (declaration) continue;
    if (closing) {
      if (open.empty() || open.back() != name) return fail("</" + name + "> that closes nothing");
      open.pop_back();
    } else {
      if (open.empty() && had_root) return fail("second root");
      had_root = true;
      if (!empty) open.push_back(name);
    }
  }
  if (!open.empty()) return fail("<" + open.back() + "> is not closed");
  return had_root ? "" : "no root";
}

}  // namespace foretoken::bench
