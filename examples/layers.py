"""Files on two storage layers: written to the fast one, at their own paths in the end."""

import tempfile
from pathlib import Path

import alongside as al

LAYERS = """
[[layer]]
name = "memory"
path = "{memory}"
bandwidth = "2GB/s"
capacity = "8MB"
high_watermark = "75%"
low_watermark = "50%"

[[layer]]
name = "disk"
path = "{disk}"
read_bandwidth = "200MB/s"
write_bandwidth = "150MB/s"
bandwidth = "250MB/s"
"""


@al.task
def compute(step: int) -> bytes:
    """What is to be kept."""
    return bytes([step]) * 1_000_000


@al.io(bandwidth="100MB/s", size="1MB")
def save(path: al.FileOut, data: bytes) -> str:
    """`path` is the real place, on the layer of the grant."""
    Path(path).write_bytes(data)
    return path


def main() -> None:
    """Twenty files of 1 MB, of which eight fit in memory at a time."""
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as memory,
        tempfile.TemporaryDirectory() as disk,
    ):
        described = Path(disk, "storage.toml")
        described.write_text(LAYERS.format(memory=memory, disk=disk))
        with al.Session(storage=described, flush=True):
            places = al.wait([save(f"{disk}/step-{n}", compute(n)) for n in range(20)])
            first = al.persist(f"{disk}/step-0").result()
        print("written to memory:", any(place.startswith(memory) for place in places))
        print("persist moved at most 1 MB:", first <= 1_000_000)
        print("at their own paths:", len(list(Path(disk).glob("step-*"))))


if __name__ == "__main__":
    main()
