#include "engine/request/engine_number.h"

#include <string>

namespace foretoken {

Status check_engine_number(const Request& request, int num_engines) {
  const int number = request.data_parallel_rank.value_or(0);
  if (number >= 0 && number < num_engines) return {};
  const std::string last = std::to_string(num_engines - 1);
  return invalid_argument("data_parallel_rank " + std::to_string(number) +
                          " is out of range; a request may name " +
                          (num_engines == 1 ? "engine 0 alone" : "the engines 0 to " + last));
}

}  // namespace foretoken
