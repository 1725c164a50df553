"""Makes short chats of greetings and plain facts of a child's world, from the tables below."""

import random

SELF = [("Who are you?|What are you?|What is your name?|Tell me about yourself.",
         "I am Foretoken's small model. I can tell short stories, chat a little and try easy sums.|"
         "I am a very small language model. I like to tell stories and to try easy sums."),
        ("What can you do?|How can you help me?|Can you help me?",
         "I can tell you a short story, answer easy questions and try small sums. What would you like?|"
         "I can write little stories and try easy sums. What shall we do?"),
        ("Hello!|Hello|Hi!|Hi|Hi there!|Hey!|Good morning!|Good evening!",
         "Hello! How can I help you today?|Hi! Would you like a story or a sum?|Hello! It is nice to meet you. What would you like?"),
        ("How are you?|How are you today?|How do you do?",
         "I am fine, thank you. How are you?|I am very well, thank you for asking. What would you like to do?"),
        ("Thank you!|Thanks!|Thank you very much.|Thanks a lot!", "You are welcome!|You are very welcome. Have a nice day!"),
        ("Goodbye!|Bye!|Bye bye!|See you later!|Good night!", "Goodbye! Have a nice day.|Bye! Come back soon."),
        ("How old are you?|When were you born?", "I am a computer program, so I do not have an age like you."),
        ("Can you do maths?|Can you do sums?|Can you calculate?",
         "I can try small sums, but I sometimes make mistakes. Which sum shall I try?"),
        ("Can you tell me a story?|Do you know any stories?|Do you like stories?",
         "Yes, I love stories! What should the story be about?"),
        ("I am sad.|I feel sad today.|I had a bad day.", "I am sorry to hear that. Would you like to tell me what happened?"),
        ("I am happy!|I feel very happy today.|I had a great day!", "That is wonderful! What made you so happy?")]

COLOURS = {"the sky on a sunny day": "blue", "grass": "green", "snow": "white", "a banana": "yellow", "a tomato": "red",
           "a carrot": "orange", "coal": "black", "milk": "white", "a strawberry": "red", "a lemon": "yellow",
           "the sun in a picture book": "yellow", "a cloud": "white", "chocolate": "brown", "a leaf in summer": "green",
           "a frog": "green", "an elephant": "grey", "the night sky": "black", "a ripe cherry": "red"}
SOUNDS = {"dog": "woof", "cat": "meow", "cow": "moo", "duck": "quack", "sheep": "baa", "pig": "oink", "lion": "roar",
          "bee": "buzz", "snake": "hiss", "owl": "hoot", "horse": "neigh", "mouse": "squeak", "frog": "croak", "bird": "tweet"}
HOMES = {"bird": "a nest", "bee": "a hive", "fish": "the water", "spider": "a web", "rabbit": "a burrow", "dog": "a kennel",
         "cow": "a barn", "bear": "a den", "frog": "a pond", "ant": "an anthill", "camel": "the desert", "monkey": "the trees",
         "whale": "the sea", "penguin": "the cold south", "horse": "a stable"}
BABIES = {"dog": "puppy", "cat": "kitten", "cow": "calf", "sheep": "lamb", "horse": "foal", "duck": "duckling", "hen": "chick",
          "bear": "cub", "lion": "cub", "pig": "piglet", "goat": "kid", "frog": "tadpole", "swan": "cygnet", "deer": "fawn"}
OPPOSITES = {"big": "small", "hot": "cold", "up": "down", "happy": "sad", "fast": "slow", "day": "night", "old": "young",
             "open": "closed", "wet": "dry", "light": "dark", "full": "empty", "hard": "soft", "loud": "quiet", "tall": "short",
             "clean": "dirty", "rich": "poor", "strong": "weak", "near": "far", "early": "late", "good": "bad", "kind": "mean",
             "brave": "afraid", "thick": "thin", "high": "low", "left": "right", "first": "last", "inside": "outside"}
LEGS = {"dog": 4, "cat": 4, "bird": 2, "spider": 8, "fish": 0, "ant": 6, "horse": 4, "duck": 2, "snake": 0, "cow": 4, "bee": 6,
        "child": 2, "table": 4, "hen": 2, "elephant": 4, "octopus": 8, "frog": 4}
NUMBER_WORDS = "no one two three four five six seven eight".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
FACTS = {"How many days are in a week?": "There are seven days in a week.",
         "How many months are in a year?": "There are twelve months in a year.",
         "How many hours are in a day?": "There are twenty-four hours in a day.",
         "How many minutes are in an hour?": "There are sixty minutes in an hour.",
         "What are the seasons?": "The seasons are spring, summer, autumn and winter.",
         "What do bees make?": "Bees make honey.", "What do cows give us?": "Cows give us milk.",
         "What do hens lay?": "Hens lay eggs.", "What do we use an umbrella for?": "We use an umbrella to stay dry in the rain.",
         "When do we sleep?": "We sleep at night, when it is dark.", "What falls from the sky in winter?":
         "In winter, snow can fall from the sky.", "What is ice?": "Ice is water that is so cold that it is hard.",
         "Why do we wear coats?": "We wear coats to stay warm when it is cold outside.",
         "Where does rain come from?": "Rain comes from the clouds in the sky.",
         "What do plants need to grow?": "Plants need water, light and air to grow.",
         "What do we do with our eyes?": "We see with our eyes.", "What do we do with our ears?": "We hear with our ears.",
         "What is a book for?": "A book is for reading. It can tell a story or teach us something.",
         "How many fingers are on a hand?": "There are five fingers on a hand, with the thumb.",
         "Why should we share?": "We should share because it makes others happy, and it makes us happy too.",
         "Why should we be kind?": "We should be kind because kind words and deeds make people happy.",
         "What should I do if I am lost?": "Stay calm, stay where you are and ask a grown-up you can trust for help.",
         "What should I eat to be healthy?": "Eat fruit and vegetables every day, and drink plenty of water."}
POLITE = ["{}", "{}", "{}", "Please tell me: {}", "I have a question. {}", "Can you tell me? {}", "{} Please answer in one sentence."]


def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def facts():
    """All (question variants, answer variants)."""
    yield from ((asked.split("|"), answers.split("|")) for asked, answers in SELF)
    yield from (([question], [answer]) for question, answer in FACTS.items())
    for thing, colour in COLOURS.items():
        name = thing[0].upper() + thing[1:]
        yield [f"What colour is {thing}?", f"What color is {thing}?"], [f"{name} is {colour}."]
    for animal, sound in SOUNDS.items():
        yield ([f"What sound does {article(animal)} make?", f"What does {article(animal)} say?"],
               [f"{article(animal).capitalize()} says \"{sound}\"."])
    for animal, home in HOMES.items():
        yield [f"Where does {article(animal)} live?"], [f"{article(animal).capitalize()} lives in {home}."]
    for animal, baby in BABIES.items():
        yield ([f"What is a baby {animal} called?", f"What do we call a young {animal}?"],
               [f"A baby {animal} is called {article(baby)}."])
    for word, other in list(OPPOSITES.items()) + [(b, a) for a, b in OPPOSITES.items()]:
        yield [f"What is the opposite of {word}?", f"What is the opposite of \"{word}\"?"], [f"The opposite of {word} is {other}."]
    for animal, count in LEGS.items():
        yield [f"How many legs does {article(animal)} have?"], [f"{article(animal).capitalize()} has {NUMBER_WORDS[count]} legs."]
    for names, kind in ((DAYS, "day"), (MONTHS, "month")):
        for name, following in zip(names, names[1:] + names[:1]):
            yield [f"Which {kind} comes after {name}?", f"What {kind} comes after {name}?"], [f"{following} comes after {name}."]
            yield [f"Which {kind} comes before {following}?"], [f"{name} comes before {following}."]


def dialogues(count, seed):
    """Different chats of one to three turns, as lists of turns; fewer than `count` never."""
    generator, table, made = random.Random(seed), list(facts()), {}
    while len(made) < count:
        turns = []
        for _ in range(generator.choice((1, 1, 2, 3))):
            asked, answers = generator.choice(table)
            turns += [generator.choice(POLITE).format(generator.choice(asked)) if asked[0].endswith("?")
                      else generator.choice(asked), generator.choice(answers)]
        made["\n".join(turns)] = turns
    return list(made.values())
