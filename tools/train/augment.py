"""Variants of small stories: each character gets another name, the same one in the whole story."""

import collections
import re

GIRLS = ("Lily Lucy Mia Sue Amy Sally Jane Sarah Emma Anna Molly Mary Penny Ella Lola Bella Sara Kate Jenny Claire Sophie "
         "Rachel Polly Mimi Julie Dolly Ann Alice Zara Tina Tilly Ruby Rosie Olive Luna Lulu Lisa Jenna Gina Ellie Bessie "
         "Winnie Suzy Nina Nora Eva Zoe Maya Leah Clara Ivy Hannah Katie Maggie Annie Betty Susie Chloe Lena Elsa Ada "
         "Fiona Greta Helen Heidi Iris Julia Laura Linda Maria Martha Millie Nancy Naomi Nelly Paula Rita Ruth Sandy Stella "
         "Tara Vera Wendy Wanda Dora Edith Emily").split()
BOYS = ("Tim Timmy Tom Max Sam Bob Jack Billy Benny Ben John Joe Andy Sammy Leo Jerry Remy Ollie Oliver Gary Freddy Fred "
        "Bobby Tommy Todd Thomas Ralph Pete Johnny Joey James Jake George Charlie Alex Tony Adam Peter Paul David Daniel "
        "Danny Kevin Luke Mike Noah Oscar Owen Harry Henry Finn Felix Eric Eddie Ethan Dylan Dan Carl Brian Arthur Alan "
        "Aaron Victor Walter Simon Scott Ryan Roy Robert Ricky Philip Patrick Nick Nathan Michael Matt Martin Louis Liam "
        "Larry Kyle Karl Josh Jason Ian Hugo Greg").split()
ANIMALS = ("Spot Kitty Fluffy Buddy Mittens Tweetie Momo Ducky Bobo Whiskers Tweety Tweet Elly Buzz Rover Nemo Chirpy Buzzy "
           "Brownie Bongo Binky Zippy Zigzag Ziggy Bingo Bunny Coco Cookie Fuzzy Goldie Jumbo Pip Rex Rusty Scruffy Snowy "
           "Sparky Teddy Toby Wags").split()
GROUPS = [GIRLS, BOYS, ANIMALS]
KNOWN = {name: group for group in GROUPS for name in group}


def names_in(story):
    """Known names that the story uses more than once."""
    counts = collections.Counter(re.findall(r"\b[A-Z][a-z]+\b", story))
    return [name for name, count in counts.items() if count > 1 and name in KNOWN]


def rename(story, generator, frequency):
    """The story with other names of the same kind; frequent names stay frequent."""
    found = names_in(story)
    taken, changed = set(re.findall(r"\b[A-Z][a-z]+\b", story)), {}
    for name in found:
        free = [other for other in KNOWN[name] if other not in taken]
        weights = [(frequency[other] + 1) ** 0.5 for other in free]
        changed[name] = generator.choices(free, weights)[0]
        taken.add(changed[name])
    if not changed:
        return story
    pattern = r"\b(" + "|".join(map(re.escape, changed)) + r")\b"
    return re.sub(pattern, lambda match: changed[match[1]], story)


def variants(stories, count, generator):
    """The stories and `count` copies of each; one without a known name comes back as it is."""
    frequency = collections.Counter(name for story in stories for name in names_in(story))
    copies = [rename(story, generator, frequency) for _ in range(count) for story in stories]
    return stories + copies
