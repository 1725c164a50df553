"""Reads the arrays of prepare.py and draws training rows from them."""

import json

import numpy as np


class Corpus:
    """Rows are made of whole documents; each starts at a document's first token.

    Sources are drawn so that their shares of tokens follow the weights in summary.json.
    """

    def __init__(self, folder, seed):
        self.summary = json.loads((folder / "summary.json").read_text())
        self.generator = np.random.default_rng(seed)
        arrays = np.load(folder / "tokens.npz")
        names = list(self.summary["train"])
        self.sources = [(arrays[f"train/{name}/tokens"], arrays[f"train/{name}/offsets"])
                        for name in names]
        mean_length = np.array([len(tokens) / (len(offsets) - 1)
                                for tokens, offsets in self.sources])
        weights = np.array([self.summary["train"][name]["weight"] for name in names]) / mean_length
        self.chances = weights / weights.sum()
        self.evaluation = {name: arrays[f"evaluate/{name}/tokens"]
                           for name in self.summary["evaluate"]}
        self.queues = [[] for _ in names]

    def next_document(self, source):
        """Each source runs through all its documents in a fresh order before one comes again."""
        tokens, offsets = self.sources[source]
        if not self.queues[source]:
            self.queues[source] = self.generator.permutation(len(offsets) - 1).tolist()
        index = self.queues[source].pop()
        return tokens[offsets[index]:offsets[index + 1]]

    def batch(self, rows, length):
        """uint16 [rows, length + 1]: inputs and, shifted by one, targets."""
        result = np.empty((rows, length + 1), dtype=np.uint16)
        for row in result:
            filled = 0
            while filled <= length:
                source = self.generator.choice(len(self.sources), p=self.chances)
                piece = self.next_document(source)[:length + 1 - filled]
                row[filled:filled + len(piece)] = piece
                filled += len(piece)
        return result

    def windows(self, name, length):
        """int64 inputs and targets [n, length] over a held-out text; -100 marks padding."""
        tokens = self.evaluation[name].astype(np.int64)
        count = -(-(len(tokens) - 1) // length)
        inputs = np.zeros(count * length, np.int64)
        targets = np.full(count * length, -100, np.int64)
        inputs[:len(tokens) - 1], targets[:len(tokens) - 1] = tokens[:-1], tokens[1:]
        return inputs.reshape(count, length), targets.reshape(count, length)
