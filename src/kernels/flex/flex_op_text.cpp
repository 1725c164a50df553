#include "kernels/flex/flex_op_text.h"

#include <cstdio>

namespace foretoken {
namespace {

const char* function_of(FlexOp op) {
  switch (op) {
    case FlexOp::kToFloat:
      return "(float)";
    case FlexOp::kNot:
      return "!";
    case FlexOp::kAbsolute:
      return "fabsf";
    case FlexOp::kExp:
      return "expf";
    case FlexOp::kLog:
      return "logf";
    case FlexOp::kTanh:
      return "tanhf";
    case FlexOp::kSqrt:
      return "__fsqrt_rn";
    case FlexOp::kFloor:
      return "floorf";
    case FlexOp::kSin:
      return "sinf";
    case FlexOp::kCos:
      return "cosf";
    default:
      return "-";
  }
}

}  // namespace

// Exactly the number, in a form that C++ reads.
std::string constant_text(const FlexStep& step) {
  if (step.type != FlexType::kFloat) return std::to_string(int64_t{step.integer});
  char text[64];
  std::snprintf(text, sizeof text, "%af", static_cast<double>(step.number));
  return text;
}

const char* sign_of(FlexOp op) {
  switch (op) {
    case FlexOp::kAnd:
      return "&";
    case FlexOp::kOr:
      return "|";
    case FlexOp::kLess:
      return "<";
    case FlexOp::kLessEqual:
      return "<=";
    case FlexOp::kEqual:
      return "==";
    default:
      return "!=";
  }
}

// Unsigned integers wrap around.
std::string int_text(FlexOp op, const std::string& a, const std::string& b) {
  const auto wrapping = [&](const char* sign) {
    return "(int)((unsigned int)" + a + " " + sign + " (unsigned int)" + b + ")";
  };
  switch (op) {
    case FlexOp::kAdd:
      return wrapping("+");
    case FlexOp::kSubtract:
      return wrapping("-");
    case FlexOp::kMultiply:
      return wrapping("*");
    case FlexOp::kFloorDivide:
      return "floor_divided(" + a + ", " + b + ")";
    case FlexOp::kModulo:
      return "modulo(" + a + ", " + b + ")";
    case FlexOp::kMinimum:
      return "min(" + a + ", " + b + ")";
    default:
      return "max(" + a + ", " + b + ")";
  }
}

std::string float_text(FlexOp op, const std::string& a, const std::string& b) {
  const std::string both = "(" + a + ", " + b + ")";
  switch (op) {
    case FlexOp::kAdd:
      return "__fadd_rn" + both;
    case FlexOp::kSubtract:
      return "__fsub_rn" + both;
    case FlexOp::kMultiply:
      return "__fmul_rn" + both;
    case FlexOp::kDivide:
      return "__fdiv_rn" + both;
    case FlexOp::kFloorDivide:
      return "floorf(__fdiv_rn" + both + ")";
    case FlexOp::kModulo:
      return "modulo" + both;
    case FlexOp::kMinimum:
      return a + " < " + b + " ? " + a + " : " + b;
    default:
      return a + " > " + b + " ? " + a + " : " + b;
  }
}

std::string unary_text(const FlexStep& step, const std::string& a) {
  if (step.type == FlexType::kInt) {
    const std::string negated = "(int)(0u - (unsigned int)" + a + ")";
    return step.op == FlexOp::kNegate ? negated : a + " < 0 ? " + negated + " : " + a;
  }
  return std::string(function_of(step.op)) + "(" + a + ")";
}

}  // namespace foretoken
