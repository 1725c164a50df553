#include "request_fields.h"

#include <limits>

#include "base/log.h"
#include "config/sampling_ranges.h"
#include "serve/fields/json_fields.h"
#include "serve/fields/sampling_fields.h"
#include "serve/fields/schema_notes.h"
#include "serve/fields/structured_fields.h"

namespace foretoken::python {
namespace {

using json = nlohmann::ordered_json;

void read_pooling(JsonFields& fields, Request* request) {
  std::string pooling;
  fields.read("pooling", &pooling);
  fields.read("normalize", &request->normalize);
  if (pooling.empty()) return;
  if (pooling == "last") {
    request->pooling = Pooling::kLast;
  } else if (pooling == "mean") {
    request->pooling = Pooling::kMean;
  } else if (pooling == "cls") {
    request->pooling = Pooling::kCls;
  } else if (pooling == "auto") {
    request->pooling = Pooling::kAuto;
  } else {
    fields.fail("the pooling type '" + pooling + "' is not available; use LAST, MEAN or CLS");
  }
}

// A part of a schema that is not enforced is told in the log.
Status note_left_out(const SamplingParams& sampling) {
  if (!sampling.structured_outputs) return {};
  std::vector<std::string> warnings;
  FT_RETURN_IF_ERROR(note_schemas(*sampling.structured_outputs, "structured outputs", &warnings));
  for (const std::string& warning : warnings) FT_LOG(warn, "{}", warning);
  return {};
}

}  // namespace

Result<Request> read_request(const std::string& text) {
  FT_ASSIGN_OR_RETURN(const json object, parse_ordered_json_object(text, "the request"));
  Request request;
  // As many as fit, unless the field says otherwise: the engine cuts at max_model_len.
  request.sampling.max_tokens = std::numeric_limits<int>::max();
  JsonFields fields(object, "");
  read_sampling_fields(fields, &request.sampling);
  read_logprob_counts(fields, &request.sampling);
  read_structured_outputs(fields, false, &request.sampling.structured_outputs);
  read_request_fields(fields, &request);
  fields.read("request_id", &request.request_id);
  fields.read("adapter", &request.adapter);
  fields.read("data_parallel_rank", &request.data_parallel_rank);
  read_pooling(fields, &request);
  fields.refuse_unread();
  FT_RETURN_IF_ERROR(fields.status());
  FT_RETURN_IF_ERROR(check_sampling_ranges(request.sampling));
  FT_RETURN_IF_ERROR(note_left_out(request.sampling));
  return request;
}

}  // namespace foretoken::python
