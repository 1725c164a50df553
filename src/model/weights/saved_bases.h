#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/model_files.h"
#include "model/weights/lora_adapter.h"

namespace foretoken {

// Which of the embeddings and output matrices that PEFT saved whole beside an adapter
// (LoraAdapter::bases) are not the model's own, up to the rounding of their types: those of another
// shape or other values, and where the model's is quantised and so cannot be compared. Behind an
// embedding that an output matrix is tied to stands the same as that. Unsupported, with the remedy,
// for one that the model has not; errors as of Checkpoint::open.
// Reads the adapter at `folder` and those tensors of the model. Any thread.
Result<std::vector<LoraBase>> changed_bases(const std::string& folder, const LoraAdapter& adapter,
                                            const ModelFiles& model);

// Reads what becomes of the model's matrices where an adapter has rows of tokens of its own
// (LoraAdapter::tokens) into its `wholes`, behind read_wholes: those that are there, otherwise the
// model's, but for these rows, with those behind its last where none between is missing. A tied
// output matrix has the embedding's rows unless it has its own.
// InvalidArgument for another shape or an id that the model has not, Unsupported for a matrix that
// it has not. Any thread.
Status read_token_rows(const std::string& folder, const ModelFiles& model, LoraAdapter* adapter);

}  // namespace foretoken
