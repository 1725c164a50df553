#include "apps/chat/chat_answer.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <vector>

#include "apps/terminal/interrupt.h"
#include "apps/terminal/report.h"

namespace foretoken {
namespace {

using std::chrono::steady_clock;

// Outputs on their way from the engine's thread.
class OutputQueue {
 public:
  void push(const RequestOutput& output) {
    std::lock_guard lock(mutex_);
    outputs_.push_back(output);
    news_.notify_all();
  }

  // Waits at most 50 ms.
  std::vector<RequestOutput> take() {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, std::chrono::milliseconds(50), [this] { return !outputs_.empty(); });
    return std::exchange(outputs_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<RequestOutput> outputs_;
};

std::string tinted(const RequestOutput& output, const TerminalStyle& style) {
  const size_t split = std::min(output.accepted_text_bytes, output.text.size());
  return style.accepted(harmless(output.text.substr(0, split))) +
         harmless(output.text.substr(split));
}

void write_out(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

const char* ending(const ChatAnswer& answer) {
  if (answer.finish_reason == FinishReason::kLength) return "; cut at max_tokens or the context";
  if (answer.finish_reason == FinishReason::kAbort) return "; stopped";
  return "";
}

}  // namespace

ChatAnswer stream_answer(Engine& engine, Request request, const TerminalStyle& style) {
  ChatAnswer answer;
  OutputQueue queue;
  const auto start = steady_clock::now();
  std::string id;
  answer.status = engine.submit(
      std::move(request), [&queue](const RequestOutput& output) { queue.push(output); }, &id);
  bool aborted = false;
  for (bool finished = !answer.status.ok(); !finished;) {
    for (const RequestOutput& output : queue.take()) {
      write_out(tinted(output, style));
      answer.text += output.text;
      answer.finish_reason = output.finish_reason;
      answer.status = output.status;
      answer.stats = output.stats;
      finished = finished || output.finished;
    }
    if (interrupt_flag().load() && !aborted && !finished) {
      engine.abort(id);
      aborted = true;
    }
  }
  answer.seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
  if (!answer.text.empty()) write_out("\n");
  return answer;
}

std::string answer_line(const ChatAnswer& answer, bool drafts) {
  std::string line = "[" + throughput_line(answer.stats.num_output_tokens, answer.seconds);
  if (drafts) {
    line += fmt::format("; {}, mean acceptance length {:.1f}", acceptance_line(answer.stats),
                        mean_acceptance_length(answer.stats));
    const std::string rates = position_rates_text(answer.stats);
    if (!rates.empty()) line += ", by position " + rates;
  }
  return line + ending(answer) + "]";
}

}  // namespace foretoken
