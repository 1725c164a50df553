#include "sched/adapter_slots.h"

#include <gtest/gtest.h>

#include "sched/script.h"

namespace foretoken {
namespace {

TEST(AdapterSlots, KeepsTheBytesOfAnAdapterThatComesBack) {
  AdapterSlots slots(2);
  const auto first = slots.acquire(7);
  EXPECT_TRUE(first.fresh);
  EXPECT_FALSE(slots.acquire(7).fresh) << "a second sequence of the same adapter";
  slots.release(first.slot);
  slots.release(first.slot);
  const auto again = slots.acquire(7);
  EXPECT_FALSE(again.fresh);
  EXPECT_EQ(again.slot, first.slot);
}

TEST(AdapterSlots, GivesAwayThePlaceThatWasUsedLongestAgo) {
  AdapterSlots slots(2);
  const int first = slots.acquire(1).slot, second = slots.acquire(2).slot;
  EXPECT_NE(first, second);
  EXPECT_FALSE(slots.has_room(3)) << "both are in use";
  EXPECT_TRUE(slots.has_room(2)) << "it is there";
  slots.release(first);
  slots.release(second);
  EXPECT_EQ(slots.acquire(1).slot, first);
  slots.release(first);
  const auto third = slots.acquire(3);
  EXPECT_TRUE(third.fresh);
  EXPECT_EQ(third.slot, second);
  EXPECT_EQ(slots.acquire(3).slot, second) << "it is there now";
  slots.release(second);
  EXPECT_TRUE(slots.acquire(2).fresh) << "its place was given away";
}

TEST(AdapterSlots, WithoutPlacesNoAdapterHasRoom) { EXPECT_FALSE(AdapterSlots(0).has_room(1)); }

// Blocks are found again under the adapter that they were computed with alone.
TEST(Scheduler, CachedPrefixesBelongToTheirAdapter) {
  EXPECT_EQ("", run({.num_blocks = 40,
                     .block_size = 4,
                     .max_num_seqs = 8,
                     .max_num_batched_tokens = 64,
                     .num_adapter_slots = 2},
                    R"(
    submit a prompt=8 max=10
    submit b prompt=8 max=10 adapter=1
    plan
    span a tokens=8 samples first
    span b tokens=8 samples first place=0
    state loads=1
    submit c prompt=8 max=10 adapter=1
    submit d prompt=8 max=10 adapter=2
    submit e prompt=8 max=10 adapter=1 salt=1
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    span c tokens=4 hits=4 samples first place=0
    span d tokens=8 samples first place=1
    span e tokens=8 samples first place=0
    state loads=1
  )"));
}

// Blocks before the one in which an adapter begins are found by all; the others under the adapter
// and where it begins alone.
TEST(Scheduler, PrefixesBeforeAnAdapterBeginsAreThoseWithoutOne) {
  EXPECT_EQ("", run({.num_blocks = 60,
                     .block_size = 4,
                     .max_num_seqs = 8,
                     .max_num_batched_tokens = 64,
                     .num_adapter_slots = 2},
                    R"(
    submit a prompt=14 max=20
    plan
    span a tokens=14 samples first
    done a=1
    submit b prompt=14 max=20 adapter=1 begin=9
    plan
    span a tokens=1 samples
    span b tokens=6 hits=8 samples first place=0
    done a=1 b=1
    submit c prompt=14 max=20 adapter=1 begin=9
    submit d prompt=14 max=20 adapter=1 begin=10
    submit e prompt=14 max=20 adapter=2 begin=9
    submit f prompt=14 max=20
    submit g prompt=14 max=20 adapter=1 begin=2
    submit h prompt=14 max=20 adapter=1
    plan
    span a tokens=1 samples
    span b tokens=1 samples
    span c tokens=2 hits=12 samples first place=0
    span d tokens=6 hits=8 samples first place=0
    span e tokens=6 hits=8 samples first place=1
    span f tokens=2 hits=12 samples first
    span g tokens=14 samples first place=0
    span h tokens=14 samples first place=0
  )"));
}

// Those without an adapter pass a sequence whose adapter has no place; later ones with adapters
// wait behind it, so that its turn comes.
TEST(Scheduler, AnAdapterWithoutAPlaceWaitsForItsTurn) {
  EXPECT_EQ("", run({.num_blocks = 40,
                     .block_size = 4,
                     .max_num_seqs = 8,
                     .max_num_batched_tokens = 64,
                     .num_adapter_slots = 1},
                    R"(
    submit a prompt=5 max=10 adapter=1
    submit b prompt=5 max=10 adapter=2
    submit c prompt=5 max=10 base=300
    submit d prompt=5 max=10 base=500 adapter=1
    plan
    span a tokens=5 samples first place=0
    span c tokens=5 samples first
    state waiting=2 loads=1
    done a=1! c=1
    plan
    span c tokens=1 samples
    span b tokens=5 samples first place=0
    state waiting=1 loads=1
    finish b
    plan
    span c tokens=1 samples
    state waiting=1 loads=0
    done c=1
    plan
    span c tokens=1 samples
    span d tokens=5 samples first place=0
    state waiting=0 loads=1
  )"));
}

TEST(Scheduler, APreemptedSequenceGivesItsAdaptersPlaceBack) {
  EXPECT_EQ("", run({.num_blocks = 5,
                     .block_size = 4,
                     .max_num_seqs = 4,
                     .max_num_batched_tokens = 16,
                     .num_adapter_slots = 1},
                    R"(
    submit a prompt=7 max=16
    submit b prompt=7 max=12 base=300 adapter=3
    plan
    span a tokens=7 samples first
    span b tokens=7 samples first place=0
    done a=1 b=1
    plan
    span a tokens=1 samples
    state preemptions=1 waiting=1
    done a=1!
    plan
    span b tokens=4 hits=4 samples first place=0
    state loads=0
  )"));
}

}  // namespace
}  // namespace foretoken
