# See tests/entries.cmake.
set(sanitizers asan)
# Simulations of many batches, 10 to 25 s there; they touch what the others touch.
set(slow_asan "LengthController\\.AdaptiveIsNeverBelow" "FirstRound\\." "ShortAnswers\\." "BriefTimes\\.")
