#include "serve/openai/foreign_chat.h"

#include <algorithm>

#include "serve/fields/lax_values.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/block_chat.h"
#include "serve/openai/chat_body.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// The texts of one message of OpenAI's first chats as those of today.
void modernise_message(json* message) {
  if (!message->is_object()) return;
  const auto call = message->find("function_call");
  if (call != message->end() && call->is_object()) {
    const json old = *call;
    message->erase("function_call");
    if (!message->contains("tool_calls")) {
      add_tool_call("call_function", old.value("name", json("")), old.value("arguments", json("")),
                    message);
    }
  }
  if (message->value("role", json()) == "function") {
    (*message)["role"] = "tool";
    message->emplace("tool_call_id", "call_function");
  }
}

bool is_old(const json& message) {
  return message.is_object() &&
         (message.contains("function_call") || message.value("role", json()) == "function");
}

bool runs_elsewhere(const json& tool) {
  return tool.is_object() && !tool.contains("function") && tool.contains("type") &&
         tool["type"].is_string() && tool["type"] != "function" && !is_bare_tool(tool);
}

class ForeignChat {
 public:
  explicit ForeignChat(JsonFields& fields) : fields_(fields) {}

  void read() {
    read_thinking();
    read_functions();
    read_usage();
    fields_.stand_in(std::move(values_));
  }

 private:
  // Unless the body says it under vLLM's name.
  void set(const char* name, json value) {
    if (!fields_.has(name)) values_.emplace(name, std::move(value));
  }

  void set_thinking(bool on) {
    json& variables = values_["chat_template_kwargs"];
    const json* given = fields_.raw("chat_template_kwargs");
    if (variables.is_null()) variables = given == nullptr ? json::object() : *given;
    if (variables.is_object()) switch_thinking(on, &variables);
  }

  void read_thinking() {
    if (fields_.has("enable_thinking")) {
      bool on = true;
      fields_.read("enable_thinking", &on);
      set_thinking(on);
    }
    fields_.ignore({"enable_thinking"});
    read_level("think");
    read_effort();
    const json* thinking = fields_.raw("thinking");
    if (thinking != nullptr && thinking->is_object()) {
      const json type = thinking->value("type", json());
      if (type.is_string()) set_thinking(type != "disabled");
      if (thinking->contains("budget_tokens")) {
        fields_.warn("'thinking': 'budget_tokens' is not applied here");
      }
    } else if (thinking != nullptr) {
      read_level("thinking");
    }
    read_reasoning();
  }

  // true, false, or how much.
  void read_level(const char* name) {
    const json* level = fields_.raw(name);
    if (level == nullptr) return;
    if (const std::optional<bool> on = lax_flag(*level)) return set_thinking(*on);
    if (!level->is_string()) return fields_.wrong_type(name, "true, false or a level", *level);
    set("reasoning_effort", *level);
  }

  // As /v1/responses has it: {"effort", "summary"}.
  void read_effort() {
    const json* effort = fields_.raw("reasoning_effort");
    if (effort == nullptr || !effort->is_object()) return;
    values_["reasoning_effort"] = effort->value("effort", json());
  }

  // OpenRouter's.
  void read_reasoning() {
    const json* reasoning = fields_.raw("reasoning");
    if (reasoning == nullptr) return;
    if (const std::optional<bool> on = lax_flag(*reasoning)) return set_thinking(*on);
    if (!reasoning->is_object()) return fields_.wrong_type("reasoning", "an object", *reasoning);
    JsonFields from(*reasoning, "'reasoning'", fields_.notes());
    std::optional<bool> enabled;
    bool exclude = false;
    from.read("enabled", &enabled);
    from.read("exclude", &exclude);
    if (const json* effort = from.raw("effort"); effort != nullptr)
      set("reasoning_effort", *effort);
    from.pass_over({"max_tokens"});
    from.ignore({"summary"});
    from.check_unread();
    if (!from.status().ok()) return fields_.fail(from.status().message());
    if (enabled) set_thinking(*enabled);
    if (exclude) set("include_reasoning", false);
  }

  void read_functions() {
    const json* functions = fields_.raw("functions");
    if (functions != nullptr && !functions->is_array()) {
      return fields_.wrong_type("functions", "an array of functions", *functions);
    }
    if (functions != nullptr && !functions->empty()) {
      json tools = json::array();
      for (const json& one : *functions) tools.push_back({{"type", "function"}, {"function", one}});
      set("tools", std::move(tools));
    }
    if (const json* call = fields_.raw("function_call"); call != nullptr) {
      set("tool_choice",
          call->is_object() ? json{{"type", "function"}, {"function", *call}} : *call);
    }
    read_other_tools();
    read_choice();
    read_prefix();
    const json* messages = fields_.raw("messages");
    if (messages == nullptr || !messages->is_array()) return;
    const bool has_blocks = has_call_blocks(*messages);
    if (!has_blocks && std::none_of(messages->begin(), messages->end(), is_old)) return;
    json modern = has_blocks ? without_call_blocks(*messages) : *messages;
    for (json& message : modern) modernise_message(&message);
    values_["messages"] = std::move(modern);
  }

  // Tools that are no functions run elsewhere.
  void read_other_tools() {
    const json* tools = fields_.raw("tools");
    if (tools == nullptr || !tools->is_array()) return;
    if (std::none_of(tools->begin(), tools->end(),
                     [](const json& tool) { return runs_elsewhere(tool) || is_bare_tool(tool); })) {
      return;
    }
    json kept = json::array();
    for (const json& tool : *tools) {
      if (runs_elsewhere(tool)) {
        fields_.warn("'tools': tools of type '" + shown_name(tool["type"].get<std::string>()) +
                     "' do not run here and were left out; give functions");
      } else {
        kept.push_back(is_bare_tool(tool) ? tool_of_bare(tool) : tool);
      }
    }
    values_["tools"] = kept.empty() ? json() : std::move(kept);
  }

  // Mistral's "any", OpenAI's {"type": "allowed_tools"}, and choices of responses and of Anthropic.
  void read_choice() {
    const json* choice = fields_.raw("tool_choice");
    if (choice == nullptr) return;
    if (*choice == "any") values_["tool_choice"] = "required";
    if (json known = choice_of_blocks(*choice); !known.is_null()) {
      values_["tool_choice"] = std::move(known);
      if (choice->value("disable_parallel_tool_use", json()) == true) {
        set("parallel_tool_calls", false);
      }
    }
    if (!is_allowed_tools(*choice)) return;
    const json* tools = values_.contains("tools") ? &values_["tools"] : fields_.raw("tools");
    json chat = json::object();
    if (tools != nullptr && tools->is_array()) chat["tools"] = *tools;
    const Status status = keep_allowed_tools(*choice, &chat);
    if (!status.ok()) return fields_.fail(status.message());
    for (const char* name : {"tools", "tool_choice"}) values_[name] = chat.value(name, json());
  }

  // An answer that is to go on: Mistral's and DeepSeek's "prefix", Moonshot's "partial".
  void read_prefix() {
    const json* messages = fields_.raw("messages");
    if (messages == nullptr || !messages->is_array() || messages->empty()) return;
    const json& last = messages->back();
    if (!last.is_object() || last.value("role", json()) != "assistant") return;
    for (const char* name : {"prefix", "partial"}) {
      if (lax_flag(last.value(name, json())) == true) set("continue_final_message", true);
    }
  }

  // OpenRouter's wish for counts in a stream.
  void read_usage() {
    const json* usage = fields_.raw("usage");
    const json* stream = fields_.raw("stream");
    if (usage == nullptr || !usage->is_object()) return;
    if (usage->value("include", json()) != true || stream == nullptr || lax_flag(*stream) != true)
      return;
    set("stream_options", {{"include_usage", true}});
  }

  JsonFields& fields_;
  json values_ = json::object();
};

}  // namespace

void read_foreign_chat(JsonFields& fields) { ForeignChat(fields).read(); }

bool has_old_functions(const json& body) {
  const json functions = body.value("functions", json());
  return functions.is_array() && !functions.empty() && body.value("tools", json()).is_null();
}

void switch_thinking(bool on, json* variables) {
  for (const char* name : {"enable_thinking", "thinking"}) variables->emplace(name, on);
}

}  // namespace foretoken
