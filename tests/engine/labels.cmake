# See tests/entries.cmake.
set(sanitizers asan tsan)
set(slow "DraftRecovery.*_4$" "Adapters.(TextsAreTheSameWith.*|StagesAndRanks.*|MoreOfThem.*)$" "WarmStart\\.")
# As in conformance: drafters differ in values, not in who touches them; and measuring starts no thread.
set(slow_tsan "(SpeculationWith|ProfiledDrafter|DraftRecovery).*/(ngram|eagle|mtp|mtp_own|mtp_chained|draft_model_shifted)(_[0-9])?$"
  "StepProfileEdges\\.")
# Drafters with ways to end, fields and layouts; engines that measure all of their steps.
set(in_turns "(SpeculationWith|ProfiledDrafter|DraftRecovery)\\."
  "StepProfileEdges\\.")
