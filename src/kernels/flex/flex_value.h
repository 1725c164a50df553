#pragma once
#include <cstdint>

#include "kernels/flex/flex_program.h"

namespace foretoken {

// Keys from one on, for which an expression is evaluated at once.
inline constexpr int kFlexLanes = 32;

// What an expression is asked about.
struct FlexPlace {
  int32_t query;
  int32_t first_key;
  int32_t head;                   // of the model
  int32_t prompt_end = 0;         // of a row of a prompt, the first position behind it; else 0
  int32_t key_step = 1;           // from the position of a key to that of the next one
  FlexOfRequest of_request = {};  // of the row's
};

// The values of a step, by its type. 4 kFlexLanes bytes each.
union FlexValues {
  int32_t integers[kFlexLanes];  // of bools 0 or 1
  float numbers[kFlexLanes];
};

// Room for the steps of an expression.
struct FlexRoom {
  FlexValues steps[kMaxFlexSteps];
  FlexValues of_request[kMaxFlexSteps];
};

// The values of an expression; scores [kFlexLanes] where it knows them, else null. The result lies
// in the room.
const FlexValues& evaluate(const FlexExpression& expression, const FlexPlace& place,
                           const float* scores, FlexRoom& room);

}  // namespace foretoken
