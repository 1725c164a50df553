#include "engine/parallel/text_engine.h"

#include <filesystem>

#include "engine/request/generate_call.h"
#include "engine/request/parameters/generation_config.h"
#include "engine/start/locate_model.h"
#include "gguf/model_texts.h"

namespace foretoken {
namespace {

Status no_engine() {
  return unsupported("this process has texts alone; its engines are elsewhere");
}

// A GGUF file has its texts beside the weights.
Result<EngineConfig> locate_texts(const EngineConfig& config) {
  if (config.load_format != "auto" || std::filesystem::exists(config.model)) {
    return locate_model(config);
  }
  EngineConfig texts = config;
  texts.load_format = "dummy";
  Result<EngineConfig> located = locate_model(texts);
  if (!located.ok() || !has_model_text(ModelFiles(located.value().model), "tokenizer.json")) {
    return locate_model(config);
  }
  located.value().load_format = config.load_format;
  return located;
}

}  // namespace

Result<std::unique_ptr<Engine>> TextEngine::load(const EngineConfig& config) {
  FT_ASSIGN_OR_RETURN(const EngineConfig located, locate_texts(config));
  const ModelFiles target(located.model);
  FT_ASSIGN_OR_RETURN(EngineTexts texts, EngineTexts::load(located, target));
  FT_ASSIGN_OR_RETURN(const GenerationConfig generation, load_generation_config(located, target));
  return std::unique_ptr<Engine>(new TextEngine(std::move(texts), generation.sampling));
}

Status TextEngine::submit(Request, OutputCallback, std::string*) { return no_engine(); }

std::vector<RequestOutput> TextEngine::generate(std::vector<Request> requests) {
  GenerateCall call(requests);
  for (size_t i = 0; i < requests.size(); ++i) call.fail(i, no_engine());
  return call.take();
}

std::future<std::vector<RequestOutput>> TextEngine::generate_async(Request request) {
  return future_outputs(*this, std::move(request));
}

}  // namespace foretoken
