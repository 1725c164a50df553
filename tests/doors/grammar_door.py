#!/usr/bin/env python3
"""GBNF as llama.cpp's clients send it."""

import re

import door

GRAMMARS = door.ROOT / "tests" / "text" / "data" / "gbnf"
CHAT = {"messages": door.USER, "max_tokens": 60, "temperature": 0.8, "seed": 3}


class Gbnf(door.DoorCase):
    def ask(self, grammar, status=200, **more):
        return self.post("/v1/chat/completions", {**CHAT, **more, "grammar": grammar}, status).json

    def text(self, grammar, **more):
        return self.ask(grammar, **more)["choices"][0]["message"]["content"]

    def test_llama_cpps_own(self):
        names = sorted(file.stem for file in GRAMMARS.glob("*.gbnf"))
        self.assertEqual(len(names), 8)
        for name in names:
            with self.subTest(name=name):
                text = self.text((GRAMMARS / f"{name}.gbnf").read_text(encoding="utf-8"))
                self.assertTrue(re.match({"json": r"\{", "json_arr": r"\[\n", "list": "- ",
                                          "chess": r"1\. ", "c": ""}.get(name, "(?s)."), text), text)

    def test_features(self):
        grammar = """# a comment
root ::= "<" word{2,3} [^\\x00-\\x1f a-z] . ">"   # another
word ::= [b-d]{1,4} (
  "-" | "\\u002b"
)
"""
        self.assertRegex(self.text(grammar), r"(?s)\A<([b-d]{1,4}[-+]){2,3}[^\x00-\x1f a-z].>\Z")

    def test_vllms_field_and_completions(self):
        answer = self.post("/v1/completions", {
            "prompt": "Once", "max_tokens": 20, "structured_outputs": {"grammar": 'root ::= "a" "b"?'}})
        self.assertIn(answer.json["choices"][0]["text"], ("a", "ab"))

    def test_tokens(self):
        answer = self.ask('root ::= <[17]> !<[17]> "x"', return_token_ids=True)
        ids = answer["choices"][0]["token_ids"]
        self.assertEqual(ids[0], 17)
        self.assertNotEqual(ids[1], 17)

    def test_errors_name_the_rule(self):
        for grammar, words in (('root ::= other', "no rule 'other'"),
                               ('root ::= word\nword ::= [z-a]', "rule 'word', line 2"),
                               ('root ::= <nowhere>', "rule 'root', line 1: <nowhere>"),
                               ('a ::= "b"', "no rule 'root'")):
            self.assertIn(words, self.ask(grammar, 400)["error"]["message"])

    def test_chains_have_room_or_are_refused(self):
        def chain(count, mark, first):
            rows = [f'r{i} {mark} "a" r{i + 1}' for i in range(count)]
            return "\n".join([f"{first} {mark} r0", *rows, f'r{count} {mark} "b"'])
        self.assertRegex(self.text(chain(5000, "::=", "root"), max_tokens=5), r"\Aaaa")
        self.assertRegex(self.text(chain(5000, ":", "start"), max_tokens=5), r"\Aaaa")
        self.assertIn("deep in each other", self.ask(chain(16000, "::=", "root"), 400)["error"]["message"])
        names = [f"#/$defs/d{i}" for i in range(2001)]
        schema = {"$ref": names[0], "$defs": {f"d{i}": {"type": "object", "$ref": name}
                                              for i, name in enumerate(names[1:])}}
        schema["$defs"]["d2000"] = {"type": "object", "properties": {"a": {"type": "null"}},
                                    "required": ["a"], "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
        self.post("/v1/chat/completions", {**CHAT, "response_format": form})
        twice = {f"d{i}": {"type": "object", "properties": {"x": {"$ref": name}, "y": {"$ref": name}}}
                 for i, name in enumerate(names[1:61])}
        self.post("/v1/chat/completions", {**CHAT, "structured_outputs": {
            "json": {"$ref": names[0], "$defs": {**twice, "d60": {"type": "null"}}}}})
        self.assertIn(self.text('root ::= "a" "b"?'), ("a", "ab"))

    def test_no_grammar(self):
        self.assertTrue(self.text(""))


if __name__ == "__main__":
    door.main()
