#include "bench/samples/prompt_files.h"

#include <set>
#include <sstream>

#include "base/files/json_object.h"

namespace foretoken::bench {
namespace {

using nlohmann::ordered_json;

Result<FilePrompt> json_line_prompt(const ordered_json& object, const std::string& origin) {
  FilePrompt entry;
  const ordered_json messages = object.value("messages", ordered_json());
  if (messages.is_array()) {
    entry.messages_json = messages.dump();
  } else if (object.contains("prompt") && object["prompt"].is_string()) {
    entry.prompt = object["prompt"].get<std::string>();
  } else {
    return invalid_argument(origin + ": 'prompt' must be a string, or 'messages' an array");
  }
  const auto length = object.find("output_tokens");
  if (length == object.end() || length->is_null()) return entry;
  if (!length->is_number_integer() || length->get<int64_t>() < 1 ||
      length->get<int64_t>() > (1 << 30)) {
    return invalid_argument(origin + ": 'output_tokens' must be an integer of at least 1");
  }
  entry.output_tokens = length->get<int>();
  return entry;
}

Result<FilePrompt> spec_bench_prompt(const ordered_json& object, const std::string& origin) {
  const ordered_json turns = object.value("turns", ordered_json());
  if (!turns.is_array() || turns.empty() || !turns[0].is_string()) {
    return invalid_argument(origin + ": 'turns' must be an array of strings");
  }
  FilePrompt entry;
  entry.prompt = turns[0].get<std::string>();
  return entry;
}

Result<std::vector<FilePrompt>> read_lines(PromptFormat format, const std::string& origin,
                                           const std::string& text, const std::string& category) {
  std::vector<FilePrompt> entries;
  std::set<std::string> categories;
  size_t number = 0;
  for (const std::string& line : text_lines(text)) {
    const std::string where = origin + " entry " + std::to_string(++number);
    FT_ASSIGN_OR_RETURN(const ordered_json object, parse_ordered_json_object(line, where));
    const bool spec_bench = format == PromptFormat::kSpecBench;
    if (spec_bench && !category.empty()) {
      const ordered_json own = object.value("category", ordered_json());
      if (own.is_string()) categories.insert(own.get<std::string>());
      if (own != category) continue;
    }
    FT_ASSIGN_OR_RETURN(FilePrompt entry, spec_bench ? spec_bench_prompt(object, where)
                                                     : json_line_prompt(object, where));
    entries.push_back(std::move(entry));
  }
  if (!entries.empty()) return entries;
  if (category.empty() || number == 0) return invalid_argument(origin + ": holds no prompts");
  std::string known;
  for (const std::string& name : categories) known += (known.empty() ? "" : ", ") + name;
  return invalid_argument(origin + ": no prompt of the category '" + category +
                          "'; it has: " + known);
}

Result<std::vector<FilePrompt>> read_sharegpt(const std::string& origin, const std::string& text) {
  FT_ASSIGN_OR_RETURN(const ordered_json all, parse_ordered_json(text, origin));
  if (!all.is_array()) {
    return invalid_argument(origin + ": must be a JSON array of {\"conversations\": [...]}");
  }
  std::vector<FilePrompt> entries;
  for (const ordered_json& object : all) {
    const ordered_json turns =
        object.is_object() ? object.value("conversations", ordered_json()) : ordered_json();
    const auto value = [&](size_t i) {
      const bool has =
          turns[i].is_object() && turns[i].contains("value") && turns[i]["value"].is_string();
      return has ? turns[i]["value"].get<std::string>() : std::string();
    };
    if (!turns.is_array() || turns.size() < 2 || value(0).empty() || value(1).empty()) continue;
    FilePrompt entry;
    entry.prompt = value(0);
    entry.answer = value(1);
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) {
    return invalid_argument(origin +
                            ": no entry has \"conversations\" with a prompt and an answer");
  }
  return entries;
}

}  // namespace

std::vector<std::string> text_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    while (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

Result<std::vector<FilePrompt>> read_prompts(PromptFormat format, const std::string& origin,
                                             const std::string& text, const std::string& category) {
  if (format == PromptFormat::kShareGpt) return read_sharegpt(origin, text);
  return read_lines(format, origin, text, category);
}

}  // namespace foretoken::bench
