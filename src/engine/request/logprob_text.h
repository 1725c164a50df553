#pragma once
#include <foretoken/request.h>

#include "engine/request/logprob_record.h"
#include "text/tokenizer.h"

namespace foretoken {

// What users see of a row, with its `num_top` likeliest tokens at most. Without a tokenizer the
// decoded tokens stay empty.
TokenLogprobs describe_row(const LogprobRow& row, int num_top, const Tokenizer* tokenizer);

}  // namespace foretoken
