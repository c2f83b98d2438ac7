"""Frames to and from the compiler: four bytes that say how long, then JSON.

They go over a descriptor that nobody else knows, so that whatever a plugin or a program that it starts writes to its standard output
cannot be taken for one.
"""

import io
import json
import os
import threading

import setpoint_plugins

# What is longer is refused on both sides.
LONGEST = 64 << 20

_descriptor = setpoint_plugins.descriptor
_writing = threading.Lock()
_asking = threading.RLock()

# Whether the compiler waits for the answer of a call, so that it can be asked.
in_call = False


class TooLong(Exception):
    """A message that the compiler would not take."""


def send(message):
    body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode("utf-8")
    if len(body) > LONGEST:
        raise TooLong("it is longer than %d MiB" % (LONGEST >> 20))
    rest = memoryview(len(body).to_bytes(4, "big") + body)
    with _writing:
        while rest:
            rest = rest[os.write(_descriptor, rest) :]


def _read(count):
    parts = []
    while count:
        part = os.read(_descriptor, min(count, 1 << 20))
        if not part:
            # The compiler has gone.
            os._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def receive():
    return json.loads(_read(int.from_bytes(_read(4), "big")))


def ask(message):
    """What the compiler says to a question. Threads of a plugin may ask too."""
    with _asking:
        if not in_call:
            raise RuntimeError("the model can only be read while a plugin is called")
        send(message)
        return receive()


class Printer(io.TextIOBase):
    """Standard output of plugins: its lines are printed by the model."""

    def __init__(self):
        super().__init__()
        self._line = ""
        self._lock = threading.Lock()

    @property
    def encoding(self):
        return "utf-8"

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not " + type(text).__name__)
        with self._lock:
            lines = (self._line + text).split("\n")
            self._line = lines.pop()
            if len(self._line) > 1 << 20:
                lines.append(self._line)
                self._line = ""
            for line in lines:
                self._print(line)
        return len(text)

    def end_line(self):
        with self._lock:
            if self._line:
                self._print(self._line)
                self._line = ""

    def _print(self, line):
        send({"print": line.encode("utf-8", "replace").decode("utf-8")})
