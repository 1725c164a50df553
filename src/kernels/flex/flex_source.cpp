#include "kernels/flex/flex_source.h"

#include "kernels/flex/flex_op_text.h"
#include "kernels/flex/flex_tile_kernel.h"

namespace foretoken {
namespace {

// Arithmetic is rounded operation by operation, as flex_value.cpp does it.
constexpr const char* kHead = R"cuda(
struct FlexKernelArgs {
  const int* num_rows; const void* q; void* out; const int* positions; const int* row_slot;
  const int* block_tables; const void* k; const void* v; const float* k_scales;
  const float* v_scales; const float* slopes; const float* sinks; float* workspace;
  float* states; const int* token_positions; const int* page_begins;
  const unsigned int* of_requests;
  int max_blocks, max_rows, num_heads, num_kv_heads, block_size, head_dim, window, chunk, kv_begin,
      first_head, max_splits, num_parts, window_rows, part_heads, context_size, context_rank,
      heads_of_row;
  float scale, softcap;
};
#define NONE __int_as_float(0xff800000)
#define MOST __int_as_float(0x7f7fffff)
__device__ inline int floor_divided(int a, int b) {
  if (b == 0) return 0;
  const long long x = a, y = b, whole = x / y;
  return (int)(x % y != 0 && (x < 0) != (y < 0) ? whole - 1 : whole);
}
__device__ inline int modulo(int a, int b) {
  return b == 0 ? 0 : (int)((long long)a - (long long)floor_divided(a, b) * b);
}
__device__ inline float modulo(float a, float b) {
  return __fsub_rn(a, __fmul_rn(floorf(__fdiv_rn(a, b)), b));
}
__device__ inline float of_bf16(unsigned short x) { return __int_as_float((int)x << 16); }
__device__ inline unsigned short to_bf16(float x) {
  unsigned int bits = __float_as_int(x);
  if (x != x) return 0x7fff;
  return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
__device__ inline float of_code(unsigned char x) {
  if ((x & 127) == 127) return __int_as_float(0x7fc00000);
  const int e = x >> 3 & 15, m = x & 7;
  const float size = e == 0 ? m * 0.001953125f : __int_as_float((e + 120) << 23 | m << 20);
  return x & 128 ? -size : size;
}
// What expressions are asked about: the position of a row, a position that it sees, and a head of the
// model. Of rows of heads (RowsOfHeads) they differ from the row's own.
#if AMONG_CHOSEN
__device__ inline int asked_query(const FlexKernelArgs& a, int row, int position) {
  return a.page_begins ? a.token_positions[row / a.heads_of_row] : position;
}
__device__ inline int asked_key(const FlexKernelArgs& a, int slot, int kv) {
  if (!a.page_begins) return kv;
  const int page = a.block_size * a.context_size;
  return a.page_begins[(long long)slot * a.max_blocks + kv / page] + kv % page;
}
__device__ inline int asked_head(const FlexKernelArgs& a, int row, int head) {
  return head + a.first_head + (a.page_begins ? row % a.heads_of_row * a.num_heads : 0);
}
__device__ inline int head_of_scales(const FlexKernelArgs& a, int row, int kv_head) {
  return a.page_begins ? row % a.heads_of_row : kv_head;
}
#else
__device__ inline int asked_query(const FlexKernelArgs&, int, int position) { return position; }
__device__ inline int asked_key(const FlexKernelArgs&, int, int kv) { return kv; }
__device__ inline int asked_head(const FlexKernelArgs& a, int, int head) {
  return head + a.first_head;
}
__device__ inline int head_of_scales(const FlexKernelArgs&, int, int kv_head) { return kv_head; }
#endif
// What a slot's request says itself.
__device__ inline const unsigned int* words_of(const FlexKernelArgs& a, int slot) {
  return a.of_requests && !a.page_begins ? a.of_requests + (long long)slot * REQUEST_WORDS : 0;
}
// As prompt_end of cpu/flex_scores.h.
__device__ inline int end_of_prompt(const FlexKernelArgs& a, int row) {
  const int position = a.positions[row], slot = a.row_slot[row], first = row - position;
  if (AMONG_CHOSEN && a.page_begins) return 0;
  if (first < 0 || a.row_slot[first] != slot || a.positions[first] != 0) return 0;
  int low = row, high = min(*a.num_rows, a.max_rows);
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    const bool same = a.row_slot[middle] == slot && a.positions[middle] == position + middle - row;
    (same ? low : high) = middle;
  }
  return position + low - row + 1;
}
)cuda";

// A block takes a row and query head; warp w the units of 32 entries that leave w when divided by
// the number of warps. They are merged in the order of warps, so that bits depend on the row alone.
// Entries are positions, or where ranks share these every context_size-th.
constexpr const char* kKernel = R"cuda(
struct Part { float highest, weights, values[VALUES]; };
__device__ inline long long entry_at(const FlexKernelArgs& a, int slot, int entry, int kv_head) {
  const int block = a.block_tables[(long long)slot * a.max_blocks + entry / a.block_size];
  return (((long long)block * a.num_kv_heads + kv_head) * a.block_size + entry % a.block_size) *
         (a.head_dim + SCALE_BYTES);
}
// Of an entry that ends with a scale of its codes.
__device__ inline float scale_of(const FlexKernelArgs& a, const void* cache, long long entry) {
  const unsigned char* at = (const unsigned char*)cache + entry + a.head_dim;
  return __uint_as_float(at[0] | at[1] << 8 | at[2] << 16 | (unsigned int)at[3] << 24);
}
__device__ inline int entries_before(const FlexKernelArgs& a, int position) {
  return (position - a.context_rank + a.context_size - 1) / a.context_size;
}
__device__ inline void join(Part& part, float highest, float weights, const float* values,
                            int stride, int lane, int dim) {
  const float top = fmaxf(part.highest, highest);
  if (top == NONE) return;
  const float mine = exp2f(part.highest - top), other = exp2f(highest - top);
  part.highest = top;
  part.weights = __fadd_rn(__fmul_rn(part.weights, mine), __fmul_rn(weights, other));
  for (int i = 0; i < VALUES; ++i) {
    const int d = lane + i * 32;
    if (d < dim) {
      part.values[i] = __fadd_rn(__fmul_rn(part.values[i], mine), __fmul_rn(values[d], other));
    }
  }
}
// As attention_state says.
__device__ inline void leave_state(const FlexKernelArgs& a, const Part& part, int row, int head,
                                   float of_values) {
  const int lane = threadIdx.x % 32, of_part = head % a.part_heads;
  const long long at = ((long long)(head / a.part_heads) * a.max_rows + row) * a.part_heads + of_part;
  float* to = a.states + at * (a.head_dim + 2);
  for (int i = 0; i < VALUES; ++i) {
    const int d = lane + i * 32;
    if (d < a.head_dim) to[d] = __fmul_rn(part.values[i], of_values);
  }
  if (lane > 0) return;
  to[a.head_dim] = __fmul_rn(part.highest, 0.693147180559945309f);
  to[a.head_dim + 1] = part.weights;
}
extern "C" __global__ void __launch_bounds__(128) flex_attention(const FlexKernelArgs a) {
  __shared__ float query[DIMS];
  __shared__ float values[4][DIMS];
  __shared__ float2 states[4];
  const int row = blockIdx.x, head = blockIdx.y, dim = a.head_dim;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= min(*a.num_rows, a.max_rows)) return;
  const long long at = ((long long)row * a.num_heads + head) * dim;
  for (int d = threadIdx.x; d < dim; d += 128) query[d] = QUERY(a.q, at + d);
  __syncthreads();
  const int position = a.positions[row], slot = a.row_slot[row];
  const int kv_head = head / (a.num_heads / a.num_kv_heads);
  const int prompt_end = SEES_PROMPTS ? end_of_prompt(a, row) : 0;
  const int end = entries_before(a, max(position + 1, prompt_end));
  int seen_from = min(a.kv_begin, position);
  if (a.window > 0) seen_from = max(seen_from, position + 1 - a.window);
  if (a.chunk > 0) seen_from = max(seen_from, position - position % a.chunk);
  const int first = entries_before(a, seen_from);
  const int of_scales = head_of_scales(a, row, kv_head);
  const int asked_row = asked_query(a, row, position), asked = asked_head(a, row, head);
  const unsigned int* own = words_of(a, slot);
  const float of_keys = a.k_scales ? a.k_scales[of_scales] : 1.0f;
  const float slope = a.slopes ? a.slopes[head] : 0.0f;
  Part part;
  part.highest = NONE;
  part.weights = 0;
  for (int i = 0; i < VALUES; ++i) part.values[i] = 0;
  for (int begin = (first / 128 * 4 + warp) * 32; begin < end; begin += 128) {
    const int mine = begin + lane;
    const int kv = mine * a.context_size + a.context_rank;
    bool visible = mine >= first && mine < end;
    const int key_position = visible ? asked_key(a, slot, kv) : 0;
    if (visible) visible = flex_mask(asked_row, key_position, asked, kv < prompt_end, own);
    float score = NONE;
    if (visible) {
      const long long key = entry_at(a, slot, mine, kv_head);
      float dot = 0;
      for (int d = 0; d < dim; ++d) dot = fmaf(query[d], ENTRY(a.k, key + d), dot);
      if (SCALE_BYTES) dot = __fmul_rn(dot, scale_of(a, a.k, key));
      score = __fmul_rn(__fmul_rn(dot, a.scale), of_keys);
      if (a.softcap > 0) score = __fmul_rn(a.softcap, tanhf(__fdiv_rn(score, a.softcap)));
      if (slope != 0) score = __fadd_rn(score, __fmul_rn(slope, (float)(kv - position)));
      score = flex_score(score, asked_row, key_position, asked, own);
      score = score != score ? NONE : fminf(score, MOST);
      if (score != NONE) score = fmaxf(fminf(__fmul_rn(score, 1.44269504f), MOST), -MOST);
    }
    float top = fmaxf(part.highest, score);
    for (int o = 16; o > 0; o /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
    if (top == NONE) continue;
    const float keep = exp2f(part.highest - top);
    const float weight = score == NONE ? 0.0f : exp2f(score - top);
    float sum = weight;
    for (int o = 16; o > 0; o /= 2) sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, o));
    part.weights = __fadd_rn(__fmul_rn(part.weights, keep), sum);
    part.highest = top;
    for (int i = 0; i < VALUES; ++i) part.values[i] = __fmul_rn(part.values[i], keep);
    for (unsigned int left = __ballot_sync(0xffffffffu, weight > 0); left; left &= left - 1) {
      const int j = __ffs(left) - 1;
      const long long value = entry_at(a, slot, begin + j, kv_head);
      float w = __shfl_sync(0xffffffffu, weight, j);
      if (SCALE_BYTES) w = __fmul_rn(w, scale_of(a, a.v, value));
      for (int i = 0; i < VALUES; ++i) {
        const int d = lane + i * 32;
        if (d < dim) part.values[i] = fmaf(w, ENTRY(a.v, value + d), part.values[i]);
      }
    }
  }
  if (lane == 0) states[warp] = make_float2(part.highest, part.weights);
  for (int i = 0; i < VALUES; ++i) {
    if (lane + i * 32 < dim) values[warp][lane + i * 32] = part.values[i];
  }
  __syncthreads();
  if (warp > 0) return;
  for (int w = 1; w < 4; ++w) {
    join(part, states[w].x, states[w].y, values[w], 1, lane, dim);
  }
  float weights = part.weights;
  if (a.sinks && weights > 0) {
    weights = __fadd_rn(weights, exp2f(__fmul_rn(a.sinks[head], 1.44269504f) - part.highest));
  }
  const float of_values = a.v_scales ? a.v_scales[of_scales] : 1.0f;
  if (a.states) return leave_state(a, part, row, head, of_values);
  for (int i = 0; i < VALUES; ++i) {
    const int d = lane + i * 32;
    if (d >= dim) continue;
    STORE(a.out, at + d, weights > 0 ? __fmul_rn(__fdiv_rn(part.values[i], weights), of_values) : 0.0f);
  }
}
)cuda";

std::string name_of(int step) { return "v" + std::to_string(step); }

std::string value_text(const FlexStep& step) {
  switch (step.op) {
    case FlexOp::kConstant:
      return constant_text(step);
    case FlexOp::kQuery:
      return "q";
    case FlexOp::kKey:
      return "kv";
    case FlexOp::kHead:
      return "h";
    case FlexOp::kPrompt:
      return "prompt";
    case FlexOp::kScore:
      return "score";
    case FlexOp::kRequest:
      return step.type == FlexType::kBool ? "request_mask(own, q, kv, h)"
                                          : "request_score(own, score, q, kv, h)";
    default:
      break;
  }
  const std::string a = name_of(step.operands[0]);
  if (step.operands[1] < 0) return unary_text(step, a);
  const std::string b = name_of(step.operands[1]);
  if (step.op == FlexOp::kWhere) return a + " ? " + b + " : " + name_of(step.operands[2]);
  if (step.type == FlexType::kBool) return a + " " + sign_of(step.op) + " " + b;
  return step.type == FlexType::kInt ? int_text(step.op, a, b) : float_text(step.op, a, b);
}

// The body of a function that returns the expression, or `otherwise` where there is none.
std::string body_of(const FlexExpression& expression, const char* otherwise) {
  std::string text = " {\n";
  int number = 0;
  for (const FlexStep& step : expression.steps) {
    const char* type = step.type == FlexType::kFloat ? "float" : "int";
    text +=
        std::string("  const ") + type + " " + name_of(number++) + " = " + value_text(step) + ";\n";
  }
  return text + "  return " + (number > 0 ? name_of(number - 1) : otherwise) + ";\n}\n";
}

constexpr const char* elements_text(FlexElements elements) {
  switch (elements) {
    case FlexElements::kF32:
      return "#define ENTRY(p, i) (((const float*)(p))[i])\n#define SCALE_BYTES 0\n";
    case FlexElements::kBF16:
      return "#define ENTRY(p, i) of_bf16(((const unsigned short*)(p))[i])\n"
             "#define SCALE_BYTES 0\n";
    case FlexElements::kF32Integers:
    case FlexElements::kBF16Integers:
      return "#define ENTRY(p, i) ((float)((const signed char*)(p))[i])\n#define SCALE_BYTES 4\n";
    default:
      return "#define ENTRY(p, i) of_code(((const unsigned char*)(p))[i])\n"
             "#define SCALE_BYTES 0\n";
  }
}

constexpr const char* rows_text(FlexElements elements) {
  if (elements == FlexElements::kF32 || elements == FlexElements::kF32Codes ||
      elements == FlexElements::kF32Integers) {
    return "#define QUERY(p, i) (((const float*)(p))[i])\n"
           "#define STORE(p, i, x) ((float*)(p))[i] = (x)\n";
  }
  return "#define QUERY(p, i) of_bf16(((const unsigned short*)(p))[i])\n"
         "#define STORE(p, i, x) ((unsigned short*)(p))[i] = to_bf16(x)\n";
}

// The expression of a request's own, step by step: each op as the text of an expression has it.
std::string request_cases() {
  std::string text;
  const auto add = [&](FlexOp op, const std::string& value) {
    text += "      case " + std::to_string(static_cast<int>(op)) + ": r = " + value + "; break;\n";
  };
  const auto bits = [](const std::string& number) { return "__float_as_uint(" + number + ")"; };
  add(FlexOp::kConstant, "s.type == FLOATS ? __float_as_uint(s.number) : s.integer");
  add(FlexOp::kQuery, "q");
  add(FlexOp::kKey, "kv");
  add(FlexOp::kHead, "h");
  add(FlexOp::kScore, bits("score"));
  add(FlexOp::kToFloat, bits("(float)x"));
  add(FlexOp::kNot, "!x");
  add(FlexOp::kAnd, "x & y");
  add(FlexOp::kOr, "x | y");
  for (const FlexOp op : {FlexOp::kLess, FlexOp::kLessEqual, FlexOp::kEqual, FlexOp::kNotEqual}) {
    const std::string sign = sign_of(op);
    add(op, "floats ? f " + sign + " g : x " + sign + " y");
  }
  for (const FlexOp op : {FlexOp::kAdd, FlexOp::kSubtract, FlexOp::kMultiply, FlexOp::kFloorDivide,
                          FlexOp::kModulo, FlexOp::kMinimum, FlexOp::kMaximum}) {
    add(op, "s.type == FLOATS ? " + bits(float_text(op, "f", "g")) + " : (unsigned int)(" +
                int_text(op, "x", "y") + ")");
  }
  add(FlexOp::kDivide, bits(float_text(FlexOp::kDivide, "f", "g")));
  for (const FlexOp op : {FlexOp::kNegate, FlexOp::kAbsolute}) {
    add(op, "s.type == FLOATS ? " + bits(unary_text({op, FlexType::kFloat}, "f")) +
                " : (unsigned int)(" + unary_text({op, FlexType::kInt}, "x") + ")");
  }
  add(FlexOp::kWhere, "x ? v[s.operands[1]] : v[s.operands[2]]");
  for (const FlexOp op : {FlexOp::kExp, FlexOp::kLog, FlexOp::kTanh, FlexOp::kSqrt, FlexOp::kFloor,
                          FlexOp::kSin, FlexOp::kCos}) {
    add(op, bits(unary_text({op, FlexType::kFloat}, "f")));
  }
  return text;
}

// Functions that run the steps of a slot's words (pack_flex).
std::string requests_text(const FlexProgram& program) {
  const std::string words = "#define REQUEST_WORDS " + std::to_string(kMaxFlexWords) + "\n";
  if (!program.asks_masks && !program.asks_scores) return words;
  return words + "#define FLOATS " + std::to_string(static_cast<int>(FlexType::kFloat)) + R"cuda(
struct FlexStep {
  unsigned char op, type;
  int operands[3];
  int integer;
  float number;
};
__device__ __noinline__ unsigned int run_steps(const FlexStep* steps, unsigned int count, float score,
                                               int q, int kv, int h) {
  unsigned int v[64];
  unsigned int r = 0;
  for (unsigned int i = 0; i < count; ++i) {
    const FlexStep s = steps[i];
    const unsigned int a = s.operands[0] < 0 ? 0 : v[s.operands[0]];
    const unsigned int b = s.operands[1] < 0 ? 0 : v[s.operands[1]];
    const int x = (int)a, y = (int)b;
    const float f = __uint_as_float(a), g = __uint_as_float(b);
    const bool floats = s.operands[0] >= 0 && steps[s.operands[0]].type == FLOATS;
    switch (s.op) {
)cuda" + request_cases() +
         R"cuda(    }
    v[i] = r;
  }
  return r;
}
__device__ inline int request_mask(const unsigned int* own, int q, int kv, int h) {
  if (!own || own[0] == 0) return 1;
  return run_steps((const FlexStep*)(own + 2), own[0], 0.0f, q, kv, h) != 0;
}
__device__ inline float request_score(const unsigned int* own, float score, int q, int kv, int h) {
  if (!own || own[1] == 0) return score;
  return __uint_as_float(run_steps((const FlexStep*)(own + 2) + own[0], own[1], score, q, kv, h));
}
)cuda";
}

// What both kernels begin with: arguments, arithmetic, the mask and the score.
std::string expressions_text(const FlexProgram& program) {
  std::string text = program.sees_prompts ? "#define SEES_PROMPTS 1\n" : "#define SEES_PROMPTS 0\n";
  text += program.among_chosen ? "#define AMONG_CHOSEN 1\n" : "#define AMONG_CHOSEN 0\n";
  const std::string requests = requests_text(program);
  const size_t functions = requests.find('\n') + 1;
  text += requests.substr(0, functions);
  text += kHead;
  text += requests.substr(functions);
  text +=
      "__device__ inline bool flex_mask(int q, int kv, int h, int prompt, const unsigned int* own)";
  text += body_of(program.mask, "true");
  text +=
      "__device__ inline float flex_score(float score, int q, int kv, int h, const unsigned int* "
      "own)";
  text += body_of(program.score, "score");
  return text;
}

}  // namespace

std::string flex_source(const FlexProgram& program, FlexElements elements) {
  return std::string("#define DIMS 576\n#define VALUES 18\n") + elements_text(elements) +
         rows_text(elements) + expressions_text(program) + kKernel;
}

std::string flex_tile_source(const FlexProgram& program, bool codes, int32_t head_dim) {
  return "#define TILE_DIM " + std::to_string(head_dim) + "\n#define CODES " +
         (codes ? "1\n" : "0\n") + expressions_text(program) + kFlexTileSource;
}

}  // namespace foretoken
