#pragma once
#include <foretoken/engine.h>

#include <string>

#include "apps/terminal/terminal_style.h"

namespace foretoken {

// What became of one question.
struct ChatAnswer {
  std::string text;
  FinishReason finish_reason = FinishReason::kNone;
  RequestStats stats;
  double seconds = 0;
  Status status;
};

// Runs the request and writes its text to stdout as it comes, accepted drafts tinted. A signal ends
// it with what there is.
ChatAnswer stream_answer(Engine& engine, Request request, const TerminalStyle& style);

// "[57 tokens in 0.41 s, 139.0 tokens/s; draft acceptance rate 48.0 % (24 of 50 drafted tokens),
// mean acceptance length 2.1, by position 0.625, 0.357]".
std::string answer_line(const ChatAnswer& answer, bool drafts);

}  // namespace foretoken
