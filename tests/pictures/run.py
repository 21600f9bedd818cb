"""Five hundred pictures as phones make them, uploaded and read back by another decoder, Pillow: pixels, orientation and colours are
as they were, and nothing else is left. Then bombs, which cost no more than a render call may.

Takes the server's binary from SVC_BIN.
"""

import io
import itertools
import random
import sys
import tempfile

from PIL import Image, ImageCms, ImageFilter, ImageOps, PngImagePlugin

import bombs
from album import Album

PICTURES = 500
# Stands in everything that a picture must lose.
SECRET = b"Grace's kitchen"

ORIENTATION, GPS, MAKE, MODEL, DESCRIPTION, MAKER_NOTE = 0x0112, 0x8825, 0x010F, 0x0110, 0x010E, 0x927C
XMP = b'<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><!--' + SECRET + b"--></x:xmpmeta>"
# What a moving photo has behind its still one, and what one maker's phones add.
CLIP = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + b"\0\0\0\x20mdat" + SECRET.ljust(24, b".")
TRAILER = SECRET + b"SEFH\x6b\0\0\0\x01\0\0\0SEFT"


def draw(seed, mode):
    """Makes a picture with edges, gradients and noise, which differs with its seed."""
    chance = random.Random(seed)
    size = (chance.randrange(17, 120), chance.randrange(17, 120))
    noise = Image.frombytes("RGB", size, chance.randbytes(size[0] * size[1] * 3)).filter(ImageFilter.GaussianBlur(2))
    ramp = Image.linear_gradient("L").resize(size)
    picture = Image.composite(noise, Image.new("RGB", size, (chance.randrange(256), 90, 200)), ramp)
    if mode.endswith("A"):
        picture.putalpha(ramp.rotate(180))
    return picture.convert(mode)


def exif(orientation, thumbnail=None):
    """Says how a picture is held, and all that a phone tells beside it."""
    tags = Image.Exif()
    tags[ORIENTATION] = orientation
    tags[MAKE], tags[MODEL] = "Pocket", SECRET.decode()
    tags[DESCRIPTION] = SECRET.decode()
    tags.get_ifd(GPS).update({1: "N", 2: (52.0, 31.0, 12.5), 3: "E", 4: (13.0, 24.0, 17.0), 29: "2026:11:29"})
    tags.get_ifd(0x8769).update({MAKER_NOTE: SECRET * 20, 0x9003: "2026:11:29 20:00:00"})
    return tags.tobytes()


def profile():
    """Returns a profile of colours, as pictures of newer phones carry one."""
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def save(picture, kind, **how):
    """Encodes a picture."""
    into = io.BytesIO()
    picture.save(into, kind, **how)
    return into.getvalue()


def jpeg(seed, orientation):
    """A photo: with a second picture, a clip or a maker's trailer behind it."""
    mode = ["RGB", "RGB", "RGB", "L"][seed % 4]
    more = [b"", save(draw(seed + 1, "RGB"), "JPEG", exif=exif(1)), CLIP, TRAILER][seed // 2 % 4]
    colours = {"icc_profile": profile()} if seed % 3 == 0 and mode == "RGB" else {}
    how = {"quality": 60 + seed % 40, "subsampling": seed % 3, "progressive": seed % 5 == 0, "comment": SECRET}
    return save(draw(seed, mode), "JPEG", exif=exif(orientation), xmp=XMP, **how, **colours) + more


def png(seed, orientation):
    """A picture of a screen."""
    words = PngImagePlugin.PngInfo()
    words.add_text("Comment", SECRET.decode(), zip=seed % 2 == 0)
    words.add_itxt("XML:com.adobe.xmp", XMP.decode())
    colours = {"icc_profile": profile()} if seed % 3 == 0 else {}
    picture = draw(seed, ["RGB", "RGBA", "L", "LA"][seed % 4])
    if seed % 5 == 0:
        picture = picture.convert("RGB").quantize(32)
    return save(picture, "PNG", exif=exif(orientation), pnginfo=words, **colours) + [b"", TRAILER][seed % 2]


def webp(seed, orientation):
    """A picture from a messenger: still, without loss, or moving."""
    colours = {"icc_profile": profile()} if seed % 3 == 0 else {}
    moving = {"save_all": True, "duration": 80, "append_images": [draw(seed, "RGBA").rotate(90 * turn) for turn in (1, 2)]}
    how = [{}, {"lossless": True}, moving][seed % 3]
    return save(draw(seed, ["RGB", "RGBA"][seed % 2]), "WEBP", exif=exif(orientation), xmp=XMP, **how, **colours)


def avif(seed, orientation):
    """A photo of newer phones; its orientation is of the container."""
    colours = {"icc_profile": profile()} if seed % 3 == 0 else {}
    return save(draw(seed, ["RGB", "RGBA"][seed % 2]), "AVIF", speed=10, exif=exif(orientation), xmp=XMP, **colours)


def gif(seed, orientation):
    """A moving joke."""
    frames = [draw(seed, "RGB").rotate(30 * turn) for turn in range(3)]
    return save(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=70, loop=0, comment=SECRET) + TRAILER


# The kinds, as often as phones make them.
KINDS = [jpeg, jpeg, jpeg, jpeg, png, png, webp, webp, avif, gif]


def looks(file):
    """Returns what somebody sees of a picture: every frame, upright, with its profile of colours."""
    picture = Image.open(io.BytesIO(file))
    frames = []
    for frame in range(getattr(picture, "n_frames", 1)):
        picture.seek(frame)
        upright = ImageOps.exif_transpose(picture)
        frames.append((upright.size, upright.convert("RGBA").tobytes(), picture.info.get("duration")))
    # A second photo of a file is none that a browser shows.
    if picture.format in ("JPEG", "MPO"):
        frames = frames[:1]
    return frames, picture.info.get("icc_profile")


def left_over(file):
    """Returns what is left of what a picture must lose."""
    picture = Image.open(io.BytesIO(file))
    tags = dict(picture.getexif())
    found = [f"tag {tag:#06x}" for tag in tags if tag != ORIENTATION]
    # An item of a container stays where others are counted from, with zeros in its place.
    said = {name: picture.info.get(name) for name in ("comment", "xmp", "XML:com.adobe.xmp", "Comment", "mp")}
    found += [name for name, value in said.items() if value and not (isinstance(value, bytes) and not value.strip(b"\0"))]
    found += [str(part) for part in (SECRET, b"ftypmp42", b"SEFT", b"xpacket") if part in file]
    ends = {"JPEG": b"\xff\xd9", "PNG": b"IEND\xae\x42\x60\x82", "GIF": b";"}
    if picture.format in ends and not file.endswith(ends[picture.format]):
        found.append("bytes behind its end")
    return found


def main():
    wrong = []
    counts = {}
    with tempfile.TemporaryDirectory(prefix="svc-pictures-") as directory:
        album = Album(directory)
        try:
            for number, kind in zip(range(PICTURES), itertools.cycle(KINDS)):
                name = f"{kind.__name__} {number}"
                file = kind(number, number // len(KINDS) % 8 + 1)
                assert SECRET in file or kind is png, name
                status, said = album.upload("add", file)
                if status != 201:
                    wrong.append(f"{name}: {status} {said}")
                    continue
                said = said["file"]
                kept = album.download(said["id"])
                if looks(kept) != looks(file):
                    wrong.append(f"{name}: looks otherwise")
                if [said["width"], said["height"]] not in (list(looks(kept)[0][0][0]), list(Image.open(io.BytesIO(kept)).size)):
                    wrong.append(f"{name}: {said['width']} x {said['height']}")
                wrong += [f"{name}: {part}" for part in left_over(kept)]
                counts[kind.__name__] = counts.get(kind.__name__, 0) + 1
            wrong += bombs.throw_at(album)
        finally:
            ended = album.stop()
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    sys.exit("\n".join(wrong) or ended)


if __name__ == "__main__":
    main()
