#pragma once
#include "gguf/model_files.h"

namespace foretoken {

// The longest text that a model's folder of sentence-transformers wants to embed: `max_seq_length`
// of sentence_bert_config.json or its kin; 0 where it says none. Fewer tokens than the model's
// positions allow, as vLLM has it.
int own_max_len(const ModelFiles& model);

}  // namespace foretoken
