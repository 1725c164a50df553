#include "kernels/flex/flex_value.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace foretoken {
namespace {

// Integers wrap around.
int32_t wrapped(int64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }

int32_t floor_divided(int32_t a, int32_t b) {
  if (b == 0) return 0;
  const int64_t quotient = int64_t{a} / b;
  const bool is_below = int64_t{a} % b != 0 && (a < 0) != (b < 0);
  return wrapped(is_below ? quotient - 1 : quotient);
}

int32_t modulo(int32_t a, int32_t b) {
  return b == 0 ? 0 : wrapped(int64_t{a} - int64_t{floor_divided(a, b)} * b);
}

template <class Function>
void each(Function&& function) {
  for (int i = 0; i < kFlexLanes; ++i) function(i);
}

struct FlexOperands {
  const FlexValues* a;
  const FlexValues* b;
  const FlexValues* c;
  FlexType type;  // of a
};

void place_value(const FlexStep& step, const FlexPlace& place, const float* scores,
                 FlexValues& to) {
  switch (step.op) {
    case FlexOp::kQuery:
      return each([&](int i) { to.integers[i] = place.query; });
    case FlexOp::kKey:
      return each([&](int i) { to.integers[i] = place.first_key + i * place.key_step; });
    case FlexOp::kHead:
      return each([&](int i) { to.integers[i] = place.head; });
    case FlexOp::kPrompt:
      return each(
          [&](int i) { to.integers[i] = place.first_key + i * place.key_step < place.prompt_end; });
    case FlexOp::kScore:
      return each([&](int i) { to.numbers[i] = scores[i]; });
    default:
      break;
  }
  if (step.type == FlexType::kFloat) return each([&](int i) { to.numbers[i] = step.number; });
  each([&](int i) { to.integers[i] = step.integer; });
}

void bool_value(const FlexStep& step, const FlexOperands& x, FlexValues& to) {
  const int32_t* a = x.a->integers;
  const int32_t* b = x.b->integers;
  const float* v = x.a->numbers;
  const float* w = x.b->numbers;
  const bool floats = x.type == FlexType::kFloat;
  switch (step.op) {
    case FlexOp::kNot:
      return each([&](int i) { to.integers[i] = 1 - a[i]; });
    case FlexOp::kAnd:
      return each([&](int i) { to.integers[i] = a[i] & b[i]; });
    case FlexOp::kOr:
      return each([&](int i) { to.integers[i] = a[i] | b[i]; });
    case FlexOp::kLess:
      return each([&](int i) { to.integers[i] = floats ? v[i] < w[i] : a[i] < b[i]; });
    case FlexOp::kLessEqual:
      return each([&](int i) { to.integers[i] = floats ? v[i] <= w[i] : a[i] <= b[i]; });
    case FlexOp::kEqual:
      return each([&](int i) { to.integers[i] = floats ? v[i] == w[i] : a[i] == b[i]; });
    default:
      return each([&](int i) { to.integers[i] = floats ? v[i] != w[i] : a[i] != b[i]; });
  }
}

void int_value(const FlexStep& step, const FlexOperands& x, FlexValues& to) {
  const int32_t* a = x.a->integers;
  const int32_t* b = x.b->integers;
  switch (step.op) {
    case FlexOp::kAdd:
      return each([&](int i) { to.integers[i] = wrapped(int64_t{a[i]} + b[i]); });
    case FlexOp::kSubtract:
      return each([&](int i) { to.integers[i] = wrapped(int64_t{a[i]} - b[i]); });
    case FlexOp::kMultiply:
      return each([&](int i) { to.integers[i] = wrapped(int64_t{a[i]} * b[i]); });
    case FlexOp::kFloorDivide:
      return each([&](int i) { to.integers[i] = floor_divided(a[i], b[i]); });
    case FlexOp::kModulo:
      return each([&](int i) { to.integers[i] = modulo(a[i], b[i]); });
    case FlexOp::kMinimum:
      return each([&](int i) { to.integers[i] = std::min(a[i], b[i]); });
    case FlexOp::kMaximum:
      return each([&](int i) { to.integers[i] = std::max(a[i], b[i]); });
    case FlexOp::kNegate:
      return each([&](int i) { to.integers[i] = wrapped(-int64_t{a[i]}); });
    default:
      return each([&](int i) { to.integers[i] = wrapped(a[i] < 0 ? -int64_t{a[i]} : a[i]); });
  }
}

void binary_float(const FlexStep& step, const FlexOperands& x, FlexValues& to) {
  const float* a = x.a->numbers;
  const float* b = x.b->numbers;
  switch (step.op) {
    case FlexOp::kAdd:
      return each([&](int i) { to.numbers[i] = a[i] + b[i]; });
    case FlexOp::kSubtract:
      return each([&](int i) { to.numbers[i] = a[i] - b[i]; });
    case FlexOp::kMultiply:
      return each([&](int i) { to.numbers[i] = a[i] * b[i]; });
    case FlexOp::kDivide:
      return each([&](int i) { to.numbers[i] = a[i] / b[i]; });
    case FlexOp::kFloorDivide:
      return each([&](int i) { to.numbers[i] = std::floor(a[i] / b[i]); });
    case FlexOp::kModulo:
      return each([&](int i) {
        const float whole = std::floor(a[i] / b[i]) * b[i];
        to.numbers[i] = a[i] - whole;
      });
    case FlexOp::kMinimum:
      return each([&](int i) { to.numbers[i] = a[i] < b[i] ? a[i] : b[i]; });
    default:
      return each([&](int i) { to.numbers[i] = a[i] > b[i] ? a[i] : b[i]; });
  }
}

void unary_float(const FlexStep& step, const FlexOperands& x, FlexValues& to) {
  const float* a = x.a->numbers;
  switch (step.op) {
    case FlexOp::kToFloat:
      return each([&](int i) { to.numbers[i] = static_cast<float>(x.a->integers[i]); });
    case FlexOp::kNegate:
      return each([&](int i) { to.numbers[i] = -a[i]; });
    case FlexOp::kAbsolute:
      return each([&](int i) { to.numbers[i] = std::fabs(a[i]); });
    case FlexOp::kExp:
      return each([&](int i) { to.numbers[i] = std::exp(a[i]); });
    case FlexOp::kLog:
      return each([&](int i) { to.numbers[i] = std::log(a[i]); });
    case FlexOp::kTanh:
      return each([&](int i) { to.numbers[i] = std::tanh(a[i]); });
    case FlexOp::kSqrt:
      return each([&](int i) { to.numbers[i] = std::sqrt(a[i]); });
    case FlexOp::kFloor:
      return each([&](int i) { to.numbers[i] = std::floor(a[i]); });
    case FlexOp::kSin:
      return each([&](int i) { to.numbers[i] = std::sin(a[i]); });
    default:
      return each([&](int i) { to.numbers[i] = std::cos(a[i]); });
  }
}

// The values of the last of some steps, which lie in `values` [kMaxFlexSteps].
const FlexValues& run_steps(std::span<const FlexStep> steps, const FlexPlace& place,
                            const float* scores, FlexValues* values, FlexValues* of_request);

// What the row's request says; where it says nothing everything is seen, and scores stay.
void request_value(const FlexStep& step, const FlexPlace& place, const float* scores,
                   FlexValues* room, FlexValues& to) {
  const bool is_mask = step.type == FlexType::kBool;
  const std::span<const FlexStep> own = is_mask ? place.of_request.mask : place.of_request.score;
  if (!own.empty()) {
    to = run_steps(own, place, scores, room, nullptr);
  } else if (is_mask) {
    each([&](int i) { to.integers[i] = 1; });
  } else {
    each([&](int i) { to.numbers[i] = scores[i]; });
  }
}

const FlexValues& run_steps(std::span<const FlexStep> steps, const FlexPlace& place,
                            const float* scores, FlexValues* values, FlexValues* of_request) {
  size_t number = 0;
  for (const FlexStep& step : steps) {
    FlexValues& to = values[number++];
    if (step.op == FlexOp::kRequest) {
      FT_CHECK(of_request != nullptr);
      request_value(step, place, scores, of_request, to);
      continue;
    }
    if (step.operands[0] < 0) {
      place_value(step, place, scores, to);
      continue;
    }
    const auto operand = [&](int i) {
      return &values[step.operands[i] < 0 ? step.operands[0] : step.operands[i]];
    };
    const FlexOperands x{operand(0), operand(1), operand(2),
                         steps[static_cast<size_t>(step.operands[0])].type};
    if (step.op == FlexOp::kWhere) {
      each([&](int i) {
        to.integers[i] = x.a->integers[i] != 0 ? x.b->integers[i] : x.c->integers[i];
      });
    } else if (step.type == FlexType::kBool) {
      bool_value(step, x, to);
    } else if (step.type == FlexType::kInt) {
      int_value(step, x, to);
    } else if (step.operands[1] >= 0) {
      binary_float(step, x, to);
    } else {
      unary_float(step, x, to);
    }
  }
  return values[number - 1];
}

}  // namespace

const FlexValues& evaluate(const FlexExpression& expression, const FlexPlace& place,
                           const float* scores, FlexRoom& room) {
  FT_CHECK(!expression.steps.empty());
  return run_steps(expression.steps, place, scores, room.steps, room.of_request);
}

}  // namespace foretoken
