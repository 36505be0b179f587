"""Files as data: a task that reads a file waits for the task that writes it."""

import collections
import tempfile

import alongside as al

TEXT = "the cat sat on the mat and the dog sat on the cat"


@al.io
def write(path: al.FileOut, words: list[str]) -> None:
    """A text, a word a line."""
    with open(path, "w") as file:
        file.write("\n".join(words))


@al.task
def count(path: al.FileIn, out: al.FileOut) -> None:
    """From the words of a file to a file of counts."""
    with open(path) as file:
        counted = collections.Counter(file.read().split())
    with open(out, "w") as file:
        file.writelines(f"{word} {number}\n" for word, number in sorted(counted.items()))


@al.io
def merge(parts: list[al.FileIn]) -> dict[str, int]:
    """The counts of all parts together."""
    total: collections.Counter[str] = collections.Counter()
    for part in parts:
        with open(part) as file:
            for line in file:
                word, number = line.split()
                total[word] += int(number)
    return dict(total)


def main() -> None:
    """The program: sequential without a session, tasks under one."""
    words = TEXT.split()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(4):
            write(f"{folder}/text-{number}", words[number::4])
            count(f"{folder}/text-{number}", f"{folder}/count-{number}")
        total = al.wait(merge([f"{folder}/count-{number}" for number in range(4)]))
        with al.open(f"{folder}/count-0") as file:  # waits for its task, too
            print("lines in the first part:", len(file.readlines()))
    print("most frequent:", sorted(total.items(), key=lambda item: (-item[1], item[0]))[:3])


if __name__ == "__main__":
    main()
