# The unit tests as ctest's entries, made each time that ctest starts from what the programs list;
# cmake/tests.cmake sets `folders`, `programs` (the folder of the programs) and `root`.
#
# An entry is a suite, <folder>/<suite>, or a part of a large one, <folder>/<suite>/partN: a process
# for each test would cost more than most tests do, 0.1 to 0.8 s under a sanitizer. A test that takes
# long is an entry of its own, <folder>/<suite>.<test>. Those that a sanitizer leaves out are entries
# beside the suite's, named by who runs them: <folder>/<suite>/fast+asan. Tests called DISABLED_ have
# none. What failed in an entry stands in its output; `test_<folder> --gtest_filter=<suite>.<test>`
# runs it alone.
#
# tests/<folder>/labels.cmake may say:
#   sanitizers   asan, tsan or both: what .ci/run runs the folder's fast tests under
#   slow         regular expressions of names (folder/suite.test/parameter) that take long: no
#                sanitizer runs them
#   slow_asan, slow_tsan   of those that one sanitizer does not run
#   in_turns     of fast ones that are a part of a large product
#   first        regular expressions of entries that take long and would be the last to start: where no
#                run has told their times yet, they start first
# An entry is `slow` or `fast`, and bears the names of its sanitizers. A folder without the file has no
# sanitizer, and its tests are fast.
#
# Slow tests and those in_turns go in turns: each bears one of the labels turn-0 to turn-12, one for each
# day of thirteen, counted from 1970 on, and ./test runs those of a day beside the tests without a turn. Tests
# that differ in their parameters alone go round the turns in the order in which they are listed. Thirteen is
# prime, so that a turn meets most values of each axis, and not a few drafters in all modes.
# Clients and programs (cmake/tests.cmake) go in thirds: third-0 to third-2, of which a turn takes that of
# its number modulo three.
set(turns 13)
set(tests_of_an_entry 25)

# add_entry(<name> <labels> <test>...)
function(add_entry name labels)
  if(NOT ARGN)
    message(FATAL_ERROR "${name} has no tests")
  endif()
  list(JOIN ARGN ":" filter)
  add_test(${name} ${programs}/test_${folder} --gtest_filter=${filter})
  set_tests_properties(${name} PROPERTIES WORKING_DIRECTORY ${root} TIMEOUT 1800 LABELS "${labels}")
  foreach(pattern IN LISTS first)
    if(name MATCHES "${pattern}")
      set_tests_properties(${name} PROPERTIES COST 10)
    endif()
  endforeach()
  # Only where there is one test: ctest would call an entry skipped that has a failure beside a skip.
  list(LENGTH ARGN count)
  if(count EQUAL 1)
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
  endif()
endfunction()

# add_suite(<name> <labels> <test>...): in parts of equal size.
function(add_suite name labels)
  list(LENGTH ARGN count)
  if(count LESS_EQUAL tests_of_an_entry)
    add_entry(${name} "${labels}" ${ARGN})
    return()
  endif()
  math(EXPR parts "(${count} + ${tests_of_an_entry} - 1) / ${tests_of_an_entry}")
  math(EXPR size "(${count} + ${parts} - 1) / ${parts}")
  foreach(part RANGE 1 ${parts})
    math(EXPR begin "(${part} - 1) * ${size}")
    list(SUBLIST ARGN ${begin} ${size} tests)
    add_entry(${name}/part${part} "${labels}" ${tests})
  endforeach()
endfunction()

# turn_of(<variable> <test> <slow or fast>): the turn after that of the test before it that differs in
# its parameters alone; the first one's follows from its name.
function(turn_of variable test speed)
  string(REGEX MATCH "^[^.]*\\.[^/]*" name "${test}")
  set(next next_turn_${speed}_${name})
  if(NOT DEFINED ${next})
    string(MD5 sum "${folder}/${name}")
    string(SUBSTRING ${sum} 0 7 digits)
    math(EXPR ${next} "0x${digits}")
  endif()
  math(EXPR turn "${${next}} % ${turns}")
  math(EXPR following "${turn} + 1")
  set(${variable} turn-${turn} PARENT_SCOPE)
  set(${next} ${following} PARENT_SCOPE)
endfunction()

# labels_of(<variable> <name of a test>): all but its turn.
function(labels_of variable name)
  set(labels fast ${sanitizers})
  foreach(pattern IN LISTS slow)
    if(name MATCHES "${pattern}")
      set(labels slow)
    endif()
  endforeach()
  foreach(sanitizer IN ITEMS asan tsan)
    foreach(pattern IN LISTS slow_${sanitizer})
      if(name MATCHES "${pattern}")
        list(REMOVE_ITEM labels ${sanitizer})
      endif()
    endforeach()
  endforeach()
  set(${variable} "${labels}" PARENT_SCOPE)
endfunction()

# add_entries(<folder>)
function(add_entries folder)
  set(program ${programs}/test_${folder})
  if(NOT EXISTS ${program})
    add_test(test_${folder}_NOT_BUILT test_${folder}_NOT_BUILT)
    return()
  endif()
  set(sanitizers "")
  foreach(list IN ITEMS slow slow_asan slow_tsan in_turns first)
    set(${list} "")
  endforeach()
  include(${root}/tests/${folder}/labels.cmake OPTIONAL)
  set(usual fast ${sanitizers})
  execute_process(COMMAND ${program} --gtest_list_tests WORKING_DIRECTORY ${root} TIMEOUT 60
    OUTPUT_VARIABLE listed RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${program} --gtest_list_tests ended with ${result}:\n${listed}")
  endif()
  string(REGEX REPLACE " +#[^\n]*" "" listed "${listed}")
  string(REPLACE "\n" ";" listed "${listed}")
  set(suites "")
  set(keys "")
  foreach(line IN LISTS listed)
    if(NOT line MATCHES "^  (.*)$")
      set(suite "${line}")
      list(APPEND suites "${suite}")
      continue()
    endif()
    set(test ${suite}${CMAKE_MATCH_1})
    if(test MATCHES "DISABLED_")
      continue()
    endif()
    labels_of(labels ${folder}/${test})
    if(labels MATCHES "^slow")
      turn_of(turn ${test} slow)
      add_entry(${folder}/${test} "${labels};${turn}" ${test})
      continue()
    endif()
    foreach(pattern IN LISTS in_turns)
      if(${folder}/${test} MATCHES "${pattern}")
        turn_of(turn ${test} fast)
        list(APPEND labels ${turn})
        break()
      endif()
    endforeach()
    string(REPLACE ";" "+" key "${labels}")
    list(APPEND keys ${key})
    list(APPEND tests_of_${suite}${key} ${test})
  endforeach()
  list(REMOVE_DUPLICATES keys)
  foreach(suite IN LISTS suites)
    foreach(key IN LISTS keys)
      if(NOT tests_of_${suite}${key})
        continue()
      endif()
      string(REGEX REPLACE "\\.$" "" name "${folder}/${suite}")
      string(REPLACE "+" ";" labels "${key}")
      list(JOIN usual "+" plain)
      if(NOT labels STREQUAL "${usual}")
        string(REPLACE "${plain}+turn-" "turn-" kind "${key}")
        string(APPEND name "/${kind}")
      endif()
      add_suite(${name} "${labels}" ${tests_of_${suite}${key}})
    endforeach()
  endforeach()
endfunction()

foreach(folder IN LISTS folders)
  add_entries(${folder})
endforeach()
