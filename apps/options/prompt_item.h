#pragma once
#include <foretoken/engine.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/options/sampling_options.h"
#include "base/result.h"

namespace foretoken {

// One request of the command line, or why it is none.
struct PromptItem {
  std::string origin;           // for messages: "prompt 2", "requests.jsonl line 3"
  Request request;              // without sampling parameters and, of a chat, without prompt
  nlohmann::ordered_json line;  // the fields of its JSON line; they win over the flags
  std::string messages_json;    // not empty: the chat template makes the prompt of it
  std::string arguments_json;   // for the chat template
  std::string prompt_name;      // of the model's own before an embedded text; empty: the usual one
  Status error;
};

// Where the prompts come from and what they share.
struct PromptSources {
  std::vector<std::string> prompts;
  std::vector<std::string> prompt_files;  // "-": stdin
  std::vector<std::string> jsonl_files;
  bool chat = false;  // prompts are user messages
  SamplingFlags sampling;
  Request request;             // what the flags say beside sampling
  std::string arguments_json;  // for the chat template
  std::string prompt_name;     // as in PromptItem
};

// All items in order: prompts, files, JSON lines. An unreadable file is an error; a bad line is an
// item with an error.
Result<std::vector<PromptItem>> collect_prompts(const PromptSources& sources);

// The request of one JSON line: "prompt", "prompt_token_ids" or "messages" with "tools",
// "documents" and "chat_template_kwargs"; sampling fields by vLLM's names; "pooling";
// "prompt_name"; "speculative"; "request_id". Errors start with `origin`.
PromptItem parse_request_line(const std::string& line, const std::string& origin,
                              const PromptSources& shared);

// Completes the item for `engine`: sampling parameters from the model's defaults, the flags and the
// line, in this order, and the prompt of a chat.
Status finish_item(const Engine& engine, const SamplingFlags& flags, PromptItem* item);

// Pooling by name: none, auto, last, mean or cls. An error lists them.
Result<Pooling> parse_pooling(const std::string& name);

}  // namespace foretoken
