#pragma once
#include <memory>

#include "serve/flow/serve_context.h"

namespace foretoken {

// POST /v1/load_lora_adapter: {"lora_name", "lora_path", "load_inplace"} reads a PEFT folder, after
// which its name is a model's. 404 without the folder, 400 for a name that is taken. Served as
// in vLLM only where whoever started the server allows it (ServeConfig::runtime_adapters).
Status handle_load_adapter(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body);

// POST /v1/unload_lora_adapter: {"lora_name"}, likewise; 404 for an unknown name. Requests that run
// with it keep it to their end.
Status handle_unload_adapter(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                             const Body& body);

// POST /adapters: {"name", "src"} and DELETE /adapters/NAME are the same as SageMaker calls them.
Status handle_load_sagemaker(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                             const Body& body);
void answer_unload_sagemaker(ServeContext& context, http::Exchange& exchange);

// POST /lora-adapters: llama.cpp's list of {"id", "scale"}, which sets the adapter of requests that
// name no model. Answers at once.
void answer_choose_adapters(ServeContext& context, http::Exchange& exchange);

}  // namespace foretoken
