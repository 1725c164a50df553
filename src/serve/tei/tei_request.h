#pragma once
#include <string>
#include <vector>

#include "serve/openai/openai_request.h"
#include "serve/openai/score_format.h"

namespace foretoken {

// Bodies of Hugging Face's text-embeddings-inference, and of clients of Hugging Face's Inference
// API, whose other fields stand in "parameters". Texts that are too long are cut at their end
// unless "truncate" is false.

// A body of /embed: "inputs" is a text, a list of token ids, or a list of these.
Result<OpenAiRequest> parse_tei_embed(const nlohmann::ordered_json& body,
                                      const OpenAiDefaults& defaults);

// A body of /similarity: {"inputs": {"source_sentence", "sentences"}}. The requests are those of
// the source and of the sentences.
Result<OpenAiRequest> parse_tei_similarity(const nlohmann::ordered_json& body,
                                           const OpenAiDefaults& defaults);

// A body of /predict.
struct TeiPredict {
  OpenAiRequest texts;          // a request for each text, or two for a pair
  std::vector<bool> are_pairs;  // whether the text and the next one are a pair
  bool is_single = false;       // one text or one pair, not in a list
  bool is_api = false;          // the form of the Inference API: a list of answers in any case
  ClassRule rule = ClassRule::kOfModel;
  int top_k = 0;  // of the classes; 0: all
};

// "inputs" is a text, a pair of texts, or a list of lists of one text or two.
Result<TeiPredict> parse_tei_predict(const nlohmann::ordered_json& body,
                                     const OpenAiDefaults& defaults);

// Whether a body of POST / is one of these: it compares or ranks texts, has several, or the model
// does not write.
bool is_tei_body(const nlohmann::ordered_json& body, bool writes_texts);

}  // namespace foretoken
