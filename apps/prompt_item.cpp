#include "prompt_item.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace foretoken {
namespace {

Result<std::string> read_all(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return invalid_argument("'" + path + "' is a folder; name a file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot read '" + path + "': " + std::strerror(errno));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// What JSON cannot hold is left to the tokenizer's check, which the chat path never reaches.
PromptItem text_item(const std::string& text, const std::string& origin,
                     const PromptSources& sources) {
  PromptItem item;
  item.origin = origin;
  item.request.sampling = sources.sampling;
  item.request.prompt = text;
  if (!sources.chat) return item;
  try {
    const nlohmann::json message = {{"role", "user"}, {"content", text}};
    item.messages_json = nlohmann::json::array({message}).dump();
  } catch (const nlohmann::json::exception&) {
    item.error = invalid_argument(origin + ": is not valid UTF-8");
  }
  return item;
}

Status add_lines(const std::string& path, const SamplingParams& sampling,
                 std::vector<PromptItem>* items) {
  FT_ASSIGN_OR_RETURN(const std::string text, read_all(path));
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    items->push_back(parse_request_line(
        line, (path == "-" ? "stdin" : path) + " line " + std::to_string(number), sampling));
  }
  return {};
}

// Ids for the requests that name none; a name given twice is an error of the later one.
void name_requests(std::vector<PromptItem>* items) {
  std::set<std::string> names;
  for (PromptItem& item : *items) {
    const std::string& name = item.request.request_id;
    if (name.empty() || names.insert(name).second || !item.error.ok()) continue;
    item.error = invalid_argument(item.origin + ": request_id '" + name + "' is given twice");
  }
  for (size_t i = 0; i < items->size(); ++i) {
    std::string& name = (*items)[i].request.request_id;
    if (!name.empty()) continue;
    name = "request-" + std::to_string(i);
    while (!names.insert(name).second) name += "'";
  }
}

}  // namespace

Result<std::vector<PromptItem>> collect_prompts(const PromptSources& sources) {
  std::vector<PromptItem> items;
  for (const std::string& prompt : sources.prompts) {
    items.push_back(text_item(prompt, "prompt " + std::to_string(items.size() + 1), sources));
  }
  for (const std::string& path : sources.prompt_files) {
    FT_ASSIGN_OR_RETURN(const std::string text, read_all(path));
    items.push_back(text_item(text, path == "-" ? "stdin" : path, sources));
  }
  for (const std::string& path : sources.jsonl_files) {
    FT_RETURN_IF_ERROR(add_lines(path, sources.sampling, &items));
  }
  if (items.empty()) return invalid_argument("the JSON lines hold no request");
  name_requests(&items);
  return items;
}

}  // namespace foretoken
