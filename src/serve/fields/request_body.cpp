#include "serve/fields/request_body.h"

#include <array>
#include <cstdint>

#include "base/files/json_object.h"

namespace foretoken {
namespace {

constexpr int kMaxDepth = 128;
constexpr int64_t kMaxValues = 4'000'000;
// Members are kept in a list that is searched for each new one.
constexpr int64_t kMaxComparisons = 50'000'000;
constexpr size_t kMaxCopies = size_t{256} << 20;

// Counts what the parser would have to build, without building it.
class SizeScan {
 public:
  Status scan(std::string_view text) {
    for (const char c : text) {
      if (in_string_) {
        if (escaped_) {
          escaped_ = false;
        } else if (c == '\\') {
          escaped_ = true;
        } else if (c == '"') {
          in_string_ = false;
        }
        continue;
      }
      in_string_ = c == '"';
      count(c);
      if (depth_ > kMaxDepth) {
        return invalid_argument("the body: values are nested deeper than " +
                                std::to_string(kMaxDepth) + " levels");
      }
      if (num_values_ > kMaxValues) {
        return invalid_argument("the body holds more than " + std::to_string(kMaxValues) +
                                " values; send less in one request");
      }
      if (num_comparisons_ > kMaxComparisons) {
        return invalid_argument("the body has objects with too many members");
      }
    }
    return {};
  }

 private:
  void count(char c) {
    if (c == '{' || c == '[') {
      ++num_values_;
      if (++depth_ <= kMaxDepth) members_[static_cast<size_t>(depth_)] = 0;
    } else if (c == '}' || c == ']') {
      depth_ = depth_ > 0 ? depth_ - 1 : 0;
    } else if (c == ',') {
      ++num_values_;
    } else if (c == ':') {
      num_comparisons_ += ++members_[static_cast<size_t>(depth_)];
    }
  }

  int depth_ = 0;
  int64_t num_values_ = 0;
  int64_t num_comparisons_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  std::array<int64_t, kMaxDepth + 2> members_{};
};

// The Python client lays the fields of "extra_body" over the body; others send them as they are.
void lay_extra_body(nlohmann::ordered_json* body) {
  const auto found = body->find("extra_body");
  if (found == body->end() || !found->is_object()) return;
  const nlohmann::ordered_json extra = std::move(*found);
  body->erase("extra_body");
  for (const auto& [name, value] : extra.items()) {
    const auto given = body->find(name);
    if (given == body->end() || given->is_null()) (*body)[name] = value;
  }
}

}  // namespace

Result<nlohmann::ordered_json> parse_request_body(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return invalid_argument("the body is empty; send a JSON object");
  }
  FT_RETURN_IF_ERROR(SizeScan().scan(body));
  FT_ASSIGN_OR_RETURN(nlohmann::ordered_json parsed, parse_ordered_json_object(body, "the body"));
  lay_extra_body(&parsed);
  return parsed;
}

Status check_copies(const nlohmann::ordered_json& body, const std::string& list, size_t count) {
  if (count < 2) return {};
  size_t num_bytes = 0;
  for (const auto& [name, value] : body.items()) {
    if (name != list) num_bytes += json_text(value).size();
  }
  if (num_bytes <= kMaxCopies / count) return {};
  return invalid_argument("'" + list + "' has " + std::to_string(count) +
                          " entries, too many beside other fields of " + std::to_string(num_bytes) +
                          " bytes; send them in several requests");
}

std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace foretoken
