// Bodies of requests as HTTP brings them, through every reader of the server up to the engine and,
// where a body is taken, the answer that a model's text would make. The first byte is the endpoint,
// the second one the parsers of the server; the body goes to the first NUL, the model's text comes
// behind it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "canned_engine.h"
#include "http/message/header_text.h"
#include "serve/anthropic/messages_format.h"
#include "serve/anthropic/messages_request.h"
#include "serve/fields/request_body.h"
#include "serve/openai/openai_choice.h"
#include "serve/openai/openai_format.h"
#include "serve/responses/responses_format.h"
#include "serve/responses/responses_request.h"
#include "serve/routes/chat_batch.h"
#include "serve/routes/info_handlers.h"
#include "serve/routes/message_handlers.h"
#include "serve/routes/token_handlers.h"

namespace {

using namespace foretoken;
using foretoken::test::require;
using json = nlohmann::ordered_json;

// Keeps what is answered at once.
class KeptExchange final : public http::Exchange {
 public:
  const http::Request& request() const override { return request_; }
  void respond(int status, const std::string&, std::string body, http::Headers) override {
    require(status >= 200 && status < 600 && json::accept(body));
    ++num_answers;
  }
  void begin(int, const std::string&, http::Headers) override { require(false); }
  void write(std::string) override { require(false); }
  void end() override { require(false); }
  size_t num_queued_bytes() const override { return 0; }
  void post(std::function<void()> work) override { work(); }
  void when_sent(std::function<void()> work) override { work(); }
  void when_gone(std::function<void()>) override {}
  bool gone() const override { return false; }

  int num_answers = 0;

 private:
  http::Request request_;
};

struct Input {
  uint8_t flavour = 0;
  json body;
  std::string text;  // of the model

  // Where the text is cut: between characters.
  size_t cut(size_t from, size_t step) const {
    size_t at = std::min(from + step, text.size());
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    return at;
  }
};

test::CannedEngine& engine() {
  static test::CannedEngine one;
  return one;
}

ServeContext& context() {
  static ServeContext one(engine(), [] {
    ServeConfig config;
    config.model_names = {"tiny"};
    config.num_threads = 1;
    config.max_stored_responses = 4;
    return config;
  }());
  return one;
}

ResponseStore& store() {
  static ResponseStore one(4);
  return one;
}

OpenAiDefaults defaults_of(uint8_t flavour) {
  static const std::vector<std::string> tools = tool_parser_names();
  static const std::vector<std::string> reasoning = reasoning_parser_names();
  OpenAiDefaults defaults;
  defaults.max_model_len = 512;
  defaults.model_names = {"tiny"};
  const size_t tool = flavour % (tools.size() + 1);
  const size_t thought = flavour / (tools.size() + 1) % (reasoning.size() + 1);
  if (tool > 0) defaults.tool_parser = tools[tool - 1];
  if (thought > 0) defaults.reasoning_parser = reasoning[thought - 1];
  defaults.refuse_unparsed_tools = flavour >= 128;
  return defaults;
}

void check_error(const ServeError& error) {
  require(!error.status.ok() && !error.status.message().empty());
  require(error.http == 400 || error.http == 404 || error.http == 501);
  require(json::accept(json_text(openai_error(error))));
  require(json::accept(json_text(anthropic_error(error))));
}

ChatDelta parse_text(const OpenAiRequest& request, const Input& input, size_t step) {
  const std::unique_ptr<ChatParser> parser = make_choice_parser(request);
  ChatDelta sum;
  for (size_t at = 0; at < input.text.size();) {
    const size_t end = input.cut(at, step);
    add_pieces(parser->push(std::string_view(input.text).substr(at, end - at)), &sum);
    at = end;
  }
  add_pieces(parser->finish(), &sum);
  require(parser->num_tool_calls() >= static_cast<int>(sum.tool_calls.size()));
  return sum;
}

// How the text is cut must change nothing.
void check_parser(const OpenAiRequest& request, const Input& input) {
  const ChatDelta whole = parse_text(request, input, std::max<size_t>(input.text.size(), 1));
  const ChatDelta cut = parse_text(request, input, input.flavour % 7 + 1);
  require(whole.content == cut.content && whole.reasoning == cut.reasoning);
  require(whole.tool_calls.size() == cut.tool_calls.size());
  for (size_t i = 0; i < whole.tool_calls.size(); ++i) {
    require(whole.tool_calls[i].name == cut.tool_calls[i].name);
    require(whole.tool_calls[i].arguments == cut.tool_calls[i].arguments);
  }
}

// One piece of a choice's text, or all of it.
RequestOutput output_of(const Input& input, size_t begin, size_t end) {
  RequestOutput output;
  output.text = input.text.substr(begin, end - begin);
  output.token_ids.assign(output.text.size(), 1);
  output.stats.num_output_tokens = static_cast<int64_t>(end);
  output.finished = output.request_finished = end == input.text.size();
  if (!output.finished) return output;
  output.finish_reason = input.flavour % 2 == 0 ? FinishReason::kStop : FinishReason::kLength;
  return output;
}

// Every event is a line of JSON.
void check_events(const std::string& events) {
  for (size_t at = 0; at < events.size();) {
    const size_t end = events.find('\n', at);
    require(end != std::string::npos);
    const std::string line = events.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with("data: ") || line == "data: [DONE]") continue;
    require(json::accept(line.substr(6)));
  }
}

void answer(AnswerFormat& format, const OpenAiRequest& request, const Input& input) {
  if (!request.stream) {
    std::vector<OutputSum> sums;
    for (const Request& one : request.requests) {
      OutputSum& sum = sums.emplace_back(one.sampling.n);
      for (int i = 0; i < one.sampling.n; ++i) {
        RequestOutput output = output_of(input, 0, input.text.size());
        output.index = i;
        sum.add(output);
      }
    }
    std::vector<const OutputSum*> all;
    for (const OutputSum& sum : sums) all.push_back(&sum);
    return require(json::accept(format.whole(all)));
  }
  std::string events;
  for (size_t at = 0, end = 0;; at = end) {
    end = input.cut(at, input.flavour % 16 + 1);
    ChoiceOutput news;
    news.add(output_of(input, at, end));
    events += format.events(0, news);
    if (news.output.finished) break;
  }
  check_events(events + format.last_events());
}

// A few choices show what many would.
bool is_small(const OpenAiRequest& request) {
  return request.requests.size() <= 4 && request.requests.front().sampling.n <= 4;
}

// What follows a body that was read; false where the prompt or the forced form is refused.
bool check_request(OpenAiRequest& request, const Input& input) {
  require(!request.requests.empty());
  engine().prompt_end = input.flavour % 3 == 0 ? "<think>\n" : "";
  if (const Status status = render_openai_prompt(engine(), &request); !status.ok()) {
    check_error(status);
    return false;
  }
  if (request.kind == OpenAiKind::kChat) check_parser(request, input);
  return is_small(request);
}

void run_openai(OpenAiKind kind, const Input& input) {
  Result<OpenAiRequest> request =
      parse_openai_request(kind, input.body, defaults_of(input.flavour));
  if (!request.ok()) return check_error(request.status());
  if (!check_request(request.value(), input) || kind == OpenAiKind::kEmbedding) return;
  PromptTexts prompts;
  if (request.value().echo) prompts.resize(request.value().requests.size(), "prompt");
  OpenAiFormat format(request.value(), std::move(prompts), {.id = "x", .model = "tiny"});
  answer(format, request.value(), input);
}

void run_batch(const Input& input) {
  Result<std::vector<OpenAiRequest>> chats =
      parse_chat_batch(input.body, defaults_of(input.flavour));
  if (!chats.ok()) return check_error(chats.status());
  for (OpenAiRequest& chat : chats.value()) {
    require(!chat.stream && chat.requests.front().sampling.n == 1);
    check_request(chat, input);
  }
}

void run_responses(const Input& input) {
  Result<ResponsesRequest> request =
      parse_responses_request(input.body, defaults_of(input.flavour), store());
  if (!request.ok()) return check_error(request.status());
  if (!check_request(request.value().chat, input)) return;
  const OpenAiRequest chat = request.value().chat;
  ResponsesFormat format(std::move(request).value(), "resp_1", "tiny", 0, store());
  require(json::accept(json_text(format.unfinished("queued"))));
  answer(format, chat, input);
}

void run_messages(const Input& input) {
  Result<OpenAiRequest> request = parse_messages_request(input.body, defaults_of(input.flavour));
  if (!request.ok()) return check_error(request.status());
  if (!check_request(request.value(), input)) return;
  MessagesFormat format(request.value(), "msg_1", "tiny");
  answer(format, request.value(), input);
}

void run_handler(const BodyHandler& handle, const Input& input) {
  const auto exchange = std::make_shared<KeptExchange>();
  const Status status = handle(context(), exchange, input.body);
  if (!status.ok()) check_error(status);
  require(exchange->num_answers == (status.ok() ? 1 : 0));
}

void run(uint8_t endpoint, const Input& input) {
  switch (endpoint % 10) {
    case 0:
      return run_openai(OpenAiKind::kChat, input);
    case 1:
      return run_openai(OpenAiKind::kCompletion, input);
    case 2:
      return run_openai(OpenAiKind::kEmbedding, input);
    case 3:
      return run_responses(input);
    case 4:
      return run_messages(input);
    case 5:
      return run_handler(handle_count_tokens, input);
    case 6:
      return run_handler(handle_tokenize, input);
    case 7:
      return run_handler(handle_detokenize, input);
    case 8:
      return run_handler(handle_abort, input);
    default:
      return run_batch(input);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  Result<json> body = parse_request_body(bytes.substr(0, end));
  if (!body.ok()) {
    check_error(body.status());
    return 0;
  }
  Input input{data[1], std::move(body).value(), ""};
  // A model's text is made of whole characters.
  const std::string_view text = bytes.substr(std::min(end + 1, bytes.size()));
  if (http::is_utf8(text)) input.text = text;
  run(data[0], input);
  return 0;
}
