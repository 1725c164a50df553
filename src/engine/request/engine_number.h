#pragma once
#include <foretoken/request.h>

#include "base/result.h"

namespace foretoken {

// Whether the engine that the request names (Request::data_parallel_rank), if it does, is one of
// `num_engines`. InvalidArgument says which there are.
Status check_engine_number(const Request& request, int num_engines);

}  // namespace foretoken
