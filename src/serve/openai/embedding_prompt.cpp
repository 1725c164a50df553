#include "serve/openai/embedding_prompt.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text/ascii_text.h"
#include "serve/fields/request_warnings.h"

namespace foretoken {
namespace {

using Prompts = std::vector<EmbeddingPrompt>;

// What texts are for, in the words of clients and in those of models.
struct Purpose {
  std::vector<std::string_view> types;
  std::vector<std::string_view> names;
};

const std::vector<Purpose>& purposes() {
  static const std::vector<Purpose> all = {
      {{"query", "search_query", "question"},
       {"query", "search_query", "retrieval-query", "retrieval.query", "s2p_query",
        "web_search_query"}},
      {{"document", "passage", "search_document"},
       {"document", "passage", "search_document", "retrieval-document", "retrieval.passage",
        "corpus"}},
      {{"classification"}, {"classification"}},
      {{"clustering"}, {"clustering", "separation"}},
  };
  return all;
}

const EmbeddingPrompt* prompt_for(const Prompts& prompts, const std::string& type) {
  if (const EmbeddingPrompt* same = find_prompt(prompts, type)) return same;
  for (const Purpose& purpose : purposes()) {
    if (std::ranges::count(purpose.types, lower_case(type)) == 0) continue;
    for (const std::string_view name : purpose.names) {
      if (const EmbeddingPrompt* found = find_prompt(prompts, name)) return found;
    }
  }
  return nullptr;
}

using json = nlohmann::ordered_json;

// What cuts texts that are too long: "right", "left", "" for none of them; none: something else.
std::optional<std::string> cut_side(const json& truncate) {
  if (truncate.is_boolean()) return truncate.get<bool>() ? "right" : "";
  if (!truncate.is_string()) return std::nullopt;
  const std::string name = lower_case(truncate.get<std::string>());
  if (name == "end") return "right";
  if (name == "start") return "left";
  return name == "none" ? std::optional<std::string>("") : std::nullopt;
}

// Whether there was one.
bool rename_truncation(const char* name, json* body) {
  const auto found = body->find(name);
  if (found == body->end() || body->contains("truncate_prompt_tokens")) return false;
  const std::optional<std::string> side = cut_side(*found);
  if (!side) return false;
  body->erase(name);
  if (side->empty()) return true;
  (*body)["truncate_prompt_tokens"] = -1;
  (*body)["truncation_side"] = *side;
  return true;
}

bool rename(const char* theirs, const char* ours, json* body) {
  if (!body->contains(theirs) || body->contains(ours)) return false;
  (*body)[ours] = json(body->at(theirs));
  body->erase(theirs);
  return true;
}

bool is_text_object(const json& item) {
  return item.is_object() && item.size() == 1 && item.contains("text") && item["text"].is_string();
}

}  // namespace

std::optional<json> as_openais_embedding(const json& body) {
  constexpr std::pair<const char*, const char*> kNames[] = {{"output_dimension", "dimensions"},
                                                            {"normalized", "normalize"},
                                                            {"embedding_type", "encoding_format"}};
  const auto input = body.find("input");
  const bool has_objects =
      input != body.end() && input->is_array() && std::ranges::any_of(*input, is_text_object);
  const bool has_names =
      body.contains("truncate") || body.contains("truncation") ||
      std::ranges::any_of(kNames, [&](const auto& name) { return body.contains(name.first); });
  if (!has_names && !has_objects) return std::nullopt;
  json told = body;
  bool changed = has_objects;
  for (const auto& [theirs, ours] : kNames) changed = rename(theirs, ours, &told) || changed;
  for (const char* name : {"truncate", "truncation"}) {
    changed = rename_truncation(name, &told) || changed;
  }
  if (!changed) return std::nullopt;
  if (!has_objects) return told;
  for (json& item : told["input"]) {
    if (is_text_object(item)) item = json(item["text"]);
  }
  return told;
}

const EmbeddingPrompt* find_prompt(const std::vector<EmbeddingPrompt>& prompts,
                                   std::string_view name) {
  for (const EmbeddingPrompt& prompt : prompts) {
    if (prompt.name == name) return &prompt;
  }
  for (const EmbeddingPrompt& prompt : prompts) {
    if (lower_case(prompt.name) == lower_case(name)) return &prompt;
  }
  return nullptr;
}

std::string no_such_prompt(const std::vector<EmbeddingPrompt>& prompts, const std::string& name) {
  if (prompts.empty()) return "the model has no prompts of its own";
  std::string list;
  for (const EmbeddingPrompt& prompt : prompts) {
    list += (list.empty() ? "'" : ", '") + prompt.name + "'";
  }
  return "the model has no prompt '" + shown_name(name) + "'; it has " + list;
}

std::string read_embedding_prompt(JsonFields& fields, const OpenAiDefaults& defaults) {
  const Prompts& prompts = defaults.embedding_prompts;
  if (prompts.empty()) {
    fields.pass_over({"prompt_name", "input_type"});
    return {};
  }
  std::string name;
  std::string type;
  fields.read("prompt_name", &name);
  fields.read("input_type", &type);
  const EmbeddingPrompt* prompt = nullptr;
  if (!name.empty()) {
    prompt = find_prompt(prompts, name);
    if (prompt == nullptr) {
      fields.fail("'prompt_name': " + no_such_prompt(prompts, name));
    }
  } else if (!type.empty()) {
    prompt = prompt_for(prompts, type);
  }
  if (prompt == nullptr) prompt = find_prompt(prompts, defaults.embedding_prompt);
  return prompt == nullptr ? std::string() : prompt->text;
}

void put_before_texts(JsonFields& fields, const std::string& prompt,
                      std::vector<Request>* requests) {
  if (prompt.empty()) return;
  for (Request& request : *requests) {
    if (request.prompt_token_ids.empty()) {
      request.prompt.insert(0, prompt);
    } else if (fields.has("prompt_name")) {
      fields.fail("'prompt_name' names a text that goes before texts; give 'input' as text");
    }
  }
}

}  // namespace foretoken
