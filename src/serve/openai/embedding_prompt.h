#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/fields/json_fields.h"
#include "serve/openai/openai_request.h"

namespace foretoken {

// The model's own prompt of this name, in any case; null: it has none.
const EmbeddingPrompt* find_prompt(const std::vector<EmbeddingPrompt>& prompts,
                                   std::string_view name);

// "the model has no prompt 'x'; it has 'query', 'document'".
std::string no_such_prompt(const std::vector<EmbeddingPrompt>& prompts, const std::string& name);

// The text that goes before those of a body of /v1/embeddings: the model's own prompt that
// "prompt_name" names, or the one of what the texts are for, as "input_type" says (Cohere's,
// Voyage's and NIM's words), or else the model's usual one. A name that the model has not is an
// error of the fields; of a model without prompts both fields have no effect.
std::string read_embedding_prompt(JsonFields& fields, const OpenAiDefaults& defaults);

// A body of /v1/embeddings with what other services call otherwise under the names that are read
// here: "truncate" (NIM's END, START or NONE, Jina's true or false), Voyage's "truncation" and
// "output_dimension", Jina's "normalized", "embedding_type" and texts as {"text"}. What is there
// under both names stays as it is. None: nothing is called otherwise.
std::optional<nlohmann::ordered_json> as_openais_embedding(const nlohmann::ordered_json& body);

// Puts it before the texts of the requests. Token ids hold all that is embedded: they are an error
// of the fields where the body names a prompt.
void put_before_texts(JsonFields& fields, const std::string& prompt,
                      std::vector<Request>* requests);

}  // namespace foretoken
