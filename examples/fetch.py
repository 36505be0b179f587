"""`async def` I/O tasks run together on one event loop; futures can be awaited in another."""

import asyncio

import alongside as al

ANSWERS = {"alpha": 3, "beta": 5, "gamma": 7}


@al.io
async def fetch(name: str) -> int:
    """Stands for a request to a server: it waits without taking a processor or a thread."""
    reader = asyncio.StreamReader()
    asyncio.get_running_loop().call_soon(reader.feed_data, f"{ANSWERS[name]}\n".encode())
    return int(await reader.readline())


@al.task
def product(numbers: list[int]) -> int:
    """Of all numbers."""
    result = 1
    for number in numbers:
        result *= number
    return result


async def main() -> None:
    """The program, with a session of its own."""
    with al.Session() as session:
        answers = [fetch(name) for name in ANSWERS]
        print("first answer:", await answers[0])
        print("product:", await product(answers))
        print("tasks:", session.statistics().submitted)


if __name__ == "__main__":
    asyncio.run(main())
