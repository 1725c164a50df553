#include "engine_handle.h"

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>

#include "base/files/json_object.h"
#include "config/sampling_fields.h"
#include "config_fields.h"
#include "engine/request/chat_arguments.h"
#include "engine/start/locate_model.h"
#include "python_processor.h"
#include "serve/answer/chat_messages.h"
#include "status_error.h"
#include "text/chat_prompt.h"
#include "text/chat_template.h"
#include "text/tokenizer_config.h"

namespace foretoken::python {
namespace {

namespace nb = nanobind;

struct Loaded {
  std::unique_ptr<Engine> engine;
  std::string folder;
};

Result<Loaded> load(const EngineConfig& config) {
  Loaded loaded;
  FT_ASSIGN_OR_RETURN(const EngineConfig located, locate_model(config));
  FT_RETURN_IF_ERROR(make_engine(located, &loaded.engine));
  loaded.folder = located.model;
  return loaded;
}

// Waits on this thread, which sees signals, for the thread that loads.
Result<Loaded> load_interruptibly(EngineConfig config) {
  std::atomic<bool> cancel = false;
  config.cancel_load = &cancel;
  std::future<Result<Loaded>> future = std::async(std::launch::async, load, std::cref(config));
  for (;;) {
    {
      const nb::gil_scoped_release no_gil;
      if (future.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready) break;
    }
    if (PyErr_CheckSignals() == 0) continue;
    nb::python_error interrupt;
    {
      const nb::gil_scoped_release no_gil;
      cancel = true;
      (void)future.get();
    }
    throw interrupt;
  }
  return future.get();
}

template <class Call>
auto without_gil(const Call& call) {
  const nb::gil_scoped_release no_gil;
  return call();
}

Status render_with(const ChatTemplate& chat, const std::string& messages_json,
                   const std::string& arguments_json, std::string* prompt) {
  FT_ASSIGN_OR_RETURN(const ChatArguments arguments, parse_chat_arguments(arguments_json));
  const ChatTemplate::Options options{.add_generation_prompt = arguments.add_generation_prompt,
                                      .continue_final_message = arguments.continue_final_message};
  FT_ASSIGN_OR_RETURN(ChatPrompt made,
                      make_chat_prompt(chat, messages_json, arguments.variables, options));
  *prompt = std::move(made.text);
  return {};
}

Result<std::string> normalised(const std::string& messages_json) {
  FT_ASSIGN_OR_RETURN(const nlohmann::ordered_json given,
                      parse_ordered_json(messages_json, "messages"));
  FT_ASSIGN_OR_RETURN(const nlohmann::ordered_json messages, normalise_messages(given));
  return messages.dump();
}

}  // namespace

std::unique_ptr<EngineHandle> EngineHandle::make(const std::string& config_json) {
  Result<EngineConfig> config = read_config(config_json);
  raise_if_error(config.status());
  Result<Loaded> loaded = load_interruptibly(std::move(config).value());
  raise_if_error(loaded.status());
  return std::unique_ptr<EngineHandle>(
      new EngineHandle(std::move(loaded.value().engine), std::move(loaded.value().folder)));
}

EngineHandle::EngineHandle(std::unique_ptr<Engine> engine, std::string model_folder)
    : engine_(std::move(engine)), model_folder_(std::move(model_folder)), pid_(getpid()) {}

EngineHandle::~EngineHandle() { close(); }

void EngineHandle::close() {
  if (engine_ == nullptr) return;
  if (getpid() != pid_) {
    // Its threads are in the parent: nobody could be joined here.
    static auto* const abandoned = new std::vector<std::shared_ptr<Engine>>();
    abandoned->push_back(std::move(engine_));
    return;
  }
  std::shared_ptr<Engine> engine = std::move(engine_);
  engine_ = nullptr;
  {
    const nb::gil_scoped_release no_gil;
    engine.reset();
  }
  release_dropped_callables();
}

std::shared_ptr<Engine> EngineHandle::engine() const {
  if (engine_ == nullptr) throw std::runtime_error("the engine was shut down; make a new one");
  if (getpid() != pid_) {
    throw std::runtime_error(
        "the engine belongs to process " + std::to_string(pid_) +
        " and does not work after fork(); make it in the child, or start that with the 'spawn' "
        "method of multiprocessing");
  }
  return engine_;
}

std::string EngineHandle::submit(const std::shared_ptr<OutputInbox>& inbox, uint64_t key,
                                 bool final_only, Request request) {
  const std::shared_ptr<Engine> running = engine();
  std::string id;
  const Status status = without_gil(
      [&] { return running->submit(std::move(request), inbox->open(key, final_only), &id); });
  raise_if_error(status);
  return id;
}

void EngineHandle::abort(const std::string& request_id) {
  const std::shared_ptr<Engine> running = engine();
  without_gil([&] { running->abort(request_id); });
}

int64_t EngineHandle::sleep(int level, bool ends_requests) {
  const std::shared_ptr<Engine> running = engine();
  int64_t bytes = 0;
  raise_if_error(without_gil([&] { return running->sleep(level, ends_requests, &bytes); }));
  return bytes;
}

void EngineHandle::wake_up(const std::vector<std::string>& tags) {
  const std::shared_ptr<Engine> running = engine();
  raise_if_error(without_gil([&] { return running->wake_up(tags); }));
}

bool EngineHandle::is_sleeping() const { return engine()->is_sleeping(); }

void EngineHandle::load_adapter(const std::string& name, const std::string& path,
                                const std::string& base_model_name, bool replace) {
  const std::shared_ptr<Engine> engine = this->engine();
  raise_if_error(
      without_gil([&] { return engine->load_adapter({name, path, base_model_name}, replace); }));
}

std::vector<int32_t> EngineHandle::encode(const std::string& text, bool add_special_tokens) const {
  const std::shared_ptr<Engine> running = engine();
  std::vector<int32_t> ids;
  raise_if_error(without_gil([&] { return running->encode(text, add_special_tokens, &ids); }));
  return ids;
}

std::string EngineHandle::decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const {
  const std::shared_ptr<Engine> running = engine();
  std::string text;
  raise_if_error(without_gil([&] { return running->decode(ids, skip_special_tokens, &text); }));
  return text;
}

std::string EngineHandle::render_chat(const std::string& messages_json,
                                      const std::string& arguments_json,
                                      const std::string& chat_template) const {
  const std::shared_ptr<Engine> running = engine();
  std::string prompt;
  raise_if_error(without_gil([&]() -> Status {
    FT_ASSIGN_OR_RETURN(const std::string messages, normalised(messages_json));
    if (chat_template.empty()) return running->render_chat(messages, arguments_json, &prompt);
    FT_ASSIGN_OR_RETURN(const ChatTemplate chat, ChatTemplate::load(model_folder_, chat_template));
    return render_with(chat, messages, arguments_json, &prompt);
  }));
  return prompt;
}

std::map<std::string, std::string> EngineHandle::special_tokens() const {
  Result<TokenizerConfig> config = load_tokenizer_config(model_folder_);
  raise_if_error(config.status());
  return std::move(config).value().special_tokens;
}

std::string EngineHandle::default_sampling_params() const {
  const SamplingParams sampling = engine()->default_sampling_params();
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const SamplingField& field : sampling_fields()) {
    if (field.model_name != nullptr) json[field.name] = sampling_value(field, sampling);
  }
  return json.dump();
}

EngineStats EngineHandle::stats() const { return engine()->stats(); }

EngineInfo EngineHandle::info() const { return engine()->info(); }

}  // namespace foretoken::python
