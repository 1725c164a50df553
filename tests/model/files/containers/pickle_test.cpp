#include "model/files/containers/pickle.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

namespace foretoken {
namespace {

using Kind = PickleValue::Kind;
using namespace std::string_view_literals;  // NOLINT

bool only_known(std::string_view global) {
  return global == "collections.OrderedDict" || global == "a.known";
}

Result<Pickle> read_pickle(std::string_view bytes) {
  return Pickle::read(std::as_bytes(std::span(bytes)), only_known, "x.bin");
}

// pickle.dumps({"a": [1, -2, 300, None, True], "b": 0.5}, protocol=2)
constexpr std::string_view kPlainPickle =
    "\x80\x02}q\x00(X\x01\x00\x00\x00"
    "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM\x2c\x01N\x88"
    "eX\x01\x00\x00\x00"
    "bq\x03G?\xe0\x00\x00\x00\x00\x00\x00u."sv;

TEST(Pickle, PlainValues) {
  const auto pickle = read_pickle(kPlainPickle);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  const Pickle& p = pickle.value();
  EXPECT_EQ(p.num_bytes(), kPlainPickle.size());
  ASSERT_EQ(p.root().kind, Kind::kDict);
  ASSERT_EQ(p.root().items.size(), 4u);
  EXPECT_EQ(p.at(p.root().items[0]).text, "a");
  const PickleValue& list = p.at(p.root().items[1]);
  ASSERT_EQ(list.items.size(), 5u);
  EXPECT_EQ(p.at(list.items[1]).integer, -2);
  EXPECT_EQ(p.at(list.items[2]).integer, 300);
  EXPECT_EQ(p.at(list.items[3]).kind, Kind::kNone);
  EXPECT_EQ(p.at(p.root().items[3]).number, 0.5);
}

TEST(Pickle, CallsAreDescribedAndNotMade) {
  const auto pickle = read_pickle(
      "\x80\x02"
      "ca\nknown\nK\x07\x85R."sv);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  const Pickle& p = pickle.value();
  ASSERT_EQ(p.root().kind, Kind::kCall);
  EXPECT_EQ(p.at(p.root().items[0]).text, "a.known");
  EXPECT_EQ(p.at(p.at(p.root().items[1]).items[0]).integer, 7);
}

TEST(Pickle, RefusesEveryOtherGlobalByName) {
  for (const std::string_view bytes :
       {"cos\nsystem\n."sv, "\x80\x04\x8c\x02os\x8c\x06system\x93."sv,
        "cbuiltins\neval\n(X\x01\x00\x00\x00"
        "1tR."sv}) {
    const auto pickle = read_pickle(bytes);
    ASSERT_FALSE(pickle.ok());
    EXPECT_EQ(pickle.status().code(), StatusCode::kUnsupported);
    const bool named = pickle.status().message().find("'os.system'") != std::string::npos ||
                       pickle.status().message().find("'builtins.eval'") != std::string::npos;
    EXPECT_TRUE(named) << pickle.status().message();
  }
}

// An object of a class that is known, with a state, is a call that nothing makes.
TEST(Pickle, ObjectsAreDescribedAndTheirStatesDropped) {
  const auto pickle = read_pickle(
      "\x80\x02"
      "ca\nknown\n)\x81}X\x01\x00\x00\x00"
      "aK\x07sb."sv);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  const Pickle& p = pickle.value();
  ASSERT_EQ(p.root().kind, Kind::kCall);
  EXPECT_EQ(p.at(p.root().items[0]).text, "a.known");
  EXPECT_FALSE(read_pickle("\x80\x02K\x07}b."sv).ok());
}

TEST(Pickle, BrokenOnesAreErrors) {
  // Too many values at the end, none, no mark, items of a number, unknown memo, opcodes for
  // objects.
  for (const std::string_view bytes :
       {""sv, "."sv, "K\x01K\x02."sv, "t."sv,
        "K\x01(K\x02"
        "e."sv,
        "h\x05."sv,
        "}K\x01"
        "K\x02(s."sv,
        "}(K\x01u."sv, "(."sv, "R."sv, "\x93."sv, "ccollections\nOrderedDict\nN\x81."sv,
        "X\xff\xff\xff\xff"
        "a."sv,
        "\x8d\xff\xff\xff\xff\xff\xff\xff\xff."sv, "I1\n."sv, "cos"sv}) {
    const auto pickle = read_pickle(bytes);
    ASSERT_FALSE(pickle.ok()) << bytes;
    EXPECT_EQ(pickle.status().code(), StatusCode::kInvalidArgument) << pickle.status().message();
    EXPECT_NE(pickle.status().message().find("fetch it again"), std::string::npos);
  }
  for (size_t cut = 0; cut < kPlainPickle.size(); ++cut) {
    EXPECT_FALSE(read_pickle(kPlainPickle.substr(0, cut)).ok()) << cut;
  }
}

TEST(Pickle, RandomBytesNeverCrash) {
  std::mt19937 rng(7);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(kPlainPickle);
    for (int change = 0; change < 3; ++change) {
      bytes[rng() % bytes.size()] = static_cast<char>(rng());
    }
    const auto pickle = read_pickle(bytes);
    if (!pickle.ok()) {
      EXPECT_TRUE(pickle.status().message().starts_with("x.bin"));
    }
  }
}

}  // namespace
}  // namespace foretoken
