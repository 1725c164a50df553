#pragma once
#include "serve/flow/serve_context.h"

namespace foretoken {

// POST /tokenize: {"prompt"} or {"messages", ...} to {"count", "max_model_len", "tokens",
// "token_strs"}, as vLLM has it, or {"content", "add_special", "with_pieces"} to {"tokens"}, as
// llama.cpp has it; a piece that is a part of a character is a list of its bytes.
Status handle_tokenize(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       const Body& body);
// POST /detokenize: {"tokens"} to {"prompt", "content"}, for clients of both.
Status handle_detokenize(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                         const Body& body);
// GET /tokenizer_info: the model's tokenizer_config.json, or what stands in for it (GGUF), with
// special tokens as texts and the template that chats are made with.
Status answer_tokenizer_info(const ServeContext& context, http::Exchange& exchange);

}  // namespace foretoken
