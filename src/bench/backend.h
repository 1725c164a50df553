#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/samples/sample.h"

namespace foretoken::bench {

enum class Protocol { kCompletions, kChat, kResponses, kEmbeddings };

// A value of --backend.
struct Backend {
  const char* name;
  Protocol protocol;
  const char* endpoint;  // default path, and how another one has to end
};

// In the order of the help.
const std::vector<Backend>& backends();
// Null for an unknown name.
const Backend* find_backend(const std::string& name);
// InvalidArgument when `endpoint` belongs to another protocol.
Status check_endpoint(const Backend& backend, const std::string& endpoint);

// Fields that all requests of a run share.
struct SharedFields {
  std::optional<int> logprobs;
  bool ignore_eos = false;
  // Sampling parameters and --extra-body; these win over the benchmark's own fields.
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();
};

// The JSON body of one request. InvalidArgument when the protocol cannot carry such a prompt.
Result<std::string> request_body(Protocol protocol, const std::string& model, const Sample& sample,
                                 const SharedFields& fields);

}  // namespace foretoken::bench
