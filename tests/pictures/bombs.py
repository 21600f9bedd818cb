"""Pictures that are made to cost more than they weigh: each is refused, or kept within the budgets of a render call."""

import io
import struct
import time
import zlib

from PIL import Image

# What all of them together may add to the server's memory at the most: guests' own memory, and bodies.
MEMORY_MB = 600
TAKEN, REFUSED = {(201, None)}, {(400, "render_failed")}
EITHER = TAKEN | REFUSED


def chunk(kind, content):
    """Returns a chunk of PNG."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def zeros(count):
    """Deflates so many zeros."""
    deflate = zlib.compressobj(9)
    piece = bytes(1 << 20)
    parts = [deflate.compress(piece) for _ in range(count >> 20)]
    return b"".join([*parts, deflate.compress(bytes(count & 0xFFFFF)), deflate.flush()])


def png(width, height, depth, kind, row_bytes, before=b""):
    """Returns a whole PNG without a single pixel that is not black."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0))
    pixels = chunk(b"IDAT", zeros((row_bytes + 1) * height))
    return b"\x89PNG\r\n\x1a\n" + head + before + pixels + chunk(b"IEND", b"")


def gif(width, height, frames):
    """Returns a GIF of so many frames of one pixel each."""
    head = b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0\0\0\0\xff\xff\xff"
    frame = b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0"
    return head + frame * frames + b";"


def jpeg(**how):
    """Returns a photo of 12 megapixels."""
    into = io.BytesIO()
    Image.linear_gradient("L").resize((4000, 3000)).convert("RGB").save(into, "JPEG", quality=90, **how)
    return into.getvalue()


def noise():
    """Returns a photo of 12 megapixels that is as large as a file may be."""
    into = io.BytesIO()
    Image.effect_noise((4000, 3000), 40).convert("RGB").save(into, "JPEG", quality=85)
    return into.getvalue()


def with_scans(file, times):
    """Repeats the last scan of a progressive JPEG: each is decoded over the whole picture."""
    last = file.rindex(b"\xff\xda")
    return file[:last] + file[last:-2] * times + file[-2:]


def resized(file, width, height):
    """Says another size in the frame of a JPEG."""
    frame = file.index(b"\xff\xc0")
    return file[: frame + 5] + struct.pack(">HH", height, width) + file[frame + 9 :]


def segments(file, count):
    """Puts so many empty segments before all else of a JPEG."""
    return file[:2] + b"\xff\xe1\0\x02" * count + file[2:]


def looped_exif():
    """Returns a directory of EXIF that comes after itself."""
    return b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<HHHIII", 1, 0x8769, 4, 1, 8, 8)


def webp(width, height):
    """Returns the head of a WebP without loss."""
    content = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(64)
    return b"RIFF" + struct.pack("<I", 12 + len(content)) + b"WEBPVP8L" + struct.pack("<I", len(content)) + content + b"\0"


def box(kind, content):
    """Returns a box of the container of AVIF."""
    return struct.pack(">I", 8 + len(content)) + kind + content


def avif(meta):
    """Returns an AVIF with this inside of its `meta`."""
    return box(b"ftyp", b"avif\0\0\0\0avifmif1") + box(b"meta", bytes(4) + meta)


def nested(depth):
    """Returns boxes within boxes."""
    heads = [struct.pack(">I", 8 * (depth - at)) + b"iprp" for at in range(depth)]
    return b"".join(heads)


def all_bombs():
    """Returns the bombs: what they are, their bytes, and what may be answered."""
    photo, progressive = jpeg(), jpeg(progressive=True)
    icc = chunk(b"iCCP", b"bomb\0\0" + zeros(1 << 30))
    yield "PNG of 50,000 squared", png(50_000, 50_000, 1, 0, 6250), REFUSED
    yield "PNG of 10,000 squared", png(10_000, 10_000, 1, 0, 1250), TAKEN
    yield "PNG of 24 megapixels of 8 bytes", png(6000, 4000, 16, 6, 48_000), TAKEN
    yield "PNG with a profile of 1 GB", png(1, 1, 8, 2, 3, icc), EITHER
    yield "PNG of 300,000 chunks", png(1, 1, 8, 2, 3, chunk(b"tEXt", b"a\0b") * 300_000), TAKEN
    yield "GIF of 100,000 frames", gif(1, 1, 100_000), EITHER
    yield "GIF of 65,535 squared", gif(65_535, 65_535, 1), REFUSED
    yield "GIF of 100 megapixels", gif(10_000, 10_000, 1), TAKEN
    yield "JPEG of 65,535 squared", resized(photo, 65_535, 65_535), REFUSED
    yield "JPEG that says more than it has", resized(photo, 10_000, 10_000), EITHER
    yield "JPEG without end", photo[:-2], REFUSED
    yield "JPEG without end, of zeros", photo[:-2] + bytes(5_000_000), REFUSED
    yield "JPEG of 100 scans", with_scans(progressive, 100), EITHER
    yield "JPEG of 1,000,000 segments", segments(photo, 1_000_000), TAKEN
    yield "JPEG with EXIF that never ends", photo[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(looped_exif())) + looped_exif() + photo[2:], TAKEN
    yield "WebP of 16,383 squared", webp(16_383, 16_383), REFUSED
    yield "WebP of 24 megapixels of nothing", webp(6000, 4000), EITHER
    yield "AVIF of 500,000 boxes within boxes", avif(nested(500_000)), REFUSED
    yield "AVIF of 4,294,967,295 places", avif(box(b"iloc", b"\x02\0\0\0\x44\x44" + b"\xff" * 64)), REFUSED


def throw_at(album):
    """Uploads all; returns what was answered otherwise."""
    wrong = []
    before = album.peak_memory()
    # What costs as much and is meant has all that it asks for.
    for name, photo in [("photo", jpeg()), ("progressive photo", jpeg(progressive=True)), ("noisy photo", noise())]:
        sizes = album.upload("add_sizes", photo)[1]["file"]["sizes"]
        if sizes != [64, 2048]:
            wrong.append(f"{name} of 12 megapixels: {sizes}")
    for name, file, allowed in all_bombs():
        began = time.monotonic()
        status, said = album.upload("add_sizes", file)
        answer = (status, said.get("code"))
        sizes = said.get("file", {}).get("sizes")
        print(f"{name}: {len(file)} bytes, {answer[0]} {answer[1] or sizes}, {time.monotonic() - began:.2f} s")
        if answer not in allowed:
            wrong.append(f"{name}: {status} {said}")
        # The next visitor's picture is taken as before.
        if album.upload("add", gif(1, 1, 1))[0] != 201:
            wrong.append(f"{name}: the next picture is refused")
    grown = album.peak_memory() - before
    print(f"memory at the most: {grown:.0f} MB more")
    if grown > MEMORY_MB:
        wrong.append(f"{grown} MB more memory")
    return wrong
