"""A session in the place of a `concurrent.futures` executor; failures that are looked at."""

import concurrent.futures
import math

import alongside as al


def root(x: float) -> float:
    """An ordinary function: nothing about it says that it is a task."""
    return math.sqrt(x)


def main() -> None:
    """The program, with a session of its own."""
    with al.Session() as executor:
        print("roots:", list(executor.map(root, [1, 4, 9])))
        futures: dict[concurrent.futures.Future[float], int] = {
            executor.submit(root, x): x for x in (16, -1)
        }
        for future in concurrent.futures.as_completed(futures):
            error = future.exception()
            if isinstance(error, ValueError):
                print(f"root of {futures[future]} failed")
            else:
                print(f"root of {futures[future]}: {future.result()}")


if __name__ == "__main__":
    main()
