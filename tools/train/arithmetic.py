"""Makes small arithmetic word problems, each with a worked answer that ends in "The answer is N."

A problem is held out by a hash of its question, so no held-out question occurs in training.

    python3 arithmetic.py --count 5 --seed 1
"""

import argparse
import hashlib
import random

from augment import BOYS, GIRLS

THINGS = ("apples oranges pears bananas plums lemons cherries cookies cakes muffins sweets candies nuts eggs carrots potatoes "
          "tomatoes flowers roses shells stones sticks leaves feathers marbles balls toys dolls cars trains blocks books "
          "pencils crayons stickers stamps coins buttons beads ribbons cards balloons kites hats socks cups plates fish "
          "ducks hens sheep stars pictures").split()
HOLDERS = "boxes bags baskets jars trays shelves bowls rows packs buckets".split()
PLACES = "the park|the shop|the market|the garden|the beach|the school|the farm|the kitchen|the forest|the fair".split("|")
VISITORS = "birds ducks children cats dogs rabbits people frogs cows butterflies bees sheep".split()
LEAVE = "left|went away|went home|ran away".split("|")
SHARERS = "friends children cousins pupils boys girls neighbours".split()
BUYS = "toy book hat cake ball kite cup doll ticket drum".split()
CURRENCY = ["dollars", "coins", "pounds"]
NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()


class Scene:
    """One draw of names and things; `number` sometimes spells small numbers."""

    def __init__(self, generator):
        self.generator = generator
        girl = generator.random() < 0.5
        self.who, self.she = generator.choice(GIRLS if girl else BOYS), "she" if girl else "he"
        self.her = "her" if girl else "his"
        self.other = generator.choice([name for name in GIRLS + BOYS if name != self.who])
        self.things = generator.choice(THINGS)
        self.spelled = generator.random() < 0.15

    def pick(self, *options):
        return self.generator.choice(options)

    def one_of(self, options):
        return self.generator.choice(options)

    def within(self, low, high):
        return self.generator.randint(low, high)

    def operand(self, low=2, high=100):
        """Small numbers are drawn more often than large ones."""
        return self.within(low, min(high, self.pick(10, 20, 50, 100)))

    def number(self, value):
        return NUMBER_WORDS[value] if self.spelled and value <= 12 else str(value)


def gain(s):
    a, b = s.operand(), s.operand()
    n, t = s.number, s.things
    question = s.pick(
        f"{s.who} has {n(a)} {t}. {s.other} gives {s.pick('{0} more', '{0} more ' + t, '{0}').format(n(b))} to {s.who}. "
        f"How many {t} does {s.who} have now?",
        f"{s.who} had {n(a)} {t} and found {n(b)} more. How many {t} does {s.who} have {s.pick('now', 'in all', 'altogether')}?",
        f"{s.who} picked {n(a)} {t} in the morning and {n(b)} {t} in the afternoon. How many {t} did {s.she} pick in total?",
        f"There are {n(a)} {t} in a box. {s.who} puts {n(b)} more {t} into the box. How many {t} are in the box now?",
        f"{s.who} has {n(a)} {t} and {s.other} has {n(b)} {t}. How many {t} do they have together?",
        f"{s.who} counted {n(a)} red {t} and {n(b)} blue {t}. How many {t} did {s.she} count?")
    return question, [(a, "+", b)]


def loss(s):
    a = s.operand(3)
    b = s.within(1, a - 1)
    n, t, place, visitors = s.number, s.things, s.one_of(PLACES), s.one_of(VISITORS)
    question = s.pick(
        f"{s.who} has {n(a)} {t}. {s.who} gives {n(b)} to {s.other}. How many {t} does {s.who} have left?",
        f"{s.who} had {n(a)} {t} but lost {n(b)} of them. How many {t} does {s.she} have now?",
        f"There were {n(a)} {visitors} at {place}. {n(b).capitalize()} of them {s.one_of(LEAVE)}. How many {visitors} stayed?",
        f"{s.who} baked {n(a)} cookies and ate {n(b)}. How many cookies are left?",
        f"{s.who} has {n(a)} {t} and {s.other} has {n(b)} {t}. How many more {t} does {s.who} have than {s.other}?",
        f"A book has {n(a)} pages. {s.who} has read {n(b)} pages. How many pages are left to read?",
        f"{s.who} wants {n(a)} {t} and has {n(b)}. How many more {t} does {s.she} need?",
        f"{s.who} is {n(a)} years old and {s.other} is {n(b)} years old. How many years older is {s.who}?")
    return question, [(a, "-", b)]


def groups(s):
    a, b = s.within(2, 12), s.within(2, s.pick(5, 10, 12))
    n, t, holders = s.number, s.things, s.one_of(HOLDERS)
    question = s.pick(
        f"{s.who} has {n(a)} {holders} with {n(b)} {t} in each. How many {t} does {s.she} have in total?",
        f"There are {n(a)} {holders}. Each of them holds {n(b)} {t}. How many {t} are there in all?",
        f"{s.who} buys {n(a)} {s.one_of(BUYS)}s for {n(b)} dollars each. How many dollars does {s.she} pay?",
        f"{s.who} reads {n(b)} pages every day. How many pages does {s.she} read in {n(a)} days?",
        f"{s.who} gives {n(b)} {t} to each of {n(a)} {s.one_of(SHARERS)}. How many {t} does {s.she} give away?",
        f"{s.who} puts {n(b)} {t} on each of {n(a)} tables. How many {t} are on the tables?")
    return question, [(a, "*", b)]


def shares(s):
    b, each = s.within(2, s.pick(5, 10)), s.within(2, 12)
    a = b * each
    n, t, who = s.number, s.things, s.one_of(SHARERS)
    question = s.pick(
        f"{s.who} shares {n(a)} {t} equally among {n(b)} {who}. How many {t} does each get?",
        f"{s.who} puts {n(a)} {t} into {n(b)} {s.one_of(HOLDERS)}, the same number in each. How many {t} are in each?",
        f"{n(b).capitalize()} {who} divide {n(a)} {t} equally. How many {t} does each of them get?",
        f"{s.who} has {n(a)} {t}. {s.who} needs {n(b)} {t} for one cake. How many cakes can {s.she} make?",
        f"{n(a).capitalize()} {who} stand in {n(b)} equal rows. How many {who} are in each row?")
    return question, [(a, "/", b)]


def gain_then_loss(s):
    a, b = s.operand(), s.operand()
    c = s.within(1, min(a + b - 1, 100))
    n, t = s.number, s.things
    question = s.pick(
        f"{s.who} has {n(a)} {t}. {s.who} buys {n(b)} more and then gives {n(c)} to {s.other}. How many {t} are left?",
        f"There were {n(a)} {t} on the table. {s.who} added {n(b)} and {s.other} took {n(c)} away. How many {t} are on the table now?",
        f"{s.who} picked {n(a)} {t} on Monday and {n(b)} on Tuesday. {s.who} then sold {n(c)}. How many {t} does {s.she} have left?")
    return question, [(a, "+", b), (a + b, "-", c)]


def two_losses(s):
    a = s.operand(5)
    b = s.within(1, a - 3)
    c = s.within(1, a - b - 1)
    n, t = s.number, s.things
    question = s.pick(
        f"{s.who} had {n(a)} {t}. {s.who} gave {n(b)} to {s.other} and lost {n(c)}. How many {t} does {s.who} have left?",
        f"A shop had {n(a)} {t}. It sold {n(b)} in the morning and {n(c)} in the afternoon. How many {t} are left?",
        f"{s.who} has {n(a)} dollars. A {s.one_of(BUYS)} costs {n(b)} dollars and a lamp costs {n(c)} dollars. "
        f"How many dollars are left when {s.she} has bought both?")
    return question, [(a, "-", b), (a - b, "-", c)]


def groups_and_more(s):
    a, b, c = s.within(2, 10), s.within(2, 10), s.within(1, 20)
    n, t, holders = s.number, s.things, s.one_of(HOLDERS)
    question = s.pick(
        f"{s.who} has {n(a)} {holders} with {n(b)} {t} in each and {n(c)} more {t} on the table. How many {t} are there in all?",
        f"{s.who} buys {n(a)} packs of {n(b)} {t}. {s.other} gives {s.who} {n(c)} more. How many {t} does {s.who} have now?")
    return question, [(a, "*", b), (a * b, "+", c)]


def groups_and_fewer(s):
    a, b = s.within(2, 10), s.within(2, 10)
    c = s.within(1, a * b - 1)
    n, t, holders = s.number, s.things, s.one_of(HOLDERS)
    question = s.pick(
        f"{s.who} has {n(a)} {holders} with {n(b)} {t} in each. {s.who} gives {n(c)} {t} to {s.other}. How many {t} are left?",
        f"A baker makes {n(a)} trays of {n(b)} cakes and sells {n(c)} cakes. How many cakes are left?",
        f"{s.who} earns {n(b)} dollars a day for {n(a)} days and spends {n(c)} dollars. How many dollars does {s.she} have left?")
    return question, [(a, "*", b), (a * b, "-", c)]


def gather_and_share(s):
    d, each = s.within(2, 6), s.within(2, 10)
    a = s.within(1, d * each - 1)
    b = d * each - a
    n, t, who = s.number, s.things, s.one_of(SHARERS)
    question = s.pick(
        f"{s.who} has {n(a)} {t} and {s.other} has {n(b)} {t}. They share all of them equally among {n(d)} {who}. "
        f"How many {t} does each get?",
        f"{s.who} finds {n(a)} {t} and buys {n(b)} more. {s.who} puts them all into {n(d)} {s.one_of(HOLDERS)}, the same number "
        f"in each. How many {t} are in each?")
    return question, [(a, "+", b), (a + b, "/", d)]


def plain(s):
    sign = s.pick("+", "-", "*", "/")
    if sign in "+-":
        a, b = s.operand(0), s.operand(0)
        a, b = (max(a, b), min(a, b)) if sign == "-" else (a, b)
    else:
        a, b = s.within(1, 12), s.within(1, 12)
        a = a * b if sign == "/" else a
    word = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}[sign]
    if s.pick(True, False):
        sign_text = word
    else:
        sign_text = {"*": s.pick("*", "x")}.get(sign, sign)
    question = s.pick(f"What is {a} {sign_text} {b}?", f"How much is {a} {sign_text} {b}?", f"{a} {sign_text} {b} = ?",
                      f"Calculate {a} {sign_text} {b}.")
    return question, [(a, sign, b)]


KINDS = [(gain, 3), (loss, 3), (groups, 3), (shares, 2), (gain_then_loss, 2), (two_losses, 2), (groups_and_more, 2),
         (groups_and_fewer, 2), (gather_and_share, 1), (plain, 2)]


def value_of(a, sign, b):
    return {"+": a + b, "-": a - b, "*": a * b, "/": a // b if b else 0}[sign]


def work_out(steps):
    """The calculation in words and its last value."""
    parts = [f"{a} {sign} {b} = {value_of(a, sign, b)}" for a, sign, b in steps]
    text = f"{parts[0]}." if len(parts) == 1 else f"First, {parts[0]}. Then, {parts[1]}."
    return text, value_of(*steps[-1])


def problem(generator):
    """One (question, answer text, number)."""
    make = generator.choices([kind for kind, _ in KINDS], [weight for _, weight in KINDS])[0]
    question, steps = make(Scene(generator))
    text, value = work_out(steps)
    return question, f"{text} The answer is {value}.", value


def is_held_out(question, share):
    key = hashlib.sha256(question.encode()).digest()
    return int.from_bytes(key[:4], "big") < share * 2**32


def problems(count, seed, share=0.05):
    """Two lists of (question, answer): `count` for training, and the held-out ones met on the way."""
    generator, train, held = random.Random(seed), {}, {}
    while len(train) < count:
        question, answer, _ = problem(generator)
        (held if is_held_out(question, share) else train)[question] = answer
    return list(train.items()), list(held.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for question, answer in problems(args.count, args.seed)[0]:
        print(f"Q: {question}\nA: {answer}\n")


if __name__ == "__main__":
    main()
