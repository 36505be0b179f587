"""Calls of tasks give futures; a future is an argument like any other."""

import alongside as al


@al.task
def square(x: int) -> int:
    """One number, squared."""
    return x * x


@al.task
def add(*numbers: int) -> int:
    """Their sum."""
    return sum(numbers)


def main() -> None:
    """The program: sequential without a session, tasks under one."""
    squares = [square(n) for n in range(10)]
    print("sum of squares:", al.wait(add(*squares)))
    print("the first three:", al.wait(squares[:3]))


if __name__ == "__main__":
    main()
