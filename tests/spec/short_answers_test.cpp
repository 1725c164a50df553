#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "spec/list_world.h"
#include "support/time_curve.h"

// Answers of about 64 tokens one after another, where a look-up finds something now and then: parts
// of a text repeat others, and what is found elsewhere is seldom right.

namespace foretoken {
namespace {

using test::curve;

VerifyTimes room_for(int drafts, const TimeCurve& idle, const TimeCurve& full) {
  return {.drafts = drafts, .idle = idle, .full = full};
}

// SmolLM2 135M with weights of four bits on two cores with AVX2, about
// (bench/results/cpu-avx2.md): a draft takes a third of a step, and room for it nothing.
CostTable two_cores() {
  CostTable times;
  times.target = curve({{1, 6600000}, {2, 8800000}, {5, 15200000}, {9, 23500000}, {64, 140000000}});
  const TimeCurve idle = curve({{1, 6600000}});
  times.verify = {room_for(0, idle, idle), room_for(1, idle, curve({{1, 8800000}})),
                  room_for(2, idle, curve({{1, 11000000}})),
                  room_for(4, idle, curve({{1, 15200000}}))};
  times.drafters = {{"ngram", true, {}, curve({{1, 3000}})}};
  return times;
}

// The same model on an H200, about: drafts cost little, and room for them as much.
CostTable small_model_on_hopper() {
  CostTable times;
  times.target = curve({{1, 1000000}, {4, 1020000}, {16, 1100000}, {64, 1400000}, {256, 3000000}});
  const auto both = [](int drafts, const TimeCurve& ns) { return room_for(drafts, ns, ns); };
  times.verify = {both(0, curve({{1, 1000000}, {4, 1020000}, {16, 1100000}})),
                  both(1, curve({{1, 1015000}, {4, 1040000}, {16, 1170000}})),
                  both(2, curve({{1, 1030000}, {4, 1060000}, {16, 1240000}})),
                  both(4, curve({{1, 1050000}, {4, 1110000}, {16, 1380000}}))};
  times.drafters = {{"ngram", true, {}, curve({{1, 25000}, {16, 30000}})}};
  return times;
}

// Chances that a part which repeats another begins at a token, and ends, that a draft is right
// within it, and that something is found outside of it, which is right with 0.1.
struct Text {
  const char* name;
  double begins, ends, is_right, is_found;
};

class Texts {
 public:
  Texts(const Text& text, int count, int len) : finds_(static_cast<size_t>(count)), right_(finds_) {
    std::mt19937 random(11);
    const auto happens = [&](double chance) {
      return std::uniform_real_distribution<double>(0, 1)(random) < chance;
    };
    for (size_t i = 0; i < finds_.size(); ++i) {
      bool repeats = false;
      for (int at = 0; at < len; ++at) {
        repeats = repeats ? !happens(text.ends) : happens(text.begins);
        right_[i].push_back(happens(repeats ? text.is_right : 0.1));
        finds_[i].push_back(repeats || happens(text.is_found));
      }
    }
  }
  bool finds(int sequence, int position) const { return at(finds_, sequence, position); }
  bool is_right(int sequence, int position) const { return at(right_, sequence, position); }

 private:
  static bool at(const std::vector<std::vector<bool>>& all, int sequence, int position) {
    return all.at(static_cast<size_t>(sequence)).at(static_cast<size_t>(position));
  }
  std::vector<std::vector<bool>> finds_, right_;
};

// Of the speed without drafts, with as many as pay and with all.
struct OverOff {
  double adaptive = 0;
  double fixed = 0;
};

OverOff over_off(CostTable times, const Text& text, int batch, size_t num_lookups = 1) {
  constexpr int kDrafts = 4, kPrompt = 16, kOutput = 56, kMore = 4;
  const int requests = 32 * batch;
  const Texts texts(text, requests, kPrompt + kOutput + 4 * kMore + kDrafts);
  ListWorld::Workload work;
  work.batch = batch;
  work.requests = requests;
  work.prompt_len = kPrompt;
  work.output_len = kOutput;
  work.output_step = kMore;
  times.drafters.resize(num_lookups, times.drafters.front());
  work.drafters.resize(num_lookups, {.looks_up = true});
  work.lookups = (1u << num_lookups) - 1;
  work.last = static_cast<int>(num_lookups) - 1;
  work.finds = [&](int sequence, int at) { return texts.finds(sequence, at) ? kDrafts : 0; };
  work.accepts = [&](int sequence, int, int at) { return texts.is_right(sequence, at); };
  const auto ns_with = [&](LengthMode mode) {
    LengthControllerConfig policy{.mode = mode, .steps_in_flight = 2};
    policy.drafters.assign(num_lookups, {.max_draft_tokens = kDrafts, .looks_up = true});
    return static_cast<double>(ListWorld(times, policy, work).run().ns);
  };
  const double off = ns_with(LengthMode::kOff);
  return {off / ns_with(LengthMode::kAdaptive), off / ns_with(LengthMode::kFixed)};
}

constexpr Text kAnswers{"answers", 0.03, 0.08, 0.9, 0.05};
constexpr Text kCode{"code", 0.06, 0.04, 0.95, 0.05};

TEST(ShortAnswers, WhatALookUpBringsIsTaken) {
  for (const Text& text : {kAnswers, kCode}) {
    const double on_cores = over_off(two_cores(), text, 1).adaptive;
    EXPECT_GE(on_cores, 1 + 0.9 * (over_off(two_cores(), text, 1).fixed - 1)) << text.name;
    for (const int batch : {1, 4}) {
      const OverOff speed = over_off(small_model_on_hopper(), text, batch);
      EXPECT_GE(speed.fixed, 1.08) << text.name << ", " << batch;
      EXPECT_GE(speed.adaptive, 1 + 0.8 * (speed.fixed - 1)) << text.name << ", " << batch;
    }
  }
}

// The second look-up of a list finds what the first one does.
TEST(ShortAnswers, AListOfLookUpsBringsAsMuchAsOne) {
  for (const Text& text : {kAnswers, kCode}) {
    for (const int batch : {1, 4}) {
      const OverOff speed = over_off(small_model_on_hopper(), text, batch, 2);
      EXPECT_GE(speed.adaptive, 1 + 0.8 * (speed.fixed - 1)) << text.name << ", " << batch;
    }
    EXPECT_GE(over_off(two_cores(), text, 1, 2).adaptive, 1.05) << text.name;
  }
  EXPECT_GE(over_off(small_model_on_hopper(), {"nothing", 0, 1, 0.5, 0.2}, 1, 2).adaptive, 0.98);
}

TEST(ShortAnswers, TextsThatRepeatLittleLoseLittle) {
  for (const Text& text : {Text{"nothing", 0, 1, 0.5, 0.2}, Text{"rare", 0.005, 0.08, 0.9, 0.05},
                           Text{"mostly wrong", 0.01, 0.2, 0.7, 0.4}}) {
    EXPECT_GE(over_off(two_cores(), text, 1).adaptive, 0.99) << text.name;
    for (const int batch : {1, 4, 16}) {
      EXPECT_GE(over_off(small_model_on_hopper(), text, batch).adaptive, 0.985)
          << text.name << ", " << batch;
    }
  }
}

}  // namespace
}  // namespace foretoken
