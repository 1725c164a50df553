#pragma once
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "spec/cost_table.h"

// The file that a cost table is kept in.
namespace foretoken {

std::string cost_table_to_json(const CostTable& times);
// InvalidArgument begins with `what`, the name of the file.
Result<CostTable> parse_cost_table(std::string_view json, const std::string& what);

// `path` names a file that exists. InvalidArgument unless it has a target curve and, in this order,
// the drafters of these names. Errors begin with `what`; empty: the flag that names such files.
Result<CostTable> read_cost_table(const std::string& path, std::span<const std::string> drafters,
                                  std::string what = {});
Status write_cost_table(const CostTable& times, const std::string& path);

}  // namespace foretoken
