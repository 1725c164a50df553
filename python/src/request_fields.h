#pragma once
#include <foretoken/request.h>

#include <string>

#include "base/result.h"

namespace foretoken::python {

// A request without prompt and logits processors from a JSON object: vLLM's sampling fields,
// "structured_outputs", the fields of Request, "pooling" (auto, last, mean or cls) and "normalize".
// Values that no model allows are errors too, all named by field.
Result<Request> read_request(const std::string& json);

}  // namespace foretoken::python
