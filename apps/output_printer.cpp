#include "output_printer.h"

#include <nlohmann/json.hpp>

namespace foretoken {
namespace {

using nlohmann::ordered_json;

// With the line or prompt that it comes from, where there are several.
std::string error_message(const PromptItem& item, const Status& status, bool single) {
  const std::string& message = status.message();
  if (single || message.rfind(item.origin, 0) == 0) return message;
  return item.origin + ": " + message;
}

std::string json_line(const PromptItem& item, const RequestOutput& output) {
  const RequestStats& stats = output.stats;
  ordered_json line;
  line["request_id"] = item.request.request_id;
  line["prompt"] = item.request.prompt;
  line["text"] = output.text;
  line["token_ids"] = output.token_ids;
  line["finish_reason"] = finish_reason_name(output.finish_reason);
  line["stop_reason"] =
      output.stop_reason.empty() ? ordered_json() : ordered_json(output.stop_reason);
  line["usage"] = {{"prompt_tokens", stats.num_prompt_tokens},
                   {"cached_tokens", stats.num_cached_tokens},
                   {"completion_tokens", stats.num_output_tokens},
                   {"total_tokens", stats.num_prompt_tokens + stats.num_output_tokens},
                   {"steps", stats.num_steps},
                   {"drafts", stats.num_drafts},
                   {"drafted_tokens", stats.num_draft_tokens},
                   {"accepted_tokens", stats.num_accepted_tokens},
                   {"preemptions", stats.num_preemptions}};
  line["error"] = output.status.ok() ? ordered_json() : ordered_json(output.status.message());
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string OutputPrinter::new_text(size_t i, const RequestOutput& output) {
  std::string fresh;
  if (!started_ && output.status.ok() && (output.finished || !output.token_ids.empty())) {
    if (i > 0) fresh += "\n";
    if (items_[i].messages_json.empty()) fresh += items_[i].request.prompt;
    started_ = true;
  }
  if (!started_) return fresh;
  fresh += output.text.substr(num_shown_);
  num_shown_ = output.text.size();
  if (output.finished) fresh += "\n";
  return fresh;
}

std::string OutputPrinter::take(const std::vector<RequestOutput>& outputs,
                                std::vector<std::string>* errors) {
  std::string fresh;
  for (; current_ < outputs.size(); ++current_) {
    const RequestOutput& output = outputs[current_];
    if (!json_) fresh += new_text(current_, output);
    if (!output.finished) break;
    if (json_) fresh += json_line(items_[current_], output);
    if (!output.status.ok()) {
      errors->push_back(error_message(items_[current_], output.status, items_.size() == 1));
      any_failed_ = true;
    }
    started_ = false;
    num_shown_ = 0;
  }
  return fresh;
}

}  // namespace foretoken
