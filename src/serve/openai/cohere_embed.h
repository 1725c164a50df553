#pragma once
#include <optional>
#include <string>
#include <vector>

#include "serve/openai/openai_request.h"
#include "serve/openai/score_format.h"

namespace foretoken {

// A body of Cohere's /v2/embed.
struct CohereEmbedRequest {
  OpenAiRequest embeddings;        // of `texts`
  std::vector<std::string> texts;  // as they came
  std::vector<std::string> types;  // "embedding_types", each once
  // Longer texts are embedded by their beginning; 0: as much as the model takes. Unset: they are
  // errors, or cut at their beginning.
  std::optional<int> max_tokens;
};

// "texts", or "inputs" of texts alone; "truncate" is END where it is not said.
Result<CohereEmbedRequest> parse_cohere_embed(const nlohmann::ordered_json& body,
                                              const OpenAiDefaults& defaults);

// Cuts what is too long at its end. Needs the model's tokenizer.
Status shorten_texts(const Engine& engine, CohereEmbedRequest* request);

// {"id", "embeddings": {"float", "base64", "binary", "ubinary"}, "texts", "meta", "response_type"}.
class CohereEmbedFormat final : public PooledFormat {
 public:
  CohereEmbedFormat(CohereEmbedRequest request, OpenAiLabel label)
      : PooledFormat(std::move(label)), request_(std::move(request)) {}
  std::string whole(const std::vector<const OutputSum*>& sums) override;

 private:
  const CohereEmbedRequest request_;
};

}  // namespace foretoken
