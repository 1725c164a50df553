#pragma once
#include <vector>

#include "serve/flow/serve_context.h"

namespace foretoken {

// POST /generative_scoring: how likely the first of some tokens comes behind texts.
Status handle_generative_scoring(ServeContext& context,
                                 const std::shared_ptr<http::Exchange>& exchange, const Body& body);
// POST /v1/score: how near texts are, in pairs; with "label_token_ids" how likely each of these
// tokens comes behind texts.
Status handle_score(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                    const Body& body);
// POST /v1/rerank: documents in order of how near they are to a query.
Status handle_rerank(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                     const Body& body);
// POST /pooling: vectors of texts in vLLM's form.
Status handle_pooling(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                      Body body);

// Renders, admits and runs a request for embeddings, answered in the form that `make_format` makes
// of the answer's label; errors before it runs in that of `error_text`.
Status run_pooled(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                  const char* id_prefix, OpenAiRequest request,
                  const std::function<std::unique_ptr<AnswerFormat>(OpenAiLabel)>& make_format,
                  const ErrorText& error_text = openai_error);

// The endpoints of Hugging Face's text-embeddings-inference that have no other form here: /embed,
// /predict, /similarity, /decode, with sentences for those that are not built.
std::vector<http::Route> tei_routes(ServeContext& context);

// Whether a body of POST / is one for these, and its answer: by what the body has and the model
// does, as TEI has it.
bool is_tei_root(const ServeContext& context, const Body& body);
Status handle_tei_root(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       const Body& body);

// POST /tokenize with "inputs": a list of tokens for each text.
Status handle_tei_tokenize(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                           const Body& body);

// POST /classify: the likeliest class of each text in vLLM's form. NotFound for a model without
// classes.
Status handle_classify(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       Body body);

}  // namespace foretoken
