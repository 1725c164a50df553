#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attention/backend.h"
#include "base/result.h"
#include "kernels/flex/flex_program.h"

namespace foretoken {

// A choice of attention as configurations name it: "portable", or with expressions (parse_flex)
// "flex(MASK; SCORE)", of which either may be empty.
struct AttentionChoice {
  std::string backend;
  std::string mask;
  std::string score;

  bool has_expressions() const { return !mask.empty() || !score.empty(); }
  std::string text() const;
};

AttentionChoice read_attention_choice(std::string_view text);

// Of the query heads that ops with a program have.
struct FlexHeads {
  std::vector<int32_t> sizes;  // for which a device compiles kernels of tensor cores, where it can
  bool are_all = false;        // no op has heads of another size
  bool among_chosen = false;   // as of FlexProgram
};

// The backend `flex` with a program, compiled for a device where that is needed.
class FlexAttention {
 public:
  // What parse_flex says, or what the device lacks to compile with.
  static Result<std::unique_ptr<FlexAttention>> create(const AttentionChoice& choice,
                                                       const Device& device, DType dtype,
                                                       KvFormat format, const FlexHeads& heads);
  // It lives as long as this.
  const AttentionBackend& backend() const { return backend_; }
  // Whether the program asks what requests say, and where that lies for each slot, in memory of the
  // device (FlexProgram::of_requests). Before any op.
  bool asks_requests() const { return program_.asks_masks || program_.asks_scores; }
  void set_requests(const uint32_t* words) { program_.of_requests = words; }

 private:
  explicit FlexAttention(FlexProgram program);

  FlexProgram program_;
  AttentionBackend backend_;
  std::shared_ptr<const void> held_;  // what the device has compiled
};

}  // namespace foretoken
