#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken::bench {

// One entry of a file of prompts.
struct FilePrompt {
  std::string prompt;
  std::string answer;         // sharegpt: what its author got
  std::string messages_json;  // not empty: a chat in place of the prompt
  int output_tokens = 0;      // 0: not told
};

enum class PromptFormat {
  kJsonLines,  // {"prompt": ...} or {"messages": [...]}, and perhaps "output_tokens"
  kShareGpt,   // array of {"conversations": [{"value": prompt}, {"value": answer}, ...]}
  kSpecBench,  // JSON lines {"category": ..., "turns": [prompt, ...]}
};

// The prompts in `text`; `origin` (a file) starts the messages. ShareGPT entries without a prompt
// and an answer are left out, as vLLM does; any other line that does not fit is an error.
// `category`, unless empty, keeps those Spec-Bench lines only, and one must be there.
Result<std::vector<FilePrompt>> read_prompts(PromptFormat format, const std::string& origin,
                                             const std::string& text,
                                             const std::string& category = "");

// Lines that hold more than spaces, without their ends.
std::vector<std::string> text_lines(const std::string& text);

}  // namespace foretoken::bench
