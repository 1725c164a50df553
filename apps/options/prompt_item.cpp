#include "apps/options/prompt_item.h"

#include <set>
#include <sstream>

#include "apps/terminal/file_text.h"
#include "serve/fields/json_fields.h"
#include "serve/fields/sampling_fields.h"
#include "serve/openai/embedding_prompt.h"

namespace foretoken {
namespace {

// What JSON cannot hold is left to the tokenizer's check, which the chat path never reaches.
PromptItem text_item(const std::string& text, const std::string& origin,
                     const PromptSources& sources) {
  PromptItem item;
  item.origin = origin;
  item.request = sources.request;
  item.request.prompt = text;
  item.prompt_name = sources.prompt_name;
  if (!sources.chat) return item;
  item.request.prompt.clear();
  item.arguments_json = sources.arguments_json;
  try {
    const nlohmann::ordered_json message = {{"role", "user"}, {"content", text}};
    item.messages_json = nlohmann::ordered_json::array({message}).dump();
  } catch (const nlohmann::ordered_json::exception&) {
    item.error = invalid_argument(origin + ": is not valid UTF-8");
  }
  return item;
}

Status add_lines(const std::string& path, const PromptSources& sources,
                 std::vector<PromptItem>* items) {
  FT_ASSIGN_OR_RETURN(const std::string text, read_input_file(path));
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    items->push_back(parse_request_line(
        line, (path == "-" ? "stdin" : path) + " line " + std::to_string(number), sources));
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

// "model" of a line is an adapter's name where the engine has some; where it has none, lines that
// were written for another server keep theirs.
Status choose_adapter(const Engine& engine, PromptItem* item) {
  const auto named = item->line.find("model");
  if (named == item->line.end() || !named->is_string()) return {};
  const auto name = named->get<std::string>();
  std::string known;
  for (const AdapterInfo& adapter : engine.adapters()) {
    if (adapter.name == name) {
      item->request.adapter = name;
      return {};
    }
    known += (known.empty() ? "" : ", ") + adapter.name;
  }
  if (known.empty()) return {};
  return invalid_argument(item->origin + ": model '" + name +
                          "' is no adapter of --lora-modules (" + known +
                          "); leave 'model' out for the model itself");
}

// The model's own prompt goes before a text that is embedded.
Status put_prompt(const EngineInfo& info, PromptItem* item) {
  const std::string& named = item->prompt_name;
  const std::string& name = named.empty() ? info.embedding_prompt : named;
  if (name.empty()) return {};
  const EmbeddingPrompt* prompt = find_prompt(info.embedding_prompts, name);
  if (prompt == nullptr) {
    return invalid_argument(item->origin + ": --prompt-name " + name + ": " +
                            no_such_prompt(info.embedding_prompts, name));
  }
  item->request.prompt.insert(0, prompt->text);
  return {};
}

}  // namespace

Status finish_item(const Engine& engine, const SamplingFlags& flags, PromptItem* item) {
  Request& request = item->request;
  if (!item->messages_json.empty()) {
    std::string prompt;
    FT_RETURN_IF_ERROR(engine.render_chat(item->messages_json, item->arguments_json, &prompt));
    request.prompt = std::move(prompt);
    request.add_special_tokens = false;
  }
  const bool is_text = item->messages_json.empty() && request.prompt_token_ids.empty();
  if (request.pooling != Pooling::kNone && is_text) {
    FT_RETURN_IF_ERROR(put_prompt(engine.info(), item));
  }
  if (request.pooling == Pooling::kNone) request.sampling = engine.default_sampling_params();
  FT_RETURN_IF_ERROR(flags.apply(&request.sampling));
  if (item->line.is_null()) return {};
  FT_RETURN_IF_ERROR(choose_adapter(engine, item));
  JsonFields fields(item->line, item->origin);
  read_sampling_fields(fields, &request.sampling);
  read_logprob_counts(fields, &request.sampling);
  return fields.status();
}

Result<Pooling> parse_pooling(const std::string& name) {
  if (name == "none") return Pooling::kNone;
  if (name == "auto") return Pooling::kAuto;
  if (name == "last") return Pooling::kLast;
  if (name == "mean") return Pooling::kMean;
  if (name == "cls") return Pooling::kCls;
  return invalid_argument("pooling is '" + name + "'; it must be auto, last, mean, cls or none");
}

Result<std::vector<PromptItem>> collect_prompts(const PromptSources& sources) {
  std::vector<PromptItem> items;
  for (const std::string& prompt : sources.prompts) {
    items.push_back(text_item(prompt, "prompt " + std::to_string(items.size() + 1), sources));
  }
  for (const std::string& path : sources.prompt_files) {
    FT_ASSIGN_OR_RETURN(const std::string text, read_input_file(path));
    items.push_back(text_item(text, path == "-" ? "stdin" : path, sources));
  }
  for (const std::string& path : sources.jsonl_files) {
    FT_RETURN_IF_ERROR(add_lines(path, sources, &items));
  }
  if (items.empty()) return invalid_argument("the JSON lines hold no request");
  name_requests(&items);
  return items;
}

}  // namespace foretoken
