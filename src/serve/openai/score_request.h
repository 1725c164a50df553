#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "serve/fields/json_fields.h"
#include "serve/openai/openai_request.h"

namespace foretoken {

// Whose words a ranking has, which its answer has, too: Jina's and Cohere's; those of Hugging
// Face's text-embeddings-inference (llama.cpp has them, too); of Voyage; of NVIDIA's NIM.
enum class RankingForm : uint8_t { kUsual, kTei, kVoyage, kNim };

// A body of /v1/score or /v1/rerank: texts that are compared in pairs, by their embeddings or by a
// model that judges both at once.
struct ScoreRequest {
  OpenAiRequest embeddings;  // of `first`, then of `second`; or of each pair
  bool judged = false;       // the latter
  int token_size = 0;  // of the vectors of tokens that are compared; 0: those of whole texts are
  std::vector<std::string> first;  // one, which stands against all of `second`, or equally many
  std::vector<std::string> second;
  int top_n = 0;  // of a ranking; 0: all
  // Longer texts of `first` and of `second` are compared by their beginning; 0: none is.
  int max_tokens_per_query = 0;
  int max_tokens_per_doc = 0;
  bool return_documents = true;
  bool raw_scores = false;  // of a model that judges: its own numbers, not between 0 and 1
  RankingForm form = RankingForm::kUsual;
};

// vLLM's "text_1" and "text_2", "data_1" and "data_2", "queries" and "documents" or "items".
Result<ScoreRequest> parse_score_request(const nlohmann::ordered_json& body,
                                         const OpenAiDefaults& defaults);

// By the fields of a body: "texts" or "passages" in the place of "documents", or Voyage's "top_k"
// or "truncation" without "top_n".
RankingForm ranking_form(const nlohmann::ordered_json& body);

// Jina's and Cohere's "query", "documents", "top_n", "return_documents", with Voyage's "top_k" and
// "truncation"; "query", "texts" and "return_text" of text-embeddings-inference; or NIM's "query",
// "passages" and "truncate".
Result<ScoreRequest> parse_rerank_request(const nlohmann::ordered_json& body,
                                          const OpenAiDefaults& defaults);

// Leaves the first `max_tokens_per_query` and `max_tokens_per_doc` tokens of the texts to the
// comparison; the documents of the answer stay whole. Needs the model's tokenizer.
Status shorten_texts(const Engine& engine, ScoreRequest* request);

// For a model that judges texts (EngineInfo::num_labels): a request for each pair takes the place
// of one for each text. Unsupported where the model gives several numbers. Needs its tokenizer.
Status join_pairs(const Engine& engine, ScoreRequest* request);

// Both, and that texts are compared token by token where the model gives vectors of these: what
// stands between reading a body and its requests. Needs the model's tokenizer.
Status prepare_comparison(const Engine& engine, ScoreRequest* request);

// The request that judges a pair of texts takes the place of `second`. Needs the model's tokenizer.
Status join_pair(const Engine& engine, const Request& first, Request* second);

// text-embeddings-inference's "truncate" (true unless it is said) and "truncation_direction"
// ("right" or "left", in any case) as fields of /v1/embeddings.
void read_tei_truncation(JsonFields& fields, nlohmann::ordered_json* body);

// Appends the field's texts: one, or a list of texts, of {"text"}, or of vLLM's and Cohere's
// {"content": [{"type": "text", "text"}]}. An empty text, and a missing field, is an error.
Status read_texts(JsonFields& fields, const char* name, std::vector<std::string>* texts);

// Leaves the first `max_tokens` tokens, unless that is 0, of the text of each request.
Status shorten_texts(const Engine& engine, std::span<Request> requests, int max_tokens);

}  // namespace foretoken
