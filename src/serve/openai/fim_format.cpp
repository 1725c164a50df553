#include "serve/openai/fim_format.h"

#include <utility>

#include "serve/answer/sse.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/openai_choice.h"

namespace foretoken {

using nlohmann::ordered_json;

FimFormat::FimFormat(OpenAiRequest request, OpenAiLabel label)
    : request_(std::move(request)),
      label_(std::move(label)),
      begun_(static_cast<size_t>(choice_counts(request_).front())),
      num_open_(begun_.size()),
      usage_(request_.requests) {}

std::string FimFormat::whole(const std::vector<const OutputSum*>& sums) {
  ordered_json body = openai_response(request_, sums, {}, label_);
  body["object"] = "chat.completion";
  for (ordered_json& choice : body["choices"]) {
    ordered_json message = {
        {"role", "assistant"}, {"content", choice["text"]}, {"tool_calls", nullptr}};
    choice = {{"index", choice["index"]},
              {"message", std::move(message)},
              {"finish_reason", choice["finish_reason"]}};
  }
  return json_text(body);
}

std::string FimFormat::error(const ServeError& error) { return json_text(openai_error(error)); }

std::string FimFormat::events(size_t request, const ChoiceOutput& news) {
  const RequestOutput& output = news.output;
  usage_.note(request, output.index, output.stats);
  if (output.finished) --num_open_;
  const auto at = static_cast<size_t>(output.index);
  ordered_json delta = ordered_json::object();
  if (!begun_.at(at)) delta["role"] = "assistant";
  begun_[at] = true;
  delta["content"] = output.text;
  ordered_json choice = {{"index", output.index},
                         {"delta", std::move(delta)},
                         {"finish_reason", finish_reason(request_, output, 0)}};
  ordered_json chunk = start_openai_body("chat.completion.chunk", label_);
  chunk["choices"] = ordered_json::array({std::move(choice)});
  if (num_open_ == 0) {
    chunk["usage"] = openai_usage(usage_.counts());
    put_warnings(request_.warnings, &chunk);
  }
  return sse_data(chunk);
}

std::string FimFormat::last_events() { return sse_done(); }

std::string FimFormat::error_events(const ServeError& error) {
  return sse_data(openai_error(error)) + sse_done();
}

}  // namespace foretoken
