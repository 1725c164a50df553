#include "kernels/flex/flex_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/flex/flex_parser.h"
#include "kernels/flex/flex_source.h"
#include "kernels/flex/flex_tile_kernel.h"
#include "kernels/flex/flex_value.h"

namespace foretoken {
namespace {

Result<FlexExpression> parse(const char* flag, std::string_view text, FlexType type,
                             bool of_request = false) {
  if (text.find_first_not_of(" \t\n") == std::string_view::npos) return FlexExpression{};
  Result<FlexExpression> read = FlexParser(text, type == FlexType::kFloat, of_request).run(type);
  if (!read.ok()) return invalid_argument(flag + std::string(": ") + read.status().message());
  return read;
}

bool asks(const FlexExpression& expression, FlexOp op) {
  return std::any_of(expression.steps.begin(), expression.steps.end(),
                     [op](const FlexStep& step) { return step.op == op; });
}

// Rows read and write the cache in order, so that later positions are not there yet but for those
// of a prompt that is computed at once. Positions up to a bound are tried, which finds every mask
// that was written without thinking of it, whatever requests say.
Status check_causal(const FlexExpression& mask, bool request_says) {
  if (mask.steps.empty()) return {};
  FlexRoom room;
  const FlexStep said{FlexOp::kConstant, FlexType::kBool, {-1, -1, -1}, request_says ? 1 : 0};
  constexpr int32_t kRows = 64;
  for (int32_t query = 0; query < kRows; ++query) {
    for (const int32_t first : {0, 32, 64}) {
      const FlexValues& seen =
          evaluate(mask, {query, first, 0, 0, 1, {{&said, 1}, {}}}, nullptr, room);
      for (int32_t i = 0; i < kFlexLanes; ++i) {
        if (first + i <= query || seen.integers[i] == 0) continue;
        return invalid_argument("--flex-mask: position " + std::to_string(query) +
                                " would see position " + std::to_string(first + i) +
                                ", which comes later and is not computed yet; begin with "
                                "'kv <= q and', or with '(kv <= q or prompt) and' where a prompt "
                                "sees itself");
      }
    }
  }
  return {};
}

}  // namespace

Result<FlexProgram> parse_flex(std::string_view mask, std::string_view score, bool among_chosen) {
  FlexProgram program;
  program.among_chosen = among_chosen;
  FT_ASSIGN_OR_RETURN(program.mask, parse("--flex-mask", mask, FlexType::kBool));
  FT_ASSIGN_OR_RETURN(program.score, parse("--flex-score", score, FlexType::kFloat));
  for (const bool request_says : {true, false}) {
    FT_RETURN_IF_ERROR(check_causal(program.mask, request_says));
  }
  program.sees_prompts = asks(program.mask, FlexOp::kPrompt);
  program.asks_masks = asks(program.mask, FlexOp::kRequest);
  program.asks_scores = asks(program.score, FlexOp::kRequest);
  for (const FlexElements elements :
       {FlexElements::kF32, FlexElements::kBF16, FlexElements::kF32Codes, FlexElements::kBF16Codes,
        FlexElements::kF32Integers, FlexElements::kBF16Integers}) {
    program.sources.push_back(flex_source(program, elements));
  }
  return program;
}

Result<std::vector<uint32_t>> pack_flex(std::string_view mask, std::string_view score) {
  FT_ASSIGN_OR_RETURN(const FlexExpression seen, parse("flex_mask", mask, FlexType::kBool, true));
  FT_ASSIGN_OR_RETURN(const FlexExpression changed,
                      parse("flex_score", score, FlexType::kFloat, true));
  if (seen.steps.empty() && changed.steps.empty()) return std::vector<uint32_t>{};
  std::vector<uint32_t> words = {static_cast<uint32_t>(seen.steps.size()),
                                 static_cast<uint32_t>(changed.steps.size())};
  for (const FlexExpression* expression : {&seen, &changed}) {
    for (const FlexStep& step : expression->steps) {
      uint32_t packed[kFlexStepWords] = {};
      std::memcpy(packed, &step, sizeof(step));
      words.insert(words.end(), packed, packed + kFlexStepWords);
    }
  }
  return words;
}

FlexOfRequest flex_of_words(const uint32_t* words) {
  const auto* steps = reinterpret_cast<const FlexStep*>(words + 2);
  return {{steps, words[0]}, {steps + words[0], words[1]}};
}

void add_tile_sources(FlexProgram& program, std::span<const int32_t> head_dims, bool are_all) {
  program.has_other_heads = !are_all || head_dims.empty() ||
                            std::any_of(head_dims.begin(), head_dims.end(), [](int32_t head_dim) {
                              return !flex_tile_takes(head_dim);
                            });
  for (const int32_t head_dim : head_dims) {
    if (!flex_tile_takes(head_dim) || program.tile_of(head_dim) != nullptr) continue;
    program.tiles.push_back({head_dim, flex_tile_source(program, false, head_dim),
                             flex_tile_source(program, true, head_dim)});
  }
}

}  // namespace foretoken
