#pragma once
#include <foretoken/engine.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/openai/openai_request.h"

namespace foretoken {

// The adapters of an engine as requests see them: by name, as vLLM's, and by their place in the
// list, as llama.cpp's. Thread-safe.
class ServedAdapters {
 public:
  explicit ServedAdapters(Engine& engine) : engine_(engine) {}

  std::vector<std::string> names() const;
  // The adapter of requests that name no model: "" or one that is there.
  std::string by_default() const;

  // llama.cpp's list: {"id", "path", "scale"} of each, the scale 1 of the default alone, and
  // "name".
  nlohmann::ordered_json list() const;
  // Sets the default from such a list of {"id", "scale"}; ids that it leaves out have scale 0.
  // Errors as of adapter_of_list.
  Status choose(const nlohmann::ordered_json& list);

 private:
  Engine& engine_;
  mutable std::mutex mutex_;
  std::string default_;
};

// The one adapter that a list of {"id", "scale"} asks for: an index of `names`; "": none.
// InvalidArgument for another form, an unknown id, a scale but 0 or 1, or several adapters at once.
Result<std::string> adapter_of_list(const nlohmann::ordered_json& list,
                                    const std::vector<std::string>& names);

// The adapter that a body asks for: by its "model", by such a list, llama.cpp's "lora" (null: it
// has none), or as the server says for requests that name neither; "": none. NotFound for a model
// that is not served.
Result<std::string> asked_adapter(const std::string& model, const nlohmann::ordered_json* lora,
                                  const OpenAiDefaults& defaults);

}  // namespace foretoken
