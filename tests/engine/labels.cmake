# See tests/labels.cmake.
set(sanitizers asan tsan)
set(slow "DraftRecovery.*_4$" "Adapters.(TextsAreTheSameWithEveryDrafter|StagesAndRanks.*|MoreOfThem.*)$")
