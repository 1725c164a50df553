"""OpenAI's `prediction`: it drafts where the n-gram drafter runs, and changes no text."""

import door

MESSAGES = [{"role": "user", "content": "Tell me a story about a cat."}]
BODY = {"messages": MESSAGES, "max_completion_tokens": 60, "temperature": 0, "seed": 3}


class PredictionCase(door.DoorCase):
    """The same questions, whatever the server drafts with."""

    drafts = True

    def ask(self, prediction=None, **more):
        body = {**BODY, **more}
        if prediction is not None:
            body["prediction"] = {"type": "content", "content": prediction}
        return self.post("/v1/chat/completions", body).json

    def text(self, answer):
        return answer["choices"][0]["message"]["content"]

    def counts(self, answer):
        # Usage tells nothing where nothing was drafted and no prediction given.
        details = answer["usage"].get("completion_tokens_details") or {}
        return (details.get("accepted_prediction_tokens", 0),
                details.get("rejected_prediction_tokens", 0))

    def check(self, prediction, **more):
        """The counts of an answer whose text is the same with the prediction."""
        plain = self.ask(**more)
        answer = self.ask(prediction, **more)
        self.assertEqual(self.text(answer), self.text(plain))
        self.assertEqual(answer["usage"]["completion_tokens"], plain["usage"]["completion_tokens"])
        return self.counts(answer)


class WithNgram(PredictionCase):
    flags = ("--spec-method", "ngram", "--spec-tokens", "4", "--spec-length-policy", "fixed")

    def test_a_right_prediction_is_accepted(self):
        text = self.text(self.ask())
        accepted, rejected = self.check(text)
        self.assertGreaterEqual(accepted, 40)
        self.assertLessEqual(rejected, 8)

    def test_an_edited_one_goes_on_behind_the_edit(self):
        words = self.text(self.ask()).split(" ")
        words[len(words) // 2:len(words) // 2] = ["seven", "purple", "engines"]
        accepted, _ = self.check(" ".join(words))
        self.assertGreaterEqual(accepted, 25)

    def test_a_wrong_one_changes_nothing(self):
        self.check("0 = 1; return nullptr; " * 20)

    def test_sampled_text_stays(self):
        sampled = {"temperature": 0.9, "seed": 11}
        accepted, _ = self.check(self.text(self.ask(**sampled)), **sampled)
        self.assertGreaterEqual(accepted, 35)

    def test_parts_and_streams(self):
        text = self.text(self.ask())
        answer = self.post("/v1/chat/completions", {
            **BODY, "prediction": {"type": "content",
                                   "content": [{"type": "text", "text": text[:50]},
                                               {"type": "text", "text": text[50:]}]}}).json
        self.assertGreaterEqual(self.counts(answer)[0], 40)
        events = self.post("/v1/chat/completions", {
            **BODY, "stream": True, "stream_options": {"include_usage": True},
            "prediction": {"type": "content", "content": text}}).events
        self.assertGreaterEqual(self.counts(events[-1])[0], 40)
        streamed = "".join(event["choices"][0]["delta"].get("content") or ""
                           for event in events if event["choices"])
        self.assertEqual(streamed, text)


class WithTheAdaptivePolicy(PredictionCase):
    flags = ("--spec-method", "ngram", "--spec-tokens", "4")

    def test_the_text_stays(self):
        self.check(self.text(self.ask()))


class WithoutNgram(PredictionCase):
    flags = ()

    def test_it_is_accepted_and_has_no_effect(self):
        text = self.text(self.ask())
        answer = self.ask(text)
        self.assertEqual(self.text(answer), text)
        details = answer["usage"].get("completion_tokens_details") or {}
        self.assertEqual(details.get("accepted_prediction_tokens", 0), 0)


if __name__ == "__main__":
    door.main()
