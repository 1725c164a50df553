#include "serve/ollama/ollama_format.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "base/files/json_object.h"
#include "serve/answer/timings.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/openai_choice.h"
#include "serve/openai/openai_logprobs.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;
using Kind = ChatPiece::Kind;

// "2026-11-26T12:00:00.123456Z".
std::string time_now() {
  using std::chrono::system_clock;
  const auto since =
      std::chrono::duration_cast<std::chrono::microseconds>(system_clock::now().time_since_epoch())
          .count();
  const std::time_t seconds = since / 1'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string fraction = std::to_string(1'000'000 + since % 1'000'000).substr(1);
  return std::string(text, length) + "." + fraction + "Z";
}

int64_t ns_since(OutputTimes::Time begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(OutputTimes::Time::clock::now() -
                                                              begin)
      .count();
}

// Of a member of llama.cpp's timings; at least 1, as clients divide by it.
int64_t ns_of(const json& timings, const char* name) {
  return std::max(static_cast<int64_t>(timings.at(name).get<double>() * 1e6), int64_t{1});
}

json call_json(const ContentBlock& block) {
  json arguments = parsed_ordered_json(block.text);
  if (!arguments.is_object()) arguments = json::object();
  return {{"id", block.call_id},
          {"function",
           {{"index", block.call_index},
            {"name", block.call_name},
            {"arguments", std::move(arguments)}}}};
}

const char* done_reason(const RequestOutput& output) {
  if (output.finish_reason == FinishReason::kLength) return "length";
  return output.finish_reason == FinishReason::kStop ? "stop" : "abort";
}

}  // namespace

OllamaFormat::OllamaFormat(OllamaAnswer kind, OpenAiRequest request, OpenAiLabel label)
    : kind_(kind),
      request_(std::move(request)),
      label_(std::move(label)),
      blocks_(request_.include_reasoning) {
  if (request_.kind == OpenAiKind::kChat) parser_ = make_choice_parser(request_);
}

void OllamaFormat::take(const std::vector<BlockStep>& steps, News* news) const {
  for (const BlockStep& step : steps) {
    const ContentBlock& block = blocks_.all()[step.block];
    if (block.kind == Kind::kToolCall) {
      if (step.kind == BlockStep::Kind::kClose) news->calls.push_back(call_json(block));
    } else {
      (block.kind == Kind::kReasoning ? news->thinking : news->content) += step.text;
    }
  }
}

OllamaFormat::News OllamaFormat::add(const RequestOutput& output) {
  News news;
  if (parser_ == nullptr) {
    news.content = output.text;
    return news;
  }
  take(blocks_.add(parser_->push(output.text)), &news);
  if (!output.finished) return news;
  take(blocks_.add(parser_->finish()), &news);
  take(blocks_.finish(), &news);
  return news;
}

json OllamaFormat::start(const News& news, bool done) const {
  json answer = {{"model", label_.model}, {"created_at", time_now()}};
  json parts = json::object();
  if (!news.thinking.empty()) parts["thinking"] = news.thinking;
  if (!news.calls.empty()) parts["tool_calls"] = news.calls;
  if (kind_ == OllamaAnswer::kChat) {
    json message = {{"role", "assistant"}, {"content", news.content}};
    message.update(parts);
    answer["message"] = std::move(message);
  } else {
    answer["response"] = news.content;
    answer.update(parts);
  }
  answer["done"] = done;
  return answer;
}

void OllamaFormat::add_logprobs(const RequestOutput& output, json* answer) const {
  if (output.logprobs.empty()) return;
  (*answer)["logprobs"] = chat_logprobs(output.logprobs)["content"];
}

void OllamaFormat::add_end(const RequestOutput& output, const OutputTimes& times,
                           json* answer) const {
  const json timings = timings_json(output.stats, times, label_.submitted);
  (*answer)["done_reason"] = done_reason(output);
  (*answer)["total_duration"] = ns_since(label_.submitted);
  (*answer)["load_duration"] = 0;
  (*answer)["prompt_eval_count"] = output.stats.num_prompt_tokens;
  (*answer)["prompt_eval_duration"] = ns_of(timings, "prompt_ms");
  (*answer)["eval_count"] = output.stats.num_output_tokens;
  (*answer)["eval_duration"] = ns_of(timings, "predicted_ms");
  put_warnings(request_.warnings, answer);
}

std::string OllamaFormat::whole(const std::vector<const OutputSum*>& sums) {
  const RequestOutput& output = sums.front()->choices().front();
  json answer = start(add(output), true);
  add_logprobs(output, &answer);
  add_end(output, sums.front()->times(0), &answer);
  return json_text(answer);
}

std::string OllamaFormat::error(const ServeError& error) { return json_text(ollama_error(error)); }

std::string OllamaFormat::events(size_t, const ChoiceOutput& news) {
  if (!times_.first) times_.first = news.times.first;
  if (news.times.last) times_.last = news.times.last;
  std::string lines;
  const News told = add(news.output);
  if (!told.empty() || !news.output.logprobs.empty()) {
    json line = start(told, false);
    add_logprobs(news.output, &line);
    lines = json_text(line) + "\n";
  }
  if (!news.output.finished) return lines;
  json last = start({}, true);
  add_end(news.output, times_, &last);
  return lines + json_text(last) + "\n";
}

std::string OllamaFormat::error_events(const ServeError& error) {
  return json_text(ollama_error(error)) + "\n";
}

std::string OllamaEmbedFormat::whole(const std::vector<const OutputSum*>& sums) {
  json vectors = json::array();
  int64_t num_tokens = 0;
  for (const OutputSum* sum : sums) {
    vectors.push_back(embedding_value(request_, sum->choices().front().embedding));
    num_tokens += sum->stats().num_prompt_tokens;
  }
  json answer;
  if (single_) {
    answer = {{"embedding", vectors.front()}};
  } else {
    answer = {{"model", label().model},
              {"embeddings", std::move(vectors)},
              {"total_duration", ns_since(label().submitted)},
              {"load_duration", 0},
              {"prompt_eval_count", num_tokens}};
  }
  put_warnings(request_.warnings, &answer);
  return json_text(answer);
}

std::string OllamaEmbedFormat::error(const ServeError& error) {
  return json_text(ollama_error(error));
}

json ollama_load_answer(OllamaAnswer kind, const std::string& model, bool keeps_model) {
  json answer = {{"model", model}, {"created_at", time_now()}};
  if (kind == OllamaAnswer::kChat) {
    answer["message"] = {{"role", "assistant"}, {"content", ""}};
  } else {
    answer["response"] = "";
  }
  answer["done"] = true;
  answer["done_reason"] = keeps_model ? "load" : "unload";
  return answer;
}

json ollama_error(const ServeError& error) { return {{"error", error.status.message()}}; }

}  // namespace foretoken
