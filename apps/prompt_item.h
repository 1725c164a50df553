#pragma once
#include <foretoken/request.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// One request of the command line, or why it is none.
struct PromptItem {
  std::string origin;  // for messages: "prompt 2", "requests.jsonl line 3"
  Request request;
  std::string messages_json;  // not empty: the chat template makes the prompt of it
  Status error;
};

// Where the prompts come from and what they share.
struct PromptSources {
  std::vector<std::string> prompts;
  std::vector<std::string> prompt_files;  // "-": stdin
  std::vector<std::string> jsonl_files;
  bool chat = false;  // prompts are user messages
  SamplingParams sampling;
};

// All items in order: prompts, files, JSON lines. An unreadable file is an error; a bad line is an
// item with an error.
Result<std::vector<PromptItem>> collect_prompts(const PromptSources& sources);

// The request of one JSON line: "prompt", "prompt_token_ids" or "messages"; sampling fields by
// vLLM's names, which override `sampling`; "speculative"; "request_id". Errors start with `origin`.
PromptItem parse_request_line(const std::string& line, const std::string& origin,
                              const SamplingParams& sampling);

}  // namespace foretoken
