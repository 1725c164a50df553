#!/usr/bin/env python3
"""What tools/check_words.py finds and what it lets pass, on lines made up for it."""

import unittest

from check_words import INSTEAD, STEMS, faults

FOUND = {"constexpr int kMostRows = 3;": "kMax...", "int kMost = 3;": "kMax...", "int most_rows = 3;": "max_...", "void mend_all();": "repair",
         "bool is_mended;": "repair", "// It mends the text.": "repair", "void MendRows();": "repair", "int x = y_mend;": "repair",
         "int purse_ = 3;": "budget", "// The Purse of a request.": "budget", "pioneers_": "first learners",
         "constexpr int kNobody = -1;": "the thing that is missing", "int coins = 1;": "draw", "coin_ = 0;": "draw",
         "class StartSeat;": "barrier, slot or place", "int seats = 1;": "barrier, slot or place", "took = now() - begin;": "elapsed",
         "const auto took_ns = 1;": "elapsed", "took.count()": "elapsed"}
PASSED = ("counter.most_common(3)", "// We recommend it, and amend it.", "// It took a while.", "int coincidence = 3;", "int seated;",
          "// At most 3 rows.", "int almost_all = 3;", "int kMosaic = 3;", "Amendment", "// nobody", "purser")


class Words(unittest.TestCase):
    def test_each_word_is_found_with_the_field_s_word(self):
        for line, instead in FOUND.items():
            found = list(faults("src/x/a.cpp", "int x;\n" + line + "\n"))
            self.assertEqual(len(found), 1, (line, found))
            self.assertTrue(found[0].startswith("src/x/a.cpp:2: "), found)
            self.assertIn("write " + instead, found[0])
        self.assertEqual(len({instead for instead in FOUND.values()}), len(INSTEAD), "a word without a planted line")

    def test_look_alikes_pass(self):
        for line in PASSED:
            self.assertEqual(list(faults("src/x/a.cpp", line)), [], line)

    def test_the_stems_leave_no_word_out(self):
        for line in FOUND:
            self.assertTrue(any(stem in line.lower() for stem in STEMS), line)

    def test_each_place_is_named(self):
        self.assertEqual(len(list(faults("a", "int coin = 1;\nint coin_b = coin;\n"))), 3)


if __name__ == "__main__":
    unittest.main()
