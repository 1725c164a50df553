#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

// A mask or a score of a user's own, as a list of typed steps (after "FlexAttention", Dong et al.
// 2024): a step's operands stand before it, and the last step is the result.
enum class FlexType : uint8_t { kBool, kInt, kFloat };

enum class FlexOp : uint8_t {
  kConstant,
  kQuery,  // position of the row
  kKey,    // position of the key
  kHead,   // query head of the whole model
  kScore,
  kPrompt,   // whether row and key are of one prompt
  kRequest,  // what the expression of the request's own says, the mask in a mask
  kToFloat,
  kNot,
  kAnd,
  kOr,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,       // of floats
  kFloorDivide,  // towards minus infinity, as Python's; by an integer zero: 0
  kModulo,       // with the sign of the divisor, as Python's; by an integer zero: 0
  kMinimum,
  kMaximum,
  kNegate,
  kAbsolute,
  kWhere,
  kExp,
  kLog,
  kTanh,
  kSqrt,
  kFloor,
  kSin,
  kCos,
};

struct FlexStep {
  FlexOp op;
  FlexType type;
  int32_t operands[3] = {-1, -1, -1};  // numbers of steps
  int32_t integer = 0;                 // of a constant: a bool or an int
  float number = 0;                    // the same of a float
};

// Steps of an expression, at most.
inline constexpr int kMaxFlexSteps = 64;
inline constexpr int kMaxFlexDepth = 32;
inline constexpr size_t kMaxFlexLength = 1000;

// Steps of the mask and the score of a request, by its slot (SlotLists::flex); of neither where it
// has none: then its mask is true, and its score changes nothing.
struct FlexOfRequest {
  std::span<const FlexStep> mask;
  std::span<const FlexStep> score;
};

struct FlexExpression {
  std::string text;
  std::vector<FlexStep> steps;  // empty: there is none
};

// Of a kernel of tensor cores for heads of a size (flex_tile_kernel.h).
struct FlexTileSource {
  int32_t head_dim;
  std::string plain;
  std::string codes;  // over a cache of KvFormat::kFp8
};

// What decides which positions a row sees of those up to its own, and what becomes of its scores.
// Integers wrap around as those of 32 bits do.
struct FlexProgram {
  FlexExpression mask;
  FlexExpression score;
  // The mask knows `prompt`: rows of a prompt may see later ones of it, so that all of them stand
  // in one step.
  bool sees_prompts = false;
  // The mask or the score asks what requests' own say (kRequest).
  bool asks_masks = false;
  bool asks_scores = false;
  // Those, as pack_flex lays them out, in kMaxFlexWords words for each slot, in memory of the
  // device; null: nobody has any.
  const uint32_t* of_requests = nullptr;
  // Ops may have rows of heads (RowsOfHeads), among what an indexer chose.
  bool among_chosen = false;
  // Of kernels for devices that compile them, by FlexElements (flex_source.h).
  std::vector<std::string> sources = {};
  // The same for queries of bfloat16 whose heads have one of these sizes; add_tile_sources.
  std::vector<FlexTileSource> tiles = {};
  // Whether ops may have heads of other sizes, for which devices compile `sources`, too.
  bool has_other_heads = true;

  const FlexTileSource* tile_of(int32_t head_dim) const {
    for (const FlexTileSource& each : tiles) {
      if (each.head_dim == head_dim) return &each;
    }
    return nullptr;
  }
};

// Reads a mask (a bool of q, kv, h and prompt) and a score (a number of these and score), either of
// which may be empty. Python's operators and precedence, `a if c else b`, and, or, not, & and | of
// bools; abs, min, max, where, exp, log, tanh, sqrt, floor, sin, cos. InvalidArgument says at which
// character of which what is wrong, or which later position a row outside of its prompt would see.
Result<FlexProgram> parse_flex(std::string_view mask, std::string_view score,
                               bool among_chosen = false);

// What a request says itself, for engines whose expressions ask: words for its slot, as
// flex_of_words reads them. Neither `prompt` nor `request` are known there. Both texts empty: none.
// InvalidArgument names flex_mask or flex_score and the place.
Result<std::vector<uint32_t>> pack_flex(std::string_view mask, std::string_view score);
inline constexpr int kFlexStepWords = sizeof(FlexStep) / sizeof(uint32_t);
static_assert(sizeof(FlexStep) == 24);
// Numbers of steps, and the steps of the mask and the score.
inline constexpr int kMaxFlexWords = 2 + 2 * kMaxFlexSteps * kFlexStepWords;
FlexOfRequest flex_of_words(const uint32_t* words);

// Adds what a device compiles for heads of these sizes, once each; sizes that the kernel does not
// take are left to the one of `sources`. are_all: no op has heads of another size.
void add_tile_sources(FlexProgram& program, std::span<const int32_t> head_dims,
                      bool are_all = false);

}  // namespace foretoken
