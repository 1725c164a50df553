#include "spec/policy_tables.h"

#include "spec/touched_experts.h"
#include "support/time_curve.h"

namespace foretoken {

using test::curve;

CostTable cpu_times() {
  CostTable times;
  times.target = curve({{1, 30000000},
                        {2, 31000000},
                        {4, 34000000},
                        {8, 42000000},
                        {16, 62000000},
                        {32, 105000000},
                        {64, 200000000},
                        {512, 1560000000}});
  times.drafters = {
      {.name = "eagle3",
       .catch_up = curve({{1, 2500000}, {16, 5500000}, {64, 16000000}, {512, 100000000}}),
       .pass = curve({{1, 2500000}, {16, 5500000}, {64, 16000000}})}};
  return times;
}

CostTable gpu_times() {
  CostTable times;
  times.target = curve({{1, 6000000},
                        {8, 6100000},
                        {32, 6400000},
                        {64, 7000000},
                        {128, 9000000},
                        {256, 14000000},
                        {512, 26000000},
                        {2048, 100000000}});
  times.drafters = {{.name = "eagle3",
                     .catch_up = curve({{1, 400000}, {64, 450000}, {256, 800000}, {2048, 5000000}}),
                     .pass = curve({{1, 350000}, {64, 380000}, {256, 500000}})}};
  return times;
}

CostTable tiled_times() {
  CostTable times = gpu_times();
  times.target = curve({{1, 4500000}, {64, 5300000}, {128, 6700000}, {256, 9100000}});
  times.verify = {{.drafts = 0,
                   .idle = curve({{1, 4500000}, {16, 4800000}, {64, 5600000}, {256, 10800000}}),
                   .full = curve({{1, 4500000}, {16, 4800000}, {64, 5600000}, {256, 10800000}})},
                  {.drafts = 1,
                   .idle = curve({{1, 4500000}, {16, 4900000}, {64, 7200000}, {256, 16000000}}),
                   .full = curve({{1, 4500000}, {16, 4900000}, {64, 7400000}, {256, 16800000}})},
                  {.drafts = 2,
                   .idle = curve({{1, 4600000}, {16, 5300000}, {64, 8600000}, {256, 21000000}}),
                   .full = curve({{1, 4600000}, {16, 5300000}, {64, 8900000}, {256, 22400000}})},
                  {.drafts = 3,
                   .idle = curve({{1, 4600000}, {16, 5300000}, {64, 8800000}, {256, 26000000}}),
                   .full = curve({{1, 4600000}, {16, 5300000}, {64, 9100000}, {256, 27600000}})}};
  return times;
}

CostTable mixture_times() {
  const auto touched_ns = [](int rows, double all_ns) {
    return static_cast<int64_t>(all_ns * touched_share(64, 6, rows));
  };
  CostTable times;
  DrafterTimes module;
  module.name = "mtp";
  for (int rows = 1; rows <= 2048; rows *= 2) {
    times.target.add(rows, 530'000 + touched_ns(rows, 6'850'000) + 2'000 * rows);
    const int64_t pass = 100'000 + touched_ns(rows, 260'000) + 200 * rows;
    module.catch_up.add(rows, pass);
    if (rows <= 256) module.pass.add(rows, pass);
  }
  times.drafters = {module};
  return times;
}

LengthControllerConfig policy_config(LengthMode mode, int num_draft_tokens) {
  return {.mode = mode,
          .steps_in_flight = 2,
          .drafters = {
              {.max_draft_tokens = num_draft_tokens, .has_kv = true, .max_catch_up_rows = 2048}}};
}

}  // namespace foretoken
