#pragma once
#include <foretoken/engine.h>

#include <memory>
#include <utility>

#include "base/result.h"
#include "engine/engine_texts.h"

namespace foretoken {

// What a front end without engines knows of its model: texts, and what requests ask for by default.
// It reads no weights, runs no requests and has no adapters. Any thread.
class TextEngine final : public EngineOverTexts<EngineTexts> {
 public:
  // Of config.model, of which a Hub id is fetched without its weights where these are files apart.
  static Result<std::unique_ptr<Engine>> load(const EngineConfig& config);

  // Unsupported.
  Status submit(Request request, OutputCallback callback, std::string* request_id) override;
  void abort(const std::string&) override {}
  std::vector<RequestOutput> generate(std::vector<Request> requests) override;
  std::future<std::vector<RequestOutput>> generate_async(Request request) override;

  SamplingParams default_sampling_params() const override { return sampling_; }
  EngineStats stats() const override { return {}; }
  const EngineInfo& info() const override { return info_; }

 private:
  const EngineTexts& texts() const override { return texts_; }
  TextEngine(EngineTexts texts, SamplingParams sampling)
      : texts_(std::move(texts)), sampling_(std::move(sampling)) {}

  const EngineTexts texts_;
  const SamplingParams sampling_;
  const EngineInfo info_;
};

}  // namespace foretoken
