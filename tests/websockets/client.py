"""The relay and live queries before `websockets`, an independent client: what it may send, what it must not, and how both end."""

import json
import sys

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

MOST = 16_384
checks = 0


def check(found, expected, what):
    """Counts, and fails with what was found."""
    global checks
    checks += 1
    assert found == expected, f"{what}: {found!r}, not {expected!r}"


def wait_for_envelope(socket, kind):
    """The next envelope of a type."""
    while True:
        envelope = json.loads(socket.recv(timeout=60))
        if envelope["type"] == kind:
            return envelope


def join_room(base, room):
    """Joins a room."""
    socket = connect(f"{base}/hall/ws?room={room}", close_timeout=60)
    wait_for_envelope(socket, "svc:welcome")
    return socket


def envelope(data):
    """A message's envelope."""
    return json.dumps({"v": 1, "type": "say", "data": data})


def close_code(socket):
    """The code with which the server closes."""
    try:
        while True:
            socket.recv(timeout=60)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else None


def frame(first, payload):
    """A client's frame, whatever it says."""
    size = len(payload)
    head = bytes([first, 0x80 | size]) if size < 126 else bytes([first, 0xFE]) + size.to_bytes(2, "big")
    mask = bytes([1, 2, 3, 4])
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


def check_relaying(base):
    """Texts whole, in parts, and of every kind of character."""
    with join_room(base, "python") as one, join_room(base, "python") as other:
        for data in ["", "x" * 125, "x" * (MOST - 100), "κόσμε 日本語 \U0010ffff", {"a": [1, None, True]}]:
            one.send(envelope(data))
            check(wait_for_envelope(other, "say")["data"], data, "a text")
            text = envelope(data)
            size = max(1, len(text) // 7)
            one.send(text[at : at + size] for at in range(0, len(text), size))
            check(wait_for_envelope(other, "say")["data"], data, "a text in parts")
        for payload in [b"", b"x", b"x" * 125]:
            answered = one.ping(payload)
            check(answered.wait(60), True, "a pong")
        one.pong(b"unasked")
        one.close(4000, "enough")
        check(one.close_code, 4000, "the code of a close")
        check(other.protocol.extensions, [], "extensions")


def check_refusals(base):
    """What no client may send, in rooms and to live queries."""
    for path in ["/hall/ws?room=python", "/hall/api/live"]:
        for what, frames, expected in [
            ("binary", [frame(0x82, b"x")], 1003),
            ("a large message", [frame(0x81, b"x" * (MOST + 1))], 1009),
            ("a large message in parts", [frame(0x01, b"x" * MOST), frame(0x80, b"x")], 1009),
            ("compressed", [frame(0xC1, b"x")], 1002),
            ("a reserved opcode", [frame(0x83, b"x")], 1002),
            ("no mask", [b"\x81\x01x"], 1002),
            ("no UTF-8", [frame(0x81, b"\xed\xa0\x80")], 1007),
            ("a continuation of nothing", [frame(0x80, b"x")], 1002),
            ("a close of one byte", [frame(0x88, b"x")], 1002),
            ("a close with nobody's code", [frame(0x88, (1005).to_bytes(2, "big"))], 1002),
        ]:
            with connect(base + path, close_timeout=60) as socket:
                for piece in frames:
                    socket.socket.sendall(piece)
                check(close_code(socket), expected, f"{what} at {path}")
        for path, status in [("/hall/ws", 400), ("/hall/ws?room=.", 400), ("/nowhere/ws?room=a", 404)]:
            try:
                connect(base + path)
                raise AssertionError(f"{path} was opened")
            except InvalidStatus as refused:
                check(refused.response.status_code, status, path)


def check_live_queries(base):
    """A live query follows a write."""
    with connect(f"{base}/hall/api/live") as socket:
        frame = {"v": 1, "type": "subscribe", "id": "a", "action": "echo", "params": {"text": "κόσμε"}}
        socket.send(json.dumps(frame))
        told = wait_for_envelope(socket, "result")
        check((told["id"], told["seq"], told["result"]["rows"]), ("a", 1, [{"text": "κόσμε"}]), "a result")
        socket.send(json.dumps(frame))
        check(wait_for_envelope(socket, "error")["problem"]["code"], "invalid_request", "an id in use")


def main(base):
    """Does all of it."""
    check_relaying(base)
    check_refusals(base)
    check_live_queries(base)
    print(f"done: {checks} checks")


main(sys.argv[1])
