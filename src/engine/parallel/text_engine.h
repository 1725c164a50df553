#pragma once
#include <foretoken/engine.h>

#include <memory>
#include <utility>

#include "base/result.h"
#include "engine/engine_texts.h"

namespace foretoken {

// What a front end without engines knows of its model: texts, and what requests ask for by default.
// It reads no weights, runs no requests and has no adapters. Any thread.
class TextEngine final : public Engine {
 public:
  // Of config.model, of which a Hub id is fetched without its weights where these are files apart.
  static Result<std::unique_ptr<Engine>> load(const EngineConfig& config);

  // Unsupported.
  Status submit(Request request, OutputCallback callback, std::string* request_id) override;
  void abort(const std::string&) override {}
  std::vector<RequestOutput> generate(std::vector<Request> requests) override;
  std::future<std::vector<RequestOutput>> generate_async(Request request) override;

  SamplingParams default_sampling_params() const override { return sampling_; }
  Status render_chat(const std::string& messages_json, const std::string& arguments_json,
                     std::string* prompt, std::vector<std::string>* warnings) const override {
    return texts_.render_chat(messages_json, arguments_json, prompt, warnings);
  }
  const ChatTemplateTraits* chat_template(bool with_tools) const override {
    return texts_.chat_template(with_tools);
  }
  Status encode(const std::string& text, bool add_special_tokens,
                std::vector<int32_t>* ids) const override {
    return texts_.encode(text, add_special_tokens, ids);
  }
  Status decode(const std::vector<int32_t>& ids, bool skip_special_tokens,
                std::string* text) const override {
    return texts_.decode(ids, skip_special_tokens, text);
  }
  Status token_bytes(int32_t id, std::string* bytes) const override {
    return texts_.token_bytes(id, bytes);
  }
  EngineStats stats() const override { return {}; }
  const EngineInfo& info() const override { return info_; }

 private:
  TextEngine(EngineTexts texts, SamplingParams sampling)
      : texts_(std::move(texts)), sampling_(std::move(sampling)) {}

  const EngineTexts texts_;
  const SamplingParams sampling_;
  const EngineInfo info_;
};

}  // namespace foretoken
