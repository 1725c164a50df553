#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace foretoken {

// A field of a row of combinations (support_rows.yaml, lists of `foretoken matrix`) and where its
// value goes. A list of texts may be written as one text, and is never empty.
struct RowField {
  std::string_view name;
  std::variant<std::string*, int*, bool*, std::vector<std::string>*> to;
  int low = 1;  // of a number; the highest is 1024
};

// Reads an entry of parse_yaml_list into the fields that it names and leaves the others as they
// are. InvalidArgument for what is no mapping, unknown fields and wrong types: the sentence begins
// with `what` ("row", "cell") and names the field.
Status read_row_fields(const nlohmann::ordered_json& entry, const std::string& what,
                       std::span<const RowField> fields);

}  // namespace foretoken
